/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "gueststream.h"

#define ARCH_SET_GS 0x1001
#define SUBS	    4

struct uni_trace_cpu cpu __attribute__((aligned(64)));
struct uni_trace_sampler samplers[1] __attribute__((aligned(64)));
struct uni_stream guest;
static void *memory;
uint8_t text[64] __attribute__((aligned(16)));
unsigned nr_patched;

struct line line;

static unsigned guest_read(void *ctx, void *buf, unsigned size)
{
	unsigned n = (unsigned)uni_min((size_t)size, line.nr_to_guest);

	n = uni_min(n, 7u); /* as ports do */
	memcpy(buf, line.to_guest, n);
	line.nr_to_guest -= n;
	memmove(line.to_guest, line.to_guest + n, line.nr_to_guest);
	return n;
}

static unsigned guest_write(void *ctx, const void *data, unsigned size)
{
	const uint8_t *from = data;
	unsigned n = uni_min(size, line.room);

	for (unsigned i = 0; i < n; i++, line.sent++) {
		if (line.sent == line.lose_at || line.nr_to_host == sizeof(line.to_host))
			continue;
		line.to_host[line.nr_to_host++] =
			(uint8_t)(from[i] ^ (line.sent == line.spoil_at ? 0x40 : 0));
	}
	return n;
}

static void guest_patch(void *ctx, const struct uni_stream_patch *place, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		memcpy((void *)place[i].va, place[i].new_bytes, 5);
	nr_patched += nr;
}

int host_send(void *ctx, const void *data, size_t size, uint64_t deadline_ns)
{
	if (line.meanwhile != NULL)
		line.meanwhile();
	if (line.nr_to_guest + size > sizeof(line.to_guest))
		return -UNI_ETIMEDOUT;
	memcpy(line.to_guest + line.nr_to_guest, data, size);
	if (line.spoil_request)
		line.to_guest[line.nr_to_guest + size - 1] ^= 1;
	line.spoil_request = false;
	line.nr_to_guest += size;
	return 0;
}

static int host_receive(void *ctx, void *buf, size_t size, uint64_t deadline_ns)
{
	size_t n;

	for (int i = 0; i < 4000 && line.nr_to_host == 0; i++)
		(void)uni_stream_poll(&guest, 64);
	if (line.sent >= line.cut_at)
		return -UNI_EGONE;
	if (line.nr_to_host == 0)
		return -UNI_ETIMEDOUT;
	n = uni_min(size, line.nr_to_host);
	memcpy(buf, line.to_host, n);
	line.nr_to_host -= n;
	memmove(line.to_host, line.to_host + n, line.nr_to_host);
	return (int)n;
}

static const struct uni_line_ops ops = { .send = host_send, .receive = host_receive };
const uint8_t key[UNI_STREAM_KEY_BYTES] = "the key of tests";
static const struct {
	uint32_t n[3];
	char name[4];
	uint8_t id[4];
} note = { { 4, 4, 3 }, "GNU", { 0xde, 0xad, 0xbe, 0xef } };

void guest_start(const uint8_t *its_key, bool patches)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };
	struct uni_stream_config config = { .read = guest_read,
		.write = guest_write,
		.key = its_key,
		.name = "unit\ttest",
		.notes = &note,
		.notes_size = sizeof(note),
		.text_start = (uint64_t)text,
		.text_end = (uint64_t)text + sizeof(text),
		.patch = patches ? guest_patch : NULL };
	size_t size = (SUBS + 1) * UNI_TRACE_SUB_SIZE;

	memset(&line, 0, sizeof(line));
	line.room = 100;
	line.cut_at = line.spoil_at = line.lose_at = UINT64_MAX;
	memset(&cpu, 0, sizeof(cpu));
	memset(&uni_trace_head, 0, sizeof(uni_trace_head));
	nr_patched = 0;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu), 0);
	assert_int_equal(uni_trace_init(memory, size, 1, cpus, UNI_TRACE_OVERWRITE, 1000000000), 0);
	uni_sample_init(samplers, 0);
	uni_stream_init(&guest, &config);
}

void guest_end(void)
{
	munmap(memory, (SUBS + 1) * UNI_TRACE_SUB_SIZE);
}

int attach(const uint8_t *our_key, struct uni_target **ret, struct uni_err *err)
{
	const struct uni_line l = { .ops = &ops, .text = "the line" };
	const struct uni_attach_opts opts = { 0 };
	int rc = uni_stream_attach_line(&l, our_key, &opts, ret, err);

	/* Nobody else moves the bytes: what is not there now never comes. */
	if (rc == 0)
		((struct uni_stream_target *)*ret)->link.wait_ms = 1;
	return rc;
}

struct uni_target *attached(void)
{
	struct uni_err err = { 0 };
	struct uni_target *t = NULL;

	if (attach(NULL, &t, &err) != 0)
		fail_msg("%s", err.msg);
	return t;
}

void on_raw(void *ctx, const struct uni_stream_raw *s)
{
	struct got *g = ctx;

	g->nr++;
	g->weight = s->weight;
	g->all += s->weight;
	g->frames = s->nr;
	assert_true(s->alone);
	if (s->nr == 0) {
		g->leaf = s->regs.pc;
		g->copied = s->stack_size;
		g->regs = s->regs;
		g->other_copied = s->other_size;
		g->other_sp = s->other_sp;
		if (s->other_size != 0)
			memcpy(&g->other_word, s->other + s->other_size - 8, 8);
		memcpy(g->words, s->stack, uni_min(s->stack_size, sizeof(g->words)));
		return;
	}
	g->leaf = s->pc[0];
	g->caller = s->nr > 1 ? s->pc[1] : 0;
	g->outermost = s->pc[s->nr - 1];
	g->stop = s->stop;
	memcpy(&g->sp_word, s->stack, 8);
	assert_int_equal(s->stack_size, 16);
	assert_true(s->t_ns >= g->last_ns);
	g->last_ns = s->t_ns;
}

/* A stack of `depth` frames, each of two words. */
struct uni_sample_at deep(uint64_t *stack, unsigned words, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++) {
		stack[2 * i] = i + 1 < depth ? (uint64_t)&stack[2 * i + 2] : 0;
		stack[2 * i + 1] = 0x1000 + i;
	}
	return (struct uni_sample_at){ .pc = 0xfff,
		.sp = (uint64_t)stack,
		.fp = (uint64_t)stack,
		.stack_low = (uint64_t)stack,
		.stack_high = (uint64_t)(stack + words),
		.thread = 7 };
}

const struct uni_stream_cfg at_1000 = { .frequency = 1000, .ordered = true };
