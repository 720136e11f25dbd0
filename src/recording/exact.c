/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/exact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "recording/folder.h"
#include "recording/recording.h"

#define ROOM	     ((uint64_t)256 << 10) /* in a session, beside the counts */
#define ROOM_OF_NODE 512		   /* about: its sample */

struct uni_exact {
	uint8_t *data; /* owned: the header, then the parts without gaps */
	size_t size;
	const struct uni_exact_header *head;
	const struct uni_exact_function *function;
	const struct uni_exact_node *node;
	const struct uni_exact_block *block;
	const uint8_t *length;
	const struct uni_exact_cut *cut;
	uint64_t insns;
};

static const struct {
	uint64_t size, max;
} parts[UNI_EXACT_PARTS] = {
	[UNI_EXACT_PART_FUNCTIONS] = { sizeof(struct uni_exact_function),
		UNI_EXACT_FUNCTIONS + UNI_EXACT_FOUND + 1 },
	[UNI_EXACT_PART_NODES] = { sizeof(struct uni_exact_node), UNI_EXACT_NODES },
	[UNI_EXACT_PART_BLOCKS] = { sizeof(struct uni_exact_block), UNI_EXACT_BLOCKS },
	[UNI_EXACT_PART_LENGTHS] = { 1, UNI_EXACT_LENGTHS },
	[UNI_EXACT_PART_CUTS] = { sizeof(struct uni_exact_cut), UNI_EXACT_CUTS },
};

static uint64_t nr_of(const struct uni_exact *e, enum uni_exact_part part)
{
	return e->head->part[part].nr;
}

/* In the packed form: a multiple of 8, so that all of it is aligned. */
static uint64_t bytes_of(uint64_t nr, unsigned part)
{
	return (nr * parts[part].size + 7) / 8 * 8;
}

static int refuse_exact(struct uni_err *err, const char *what)
{
	return uni_err_set(err, UNI_EFORMAT, "these are no exact counts: %s", what);
}

static int check_head(const struct uni_exact_header *h, struct uni_err *err)
{
	if (h->magic != UNI_EXACT_MAGIC)
		return refuse_exact(err, "the magic number is wrong");
	if (h->mode < UNI_EXACT_COUNTS || h->mode > UNI_EXACT_TRACE)
		return refuse_exact(err, "they are of a kind that is not known");
	if (h->state < UNI_EXACT_RUNS || h->state > UNI_EXACT_KILLED)
		return refuse_exact(err, "their end is not known");
	if (h->nr_vcpus == 0 || h->nr_vcpus > UNI_VCPU_MAX)
		return refuse_exact(err, "the number of vCPUs is wrong");
	for (unsigned i = 0; i < UNI_EXACT_PARTS; i++) {
		if (h->part[i].nr > parts[i].max)
			return refuse_exact(err, "a part is too long");
	}
	if (h->part[UNI_EXACT_PART_FUNCTIONS].nr == 0 || h->part[UNI_EXACT_PART_NODES].nr == 0)
		return refuse_exact(err, "a part is empty");
	return 0;
}

static int check_functions(const struct uni_exact *e, struct uni_err *err)
{
	for (uint64_t i = 0; i < nr_of(e, UNI_EXACT_PART_FUNCTIONS); i++) {
		if (e->function[i].end != 0 && e->function[i].end <= e->function[i].start)
			return refuse_exact(err, "a function ends before it starts");
	}
	return 0;
}

static int check_nodes(struct uni_exact *e, struct uni_err *err)
{
	uint64_t nr_functions = nr_of(e, UNI_EXACT_PART_FUNCTIONS);
	uint64_t all = e->node[0].insns;

	if (e->node[0].parent != 0 || e->node[0].function != 0)
		return refuse_exact(err, "the root is wrong");
	for (uint64_t i = 1; i < nr_of(e, UNI_EXACT_PART_NODES); i++) {
		const struct uni_exact_node *n = &e->node[i];

		if (n->parent >= i || n->function >= nr_functions)
			return refuse_exact(err, "a context is wrong");
		if (__builtin_add_overflow(e->insns, n->insns, &e->insns) ||
			__builtin_add_overflow(all, n->insns, &all) || all > INT64_MAX)
			return refuse_exact(err, "the numbers are too large");
	}
	return 0;
}

static int check_blocks(const struct uni_exact *e, struct uni_err *err)
{
	uint64_t nr_lengths = nr_of(e, UNI_EXACT_PART_LENGTHS);

	for (uint64_t i = 0; i < nr_lengths; i++) {
		if (e->length[i] == 0 || e->length[i] > 16)
			return refuse_exact(err, "an instruction's length is wrong");
	}
	for (uint64_t i = 0; i < nr_of(e, UNI_EXACT_PART_BLOCKS); i++) {
		const struct uni_exact_block *b = &e->block[i];

		if (b->nr_insns == 0 || b->nr_insns > UNI_EXACT_BLOCK_INSN ||
			!uni_range_contains(0, nr_lengths, b->lengths, b->nr_insns))
			return refuse_exact(err, "a block is wrong");
	}
	for (uint64_t i = 0; i < nr_of(e, UNI_EXACT_PART_CUTS); i++) {
		const struct uni_exact_cut *c = &e->cut[i];

		if (c->block >= nr_of(e, UNI_EXACT_PART_BLOCKS) ||
			c->insn >= e->block[c->block].nr_insns ||
			c->number > e->block[c->block].count)
			return refuse_exact(err, "a block was cut short more often than it ran");
	}
	return 0;
}

/* The known function that holds pc, 0: none. They come first, sorted, each with its own node. */
static uint64_t node_of(const struct uni_exact *e, uint64_t pc)
{
	uint64_t low = 1, high = nr_of(e, UNI_EXACT_PART_NODES);

	if (high > nr_of(e, UNI_EXACT_PART_FUNCTIONS))
		high = nr_of(e, UNI_EXACT_PART_FUNCTIONS);
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (e->function[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 1 && pc < e->function[low - 1].end ? low - 1 : 0;
}

/*
 * Code without a function is firmware until the image begins: the root's number, as it was read.
 * The rest is the last node's. Older files have no such node.
 */
static int split_rest(const struct uni_exact *e, struct uni_exact_node *node, uint64_t before,
	struct uni_err *err)
{
	uint64_t last = nr_of(e, UNI_EXACT_PART_FUNCTIONS), all = 0;

	if (nr_of(e, UNI_EXACT_PART_NODES) != last + 1)
		return 0;
	for (uint64_t i = 1; i < last; i++)
		all |= node[i].insns;
	if (all == 0) /* it has not begun */
		return 0;
	if (before > node[0].insns || node[last].function != 0)
		return refuse_exact(err, "more ran before the image than at all");
	node[last].insns = node[0].insns - before;
	node[0].insns = before;
	return 0;
}

/* Without a tree, blocks add up to what functions have executed. */
static int sum_blocks(const struct uni_exact *e, struct uni_exact_node *node, struct uni_err *err)
{
	uint64_t before = node[0].insns;

	for (uint64_t i = 0; i < nr_of(e, UNI_EXACT_PART_NODES); i++)
		node[i].insns = node[i].calls = 0;
	for (uint64_t i = 0; i < nr_of(e, UNI_EXACT_PART_BLOCKS); i++) {
		const struct uni_exact_block *b = &e->block[i];
		uint64_t at = node_of(e, b->pc), insns;

		if (__builtin_mul_overflow(b->count, b->nr_insns, &insns) ||
			__builtin_add_overflow(node[at].insns, insns, &node[at].insns))
			return refuse_exact(err, "the numbers are too large");
		if (at != 0 && b->pc == e->function[at].start)
			node[at].calls += b->count;
	}
	for (uint64_t i = 0; i < nr_of(e, UNI_EXACT_PART_CUTS); i++) {
		const struct uni_exact_cut *c = &e->cut[i];
		const struct uni_exact_block *b = &e->block[c->block];
		uint64_t at = node_of(e, b->pc), insns = c->number * (b->nr_insns - c->insn);

		if (insns > node[at].insns)
			return refuse_exact(err, "more was cut off than was executed");
		node[at].insns -= insns;
		if (at != 0 && b->pc == e->function[at].start && c->insn == 0)
			node[at].calls -= c->number < node[at].calls ? c->number : node[at].calls;
	}
	return split_rest(e, node, before, err);
}

/* e->data is there, packed, as long as its own (checked) header says. */
static int check_all(struct uni_exact *e, struct uni_err *err)
{
	const uint8_t *at[UNI_EXACT_PARTS];
	uint64_t pos = sizeof(*e->head);
	int rc;

	e->head = (const void *)e->data;
	for (unsigned i = 0; i < UNI_EXACT_PARTS; i++) {
		at[i] = e->data + pos;
		pos += bytes_of(e->head->part[i].nr, i);
	}
	e->function = (const void *)at[UNI_EXACT_PART_FUNCTIONS];
	e->node = (const void *)at[UNI_EXACT_PART_NODES];
	e->block = (const void *)at[UNI_EXACT_PART_BLOCKS];
	e->length = at[UNI_EXACT_PART_LENGTHS];
	e->cut = (const void *)at[UNI_EXACT_PART_CUTS];
	rc = check_functions(e, err);
	if (rc == 0)
		rc = check_blocks(e, err);
	if (rc == 0 && e->head->mode == UNI_EXACT_COUNTS)
		rc = sum_blocks(e, (struct uni_exact_node *)(uintptr_t)e->node, err);
	if (rc == 0)
		rc = check_nodes(e, err);
	return rc;
}

/* Source of the parts: memory, or a file that may still change. */
struct from {
	const uint8_t *data;
	uint64_t size;
	int fd;
};

static bool copy_from(const struct from *f, uint64_t at, void *to, size_t len)
{
	if (!uni_range_contains(0, f->size, at, len))
		return false;
	if (f->data != NULL) {
		memcpy(to, f->data + at, len);
		return true;
	}
	for (size_t have = 0; have < len;) {
		ssize_t n = pread(f->fd, (char *)to + have, len - have, (off_t)(at + have));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		have += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static int take_exact(const struct from *f, struct uni_exact **ret, struct uni_err *err)
{
	struct uni_exact_header h;
	uint64_t pos = sizeof(h), size = sizeof(h);
	struct uni_exact *e = NULL;
	int rc;

	if (!copy_from(f, 0, &h, sizeof(h)))
		return refuse_exact(err, "it is too short");
	rc = check_head(&h, err);
	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < UNI_EXACT_PARTS; i++)
		size += bytes_of(h.part[i].nr, i);
	e = calloc(1, sizeof(*e));
	if (e != NULL)
		e->data = calloc(1, size);
	if (e == NULL || e->data == NULL) {
		free(e);
		return uni_err_nomem(err);
	}
	e->size = size;
	for (unsigned i = 0; rc == 0 && i < UNI_EXACT_PARTS; i++) {
		if (!copy_from(f, h.part[i].at, e->data + pos, h.part[i].nr * parts[i].size))
			rc = refuse_exact(err, "a part lies outside of it");
		h.part[i].at = pos;
		pos += bytes_of(h.part[i].nr, i);
	}
	memcpy(e->data, &h, sizeof(h));
	if (rc == 0)
		rc = check_all(e, err);
	if (rc != 0)
		uni_exact_destroy(e);
	else
		*ret = e;
	return rc;
}

int uni_exact_parse(const void *data, size_t size, struct uni_exact **ret, struct uni_err *err)
{
	const struct from f = { .data = data, .size = size, .fd = -1 };

	return take_exact(&f, ret, err);
}

/* The plugin locks its file as long as QEMU lives. */
static bool has_writer(int fd)
{
	struct flock l = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = UNI_EXACT_LOCK_OF_QEMU,
		.l_len = 1 };

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* QEMU was killed. Each call that has not ended is open. */
static void end_killed(const struct uni_exact *e)
{
	struct uni_exact_header *h = (void *)e->data;
	uint64_t ended = h->stat[UNI_EXACT_RETURNS] + h->stat[UNI_EXACT_TAIL_CALLS] +
			 h->stat[UNI_EXACT_DROPPED];

	if (h->state != UNI_EXACT_RUNS)
		return;
	h->state = UNI_EXACT_KILLED;
	h->stat[UNI_EXACT_OPEN] = h->stat[UNI_EXACT_CALLS] - ended;
}

static int take_file(const char *path, bool is_qemus, struct uni_exact **ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	struct from f = { 0 };
	struct stat st;
	bool is_gone;
	int rc = uni_open_input(path, &fd, err);

	if (rc != 0)
		return rc;
	f.fd = fd;
	if (fstat(fd, &st) != 0)
		return uni_err_set(err, UNI_EIO, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return uni_err_set(err, UNI_EFORMAT, "%s is no file", path);
	f.size = (uint64_t)st.st_size;
	is_gone = is_qemus && !has_writer(fd);
	rc = take_exact(&f, ret, err);
	if (rc == 0 && is_gone)
		end_killed(*ret);
	return rc != 0 ? uni_err_prefix(err, "%s", path) : 0;
}

uint64_t uni_exact_room(const char *path)
{
	struct uni_exact_header h = { 0 };
	const struct from f = { .fd = uni_open_shared(path), .size = sizeof(h) };
	uint64_t bytes = ROOM;

	if (f.fd < 0)
		return bytes;
	if (copy_from(&f, 0, &h, sizeof(h)) && check_head(&h, NULL) == 0) {
		for (unsigned i = 0; i < UNI_EXACT_PARTS; i++)
			bytes += bytes_of(h.part[i].nr, i);
		bytes += h.part[UNI_EXACT_PART_NODES].nr * ROOM_OF_NODE;
	}
	(void)close(f.fd);
	return bytes;
}

int uni_exact_take(const char *path, struct uni_exact **ret, struct uni_err *err)
{
	return take_file(path, true, ret, err);
}

static int name_in(const char *session, unsigned guest, struct uni_strbuf *b, struct uni_err *err)
{
	uni_strbuf_init(b);
	uni_strbuf_addf(b, "%s/" UNI_SDIR_EXACT, session, guest);
	return uni_strbuf_failed(b) ? uni_err_nomem(err) : 0;
}

int uni_exact_load(const char *session, unsigned guest, struct uni_exact **ret, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	int rc = name_in(session, guest, &b, err);

	return rc == 0 ? take_file(b.s, false, ret, err) : rc;
}

bool uni_exact_is_there(const char *session, unsigned guest)
{
	_cleanup_strbuf_ struct uni_strbuf b;

	return name_in(session, guest, &b, NULL) == 0 && uni_door_access(b.s, F_OK) == 0;
}

int uni_exact_save(
	const struct uni_exact *e, const char *session, unsigned guest, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	_cleanup_close_ int fd = -1;
	struct uni_sink *out;
	char name[32];
	int rc = name_in(session, guest, &b, err);

	(void)snprintf(name, sizeof(name), UNI_SDIR_EXACT, guest);
	if (rc == 0)
		rc = uni_sdir_open(session, &fd, err);
	if (rc == 0)
		rc = uni_sink_open_below(fd, name, b.s, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, e->data, e->size);
	return uni_sink_close(out, err);
}

void uni_exact_destroy(struct uni_exact *e)
{
	if (e == NULL)
		return;
	free(e->data);
	free(e);
}

enum uni_exact_state uni_exact_state(const struct uni_exact *e)
{
	return (enum uni_exact_state)e->head->state;
}

const char *uni_exact_state_name(const struct uni_exact *e)
{
	static const char *const name[] = {
		[UNI_EXACT_RUNS] = "running",
		[UNI_EXACT_ENDED] = "ended",
		[UNI_EXACT_REACHED] = "reached",
		[UNI_EXACT_KILLED] = "killed",
	};

	return name[e->head->state];
}

bool uni_exact_knows(const struct uni_exact *e, enum uni_exact_stat stat)
{
	bool at_end = stat == UNI_EXACT_CUT || stat == UNI_EXACT_UNKNOWN_CUTS;

	if (e->head->mode == UNI_EXACT_COUNTS)
		return stat == UNI_EXACT_UNCOUNTED || (at_end && e->head->state != UNI_EXACT_RUNS &&
							      e->head->state != UNI_EXACT_KILLED);
	return stat != UNI_EXACT_OPEN || e->head->state != UNI_EXACT_RUNS;
}

enum uni_exact_mode uni_exact_mode(const struct uni_exact *e)
{
	return (enum uni_exact_mode)e->head->mode;
}

uint32_t uni_exact_nr_vcpus(const struct uni_exact *e)
{
	return e->head->nr_vcpus;
}

uint64_t uni_exact_stat(const struct uni_exact *e, enum uni_exact_stat stat)
{
	return e->head->stat[stat];
}

uint64_t uni_exact_insns(const struct uni_exact *e)
{
	return e->insns;
}

uint64_t uni_exact_before(const struct uni_exact *e)
{
	return e->node[0].insns;
}

uint64_t uni_exact_moved(const struct uni_exact *e)
{
	return e->head->moved;
}

const struct uni_exact_function *uni_exact_functions(const struct uni_exact *e, uint32_t *nr_ret)
{
	*nr_ret = (uint32_t)nr_of(e, UNI_EXACT_PART_FUNCTIONS);
	return e->function;
}

const struct uni_exact_node *uni_exact_nodes(const struct uni_exact *e, uint32_t *nr_ret)
{
	*nr_ret = (uint32_t)nr_of(e, UNI_EXACT_PART_NODES);
	return e->node;
}

struct uni_exact_parts uni_exact_parts(const struct uni_exact *e)
{
	return (struct uni_exact_parts){ .block = e->block,
		.length = e->length,
		.cut = e->cut,
		.nr_blocks = (uint32_t)nr_of(e, UNI_EXACT_PART_BLOCKS),
		.nr_cuts = (uint32_t)nr_of(e, UNI_EXACT_PART_CUTS) };
}
