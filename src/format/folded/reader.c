/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "root;caller;leaf 42", one a line; with opts.diff two numbers, before and after.
 * A leaf may itself end in a number ("lambda 3"), so a second number counts only when asked for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "format/stack.h"

#define SNIFF_LINES 32
#define PIECE	    (256 * 1024) /* of a file, read at once */

/* "read(3, 0x1, 5) =", before the number: a system call and its result. */
static bool is_result(const struct uni_line *l)
{
	size_t len = l->len;

	while (len != 0 && l->s[len - 1] == ' ')
		len--;
	return len >= 2 && l->s[len - 1] == '=' && l->s[len - 2] == ' ';
}

static int sniff_folded(const char *data, size_t size)
{
	size_t pos = 0, good = 0, all = 0;
	struct uni_line l;
	double v;

	while (all < SNIFF_LINES && uni_line_next(data, size, &pos, &l)) {
		if (l.len == 0)
			continue;
		all++;
		if (l.s[0] != '#' && l.len != 0 &&
			(uni_line_too_large(l) ||
				(uni_line_take_count(&l, &v) && l.len != 0 && !is_result(&l))))
			good++;
	}
	if (good == 0 || good * 2 < all)
		return 0;
	return good == all ? 70 : 40;
}

#define AT_ONCE	     64
#define LINE_MAX_LEN ((size_t)1 << 31) /* of a line: frames after that are not read */

struct reader {
	struct uni_stack stack;
	struct uni_line last; /* the line whose frames are still on the stack; len 0: none */
	const struct uni_import_opts *opts;
	struct uni_import_stats stats;
	uint64_t line;
};

/* Length of the common beginning of both lines, up to and including a ';', and its number of
 * frames. */
static size_t shared_frames(const struct uni_line *a, const struct uni_line *b, size_t *frames_ret)
{
	size_t len = uni_min(a->len, b->len), same = 0, at = 0, frames = 0;

	while (at + 8 <= len) {
		uint64_t x = uni_memo_word(a->s + at, 8), y = uni_memo_word(b->s + at, 8);
		size_t n = x == y ? 8 : (size_t)__builtin_ctzll(x ^ y) / 8;
		uint64_t semi = uni_memo_match(x, ';');

		/* Only bytes before the first difference count. */
		semi = n < 8 ? semi & ((UINT64_C(1) << n * 8) - 1) : semi;
		for (; semi != 0; semi &= semi - 1) {
			same = at + (size_t)__builtin_ctzll(semi) / 8 + 1;
			frames++;
		}
		if (n < 8)
			break;
		at += 8;
	}
	*frames_ret = frames;
	return same;
}

static void push_frames(struct reader *r, const struct uni_line *l)
{
	struct uni_stack *s = &r->stack;
	struct uni_memo_key names[AT_ONCE];
	size_t nr = 0, pos = shared_frames(&r->last, l, &s->frames.nr);

	/* One over the limit is enough for uni_stack_flush() to see that it is too deep. */
	while (pos < l->len && s->frames.nr + nr <= UNI_IMPORT_DEPTH) {
		names[nr] = uni_memo_key_until(l->s + pos, l->len - pos, ';');
		uni_memo_prefetch(uni_profile_names(s->p), names[nr]);
		pos += names[nr++].len + 1;
		if (nr == AT_ONCE) {
			uni_stack_push_names(s, names, nr);
			nr = 0;
		}
	}
	uni_stack_push_names(s, names, nr);
}

static void no_count(struct reader *r, struct uni_line l)
{
	if (!uni_line_too_large(l)) {
		uni_stats_bad_line(&r->stats, r->line);
		return;
	}
	r->stats.too_large++;
	if (r->stats.first_too_large == 0)
		r->stats.first_too_large = r->line;
}

static int read_line(struct reader *r, struct uni_line l)
{
	double value, value2 = 0.0;

	if (l.len == 0)
		return 0;
	if (!uni_line_take_count(&l, &value)) {
		no_count(r, l);
		return 0;
	}
	if (r->opts->diff) {
		value2 = value;
		if (!uni_line_take_count(&l, &value)) {
			no_count(r, l);
			return 0;
		}
	}
	l.len = uni_min(l.len, LINE_MAX_LEN);
	push_frames(r, &l);
	/* A reversed or cut stack cannot be the beginning of the next one. */
	r->last = l;
	if (r->opts->reverse || r->stack.frames.nr >= UNI_IMPORT_DEPTH)
		r->last.len = 0;
	if (r->opts->reverse)
		uni_stack_reverse(&r->stack);
	return uni_stack_flush(&r->stack, false, value, value2, &r->stats);
}

static int read_lines(struct reader *r, const char *data, size_t size)
{
	struct uni_line l;
	size_t pos = 0;
	int rc = 0;

	r->last = (struct uni_line){ data, 0 };
	while (rc == 0 && uni_line_next(data, size, &pos, &l)) {
		r->line++;
		rc = read_line(r, l);
	}
	return rc;
}

static int begin_folded(struct reader *r, const struct uni_import_opts *opts, struct uni_profile *p)
{
	*r = (struct reader){ .opts = opts };
	if (!uni_stack_init(&r->stack, p) || (opts->diff && uni_profile_enable_second(p) != 0))
		return -UNI_ENOMEM;
	return 0;
}

static int end_folded(
	struct reader *r, int rc, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	uni_stack_deinit(&r->stack);
	if (rc == -UNI_ENOMEM)
		return uni_err_set(err, UNI_ENOMEM, "out of memory after %llu stacks",
			(unsigned long long)r->stats.stacks);
	if (rc == 0 && r->stats.stacks == 0 && r->stats.too_large != 0)
		return uni_err_set(err, UNI_EFORMAT,
			"not one stack whose number has at most 15 digits: larger ones could not "
			"be added up exactly");
	if (rc == 0 && r->stats.stacks == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"not one line of the form \"frame;frame;frame %s\"%s",
			r->opts->diff ? "BEFORE AFTER" : "COUNT",
			r->line == 0 ? ": the input is empty" : "");
	if (rc == 0)
		*stats_ret = r->stats;
	return rc;
}

static int read_folded(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct reader r;
	int rc = begin_folded(&r, opts, p);

	if (rc == 0)
		rc = read_lines(&r, data, size);
	return end_folded(&r, rc, stats_ret, err);
}

/* A piece of a file. Its lines are read as soon as they are complete. */
struct piece {
	char *data;
	size_t have, cap;
};

/* Reads the complete lines, or all that is left at the end of the file. Moves the rest to the
 * front. */
static int read_piece(struct reader *r, struct piece *b, bool is_last)
{
	const char *nl = is_last ? NULL : memrchr(b->data, '\n', b->have);
	size_t size = is_last ? b->have : nl != NULL ? (size_t)(nl + 1 - b->data) : 0;
	int rc = read_lines(r, b->data, size);

	memmove(b->data, b->data + size, b->have - size);
	b->have -= size;
	return rc;
}

/* A line that is longer than the piece makes it longer. */
static bool make_room(struct piece *b)
{
	size_t cap = b->cap == 0 ? PIECE : b->cap * 2;
	char *more;

	if (b->cap - b->have >= PIECE / 2)
		return true;
	more = realloc(b->data, cap);
	if (more == NULL)
		return false;
	b->data = more;
	b->cap = cap;
	return true;
}

static int read_pieces(struct reader *r, struct piece *b, int fd, uint64_t max, struct uni_err *err)
{
	uint64_t all = b->have;
	ssize_t n = 1;
	int rc = 0;

	while (rc == 0 && n > 0) {
		rc = read_piece(r, b, false);
		if (rc == 0 && !make_room(b))
			rc = -UNI_ENOMEM;
		if (rc != 0)
			return rc;
		do
			n = read(fd, b->data + b->have, uni_min(b->cap - b->have, (size_t)PIECE));
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return uni_err_set(err, UNI_EIO, "cannot read: %s", strerror(errno));
		b->have += (size_t)n;
		all += (uint64_t)n;
		if (all > max)
			return uni_err_set(err, UNI_ERANGE, "larger than %" PRIu64 " bytes", max);
	}
	return rc == 0 ? read_piece(r, b, true) : rc;
}

static int read_stream(int fd, const char *head, size_t have, uint64_t max,
	const struct uni_import_opts *opts, struct uni_profile *p,
	struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct piece b = { .cap = have + PIECE };
	struct reader r;
	int rc = begin_folded(&r, opts, p);

	b.data = malloc(b.cap);
	if (rc == 0 && b.data == NULL)
		rc = -UNI_ENOMEM;
	if (rc == 0) {
		memcpy(b.data, head, have);
		b.have = have;
		rc = read_pieces(&r, &b, fd, max, err);
	}
	free(b.data);
	return end_folded(&r, rc, stats_ret, err);
}

const struct uni_importer uni_importer_folded = {
	.name = "folded",
	.summary = "folded stacks: one \"root;caller;leaf COUNT\" a line",
	.gives = UNI_GIVES_NAMES,
	.sniff = sniff_folded,
	.read = read_folded,
	.read_stream = read_stream,
};
