/* SPDX-License-Identifier: BSD-2-Clause */
/* The pull protocol, what a host may do with a guest: both ends in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "../support/vcpus.h"
#include "base/checked.h"
#include "gueststream.h"

#define CYCLES_10S 40000000000ull /* of a counter that says 1 GHz: more than the lease */

/* --- samples ---------------------------------------------------------------------------------- */

static void test_samples(void **state)
{
	uint64_t stack[32];
	struct uni_sample_at at = deep(stack, 32, 3);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_stream_stats st;
	struct uni_err err = { 0 };
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	uni_sample_tick(&at); /* nobody asked yet */
	assert_int_equal(samplers[0].ticks, 0);
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	assert_int_equal(uni_sample_hz(), 1000);
	uni_trace_head.tsc_hz = 0; /* then nobody asks how long this process did not run */
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 0);
	t->ops->stream_stats(t, &st);
	assert_int_equal(st.silent, 1); /* no tick came yet */
	/* Several sub-buffers' worth, and fetched now and then. */
	for (unsigned i = 0; i < 5000; i++) {
		uni_sample_tick(&at);
		if (i % 100 == 0)
			assert_int_equal(t->ops->stream_read(t, &sink), 0);
	}
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 5000);
	assert_int_equal(got.frames, 4);
	assert_int_equal(got.leaf, 0xfff);
	assert_int_equal(got.caller, 0x1000);
	assert_int_equal(got.outermost, 0x1002);
	assert_int_equal(got.stop, UNI_STOP_ROOT);
	assert_int_equal(got.sp_word, stack[0]);
	assert_int_equal(t->ops->stream_stop(t), 0);
	assert_int_equal(uni_sample_hz(), 0);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	t->ops->stream_stats(t, &st);
	assert_int_equal(st.lost, 0);
	assert_int_equal(st.samples, 5000);
	assert_int_equal(st.host_runs, 5000);
	assert_true(st.host_ns > 0);
	/* Its answers took it time, and not more than there was. */
	assert_true(st.serve_ns > 0);
	assert_int_equal(st.silent, 0);
	assert_true(guest.stats.cycles > 0);
	uni_target_detach(t);
	guest_end();
}

/* The exact number of records that were overwritten before they were fetched is counted. */
static void test_overtaken(void **state)
{
	uint64_t stack[32];
	struct uni_sample_at at = deep(stack, 32, 3);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_stream_stats st;
	struct uni_err err = { 0 };
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	uni_trace_head.tsc_hz = 0;
	for (unsigned i = 0; i < 10000; i++)
		uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	for (unsigned i = 0; i < 10; i++)
		uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_stop(t), 0);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	t->ops->stream_stats(t, &st);
	assert_true(got.nr >= 10 && got.nr < 10000);
	assert_int_equal(st.samples, got.nr);
	assert_int_equal(st.lost, 10010 - got.nr);
	uni_target_detach(t);
	guest_end();
}

/* Frame pointers that lead nowhere, out of the stack, back, and too far. */
static void test_walk(void **state)
{
	static uint64_t stack[2 * UNI_SAMPLE_DEPTH + 40];
	const unsigned words = uni_array_len(stack);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_err err = { 0 };
	struct uni_sample_at at;
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	for (unsigned i = 0; i < 8; i++) {
		uint64_t frames = 1;
		uint8_t stop = UNI_STOP_BADPTR;

		at = deep(stack, words, 3);
		switch (i) {
		case 0: /* a frame pointer that is none */
			at.fp = 1;
			break;
		case 1: /* misaligned */
			at.fp += 4;
			break;
		case 2: /* its second word is outside */
			at.fp = at.stack_high - 8;
			break;
		case 3: /* it goes back */
			stack[2] = (uint64_t)stack;
			frames = 3;
			break;
		case 4: /* in a circle */
			stack[0] = (uint64_t)stack;
			frames = 2;
			break;
		case 5: /* too deep */
			at = deep(stack, words, UNI_SAMPLE_DEPTH + 10);
			frames = UNI_SAMPLE_DEPTH;
			stop = UNI_STOP_LIMIT;
			break;
		case 6: /* no stack is known */
			at.stack_low = at.stack_high = 0;
			break;
		default: /* exactly to its end */
			at = deep(stack, words, words / 2);
			at.sp = at.fp = (uint64_t)&stack[words - 20];
			frames = 11;
			stop = UNI_STOP_ROOT;
		}
		uni_sample_tick(&at);
		assert_int_equal(t->ops->stream_read(t, &sink), 0);
		assert_int_equal(got.nr, i + 1);
		assert_int_equal(got.frames, frames);
		assert_int_equal(got.stop, stop);
	}
	uni_target_detach(t);
	guest_end();
}

/* One tick in N makes a sample, at changing places. */
static void test_rate(void **state)
{
	uint64_t stack[32], seen[10] = { 0 };
	struct uni_sample_at at = deep(stack, 32, 1);

	guest_start(NULL, false);
	uni_trace_head.tsc_hz = 0;
	uni_sample_init(samplers, 1000);
	uni_sample_set_hz(100);
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t before = samplers[0].samples;

		uni_sample_tick(&at);
		seen[i % 10] += samplers[0].samples - before;
		if (i % 10 == 0) /* the first one is a period of its own */
			assert_int_equal(samplers[0].samples, i / 10 + 1);
	}
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(seen[i], 50, 150);
	uni_sample_set_hz(5000); /* more than there are ticks: what was waited for is over soon */
	for (unsigned i = 0; i < 20; i++)
		uni_sample_tick(&at);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t before = samplers[0].samples;

		uni_sample_tick(&at);
		assert_int_equal(samplers[0].samples, before + 1);
	}
	guest_end();
}

/* Time without ticks is that of what is interrupted next; but a second or more is nobody's. */
static void test_weight(void **state)
{
	uint64_t stack[32], before, period = UINT64_MAX / 4;
	struct uni_sample_at at = deep(stack, 32, 1);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_err err = { 0 };
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	uni_trace_head.tsc_hz = period; /* a millisecond of it never passes here */
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.weight, 1);
	samplers[0].last -= period / 1000 * 7 + period / 3000;
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 2);
	assert_int_equal(got.weight, 7);
	samplers[0].last -= period + period / 2;
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.weight, 1);
	/* The time that the port took is no work of the interrupted code. */
	samplers[0].last -= period / 1000 * 7 + period / 3000;
	uni_sample_leave_out(period / 1000 * 5);
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.weight, 2);
	/* More than there was: ticks came meanwhile. */
	uni_sample_leave_out(period / 1000 * 5);
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.weight, 1);
	got.nr = 3;
	/* While it was off: nobody's, however short that was. */
	uni_sample_set_hz(0);
	uni_sample_tick(&at);
	uni_sample_set_hz(1000);
	samplers[0].last -= samplers[0].last != 0 ? period / 1000 * 7 : 0;
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 4);
	assert_int_equal(got.weight, 1);
	/* Nor is what was before the first one: a guest's counter may begin at 0. */
	uni_sample_init(samplers, 0);
	uni_trace_head.tsc_hz = UINT64_MAX / 2;
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 5);
	assert_int_equal(got.weight, 1);
	uni_trace_head.tsc_hz = period;
	got.all = 9;
	/* With a period that was chosen at random, each sample counts as often as it should
	 * have. */
	uni_sample_init(samplers, 10000);
	uni_sample_tick(&at);
	before = got.nr;
	for (unsigned i = 0; i < 100; i++) {
		samplers[0].last -= period / 10000 * 20 + period / 30000;
		uni_sample_tick(&at);
	}
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_true(got.nr - before >= 99);
	/* A third of a period is left each time: these are ticks, too. */
	assert_in_range(got.all, 9 + 202, 9 + 206);
	uni_target_detach(t);
	guest_end();
}

/* --- what may be done ------------------------------------------------------------------------- */

static const uint8_t nop[5] = { 0x0f, 0x1f, 0x44, 0, 0 };

static int patch(struct uni_target *t, uint64_t va, uint8_t len, const void *was, const void *now,
	uint64_t *written)
{
	struct uni_patch p = { .va = va, .gpa = va, .len = len };
	struct uni_patch_job job = { .patch = &p, .nr = 1 };
	int rc;

	memcpy(p.old_bytes, was, len);
	memcpy(p.new_bytes, now, len);
	rc = uni_patch_run(t, &job);
	*written = job.nr_written;
	return rc;
}

static void call_hook(uint8_t insn[5], uint8_t opcode, uint64_t at, uint64_t hook)
{
	uint32_t rel = (uint32_t)(hook - at - 5);

	insn[0] = opcode;
	memcpy(insn + 1, &rel, 4);
}

static const struct uni_trace_hooks *hooks(void)
{
	return (const struct uni_trace_hooks *)uni_trace_head.hooks;
}

static void test_patches(void **state)
{
	uint64_t va = (uint64_t)text + 16, written;
	uint8_t call[5], other[5];
	struct uni_target *t;

	guest_start(NULL, true);
	t = attached();
	memset(text, 0x90, sizeof(text));
	memcpy(text + 16, nop, 5);
	call_hook(call, 0xe8, va, hooks()->entry);
	call_hook(other, 0xe8, va, hooks()->entry + 1);
	assert_int_equal(patch(t, va, 5, nop, call, &written), 0);
	assert_int_equal(written, 1);
	assert_memory_equal(text + 16, call, 5);
	/* Asked again, as when the answer was lost: it is so already. */
	assert_int_equal(patch(t, va, 5, nop, call, &written), 0);
	assert_int_equal(written, 0);
	assert_int_equal(nr_patched, 1);
	/* Somewhere else than to a hook; something else than a site; another place. */
	assert_int_equal(patch(t, va, 5, call, other, &written), -UNI_EFAULT);
	assert_int_equal(patch(t, va, 5, call, "\x90\x90\x90\x90\x90", &written), -UNI_EFAULT);
	assert_int_equal(patch(t, va + 44, 5, nop, nop, &written), -UNI_EFAULT);
	assert_int_equal(patch(t, va - 8, 5, nop, call, &written), -UNI_EFAULT);
	assert_int_equal(
		patch(t, (uint64_t)&guest, 4, "\0\0\0\0", "\1\0\0\0", &written), -UNI_EFAULT);
	/* The bytes that are expected are not there. */
	call_hook(call, 0xe8, va + 8, hooks()->entry);
	assert_int_equal(patch(t, va + 8, 5, nop, call, &written), -UNI_EMISMATCH);
	assert_int_equal(nr_patched, 1);
	/* The control line, and nothing beside it. */
	assert_int_equal(patch(t, (uint64_t)&uni_trace_head.control.max_depth, 4, "\0\0\0\0",
				 "\5\0\0\0", &written),
		0);
	assert_int_equal(uni_trace_head.control.max_depth, 5);
	assert_int_equal(patch(t, (uint64_t)&uni_trace_head.rings, 4, &uni_trace_head.rings,
				 "\5\0\0\0", &written),
		-UNI_EFAULT);
	uni_target_detach(t);
	/* A guest that has no way to. */
	guest_end();
	guest_start(NULL, false);
	t = attached();
	assert_int_equal(patch(t, va, 5, nop, nop, &written), -UNI_ENOTSUP);
	uni_target_detach(t);
	guest_end();
}

/* The rules about text, conditions on arguments, their numbers; neither variables nor more. */
static void test_text_rules(void **state)
{
	static uint64_t room[4 + 1]; /* one behind what it is given */
	const struct uni_trace_memory none = { 0 };
	const uint64_t at = (uint64_t)room, va = (uint64_t)text + 16;
	struct uni_target *t;
	uint64_t written, ifs, end;
	uint8_t call[5];

	guest_start(NULL, true);
	t = attached();
	assert_int_equal(patch(t, at + 4, 4, "\0\0\0\0", "\1\0\0\0", &written), -UNI_EFAULT);
	assert_int_equal(uni_trace_copy_text(room, 4 * 8, &none), 0);
	assert_int_equal(patch(t, at + 4, 4, "\0\0\0\0", "\1\0\0\0", &written), 0);
	assert_int_equal(room[0] >> 32, 1);
	for (uint64_t i = 8; i < 4 * 8; i += 4)
		assert_int_equal(patch(t, at + i, 4, "\0\0\0\0", "\7\0\0\0", &written), 0);
	assert_int_equal(room[3], 0x700000007);
	assert_int_equal(patch(t, at, 4, &room[0], "\7\0\0\0", &written), -UNI_EFAULT);
	assert_int_equal(patch(t, at + 4 * 8, 4, room + 4, "\7\0\0\0", &written), -UNI_EFAULT);
	ifs = uni_trace_head.conditions;
	end = ifs + 8 + UNI_TRACE_CONDITIONS * sizeof(struct uni_trace_condition);
	assert_int_equal(patch(t, ifs + 4, 4, "\0\0\0\0", "\1\0\0\0", &written), 0);
	assert_int_equal(patch(t, end - 4, 4, "\0\0\0\0", "\7\0\0\0", &written), 0);
	memset((void *)(ifs + 4), 0, end - ifs - 4);
	assert_int_equal(patch(t, ifs, 4, (void *)ifs, "\7\0\0\0", &written), -UNI_EFAULT);
	assert_int_equal(patch(t, end, 4, (void *)end, "\7\0\0\0", &written), -UNI_EFAULT);
	ifs = uni_trace_head.reads;
	assert_int_equal(patch(t, ifs + 4, 4, "\0\0\0\0", "\1\0\0\0", &written), -UNI_EFAULT);
	memcpy(text + 16, nop, 5);
	call_hook(call, 0xe8, va, hooks()->entry_text);
	assert_int_equal(patch(t, va, 5, nop, call, &written), 0);
	assert_memory_equal(text + 16, call, 5);
	uni_target_detach(t);
	guest_end();
	uni_trace_head.text_rules = 0;
}

/* Whatever is asked for: an entry stays an entry, an exit an exit, each where it may be. */
static void test_kinds(void **state)
{
	static const uint8_t ret[5] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc };
	uint64_t va = (uint64_t)text + 16, written;
	uint8_t site[9][5];
	struct uni_target *t;

	guest_start(NULL, true);
	t = attached();
	memcpy(site[0], nop, 5);
	call_hook(site[1], 0xe8, va, hooks()->entry_any);
	call_hook(site[2], 0xe8, va, hooks()->entry_only);
	call_hook(site[3], 0xe8, va, hooks()->entry_caller);
	memcpy(site[4], ret, 5);
	call_hook(site[5], 0xe9, va, hooks()->exit_any);
	call_hook(site[6], 0xe9, va, hooks()->plain_exit);
	/* Never: */
	call_hook(site[7], 0xe9, va, hooks()->entry);
	call_hook(site[8], 0xe8, va, hooks()->exit);
	for (unsigned from = 0; from < 9; from++) {
		for (unsigned to = 0; to < 9; to++) {
			bool good = from < 7 && to < 7 && (from < 4) == (to < 4);
			int rc;

			memcpy(text + 16, site[from], 5);
			rc = patch(t, va, 5, site[from], site[to], &written);
			assert_int_equal(rc, good ? 0 : -UNI_EFAULT);
			assert_memory_equal(text + 16, site[good ? to : from], 5);
		}
	}
	/* If the guest knows its entries: patching works at an entry, and behind its endbr64, but
	 * not at another nop. */
	guest.config.nr_entries = 1;
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t entry = va - 4 * i;

		guest.config.entries = &entry;
		memcpy(text + 16, nop, 5);
		assert_int_equal(patch(t, va, 5, nop, site[1], &written), i < 2 ? 0 : -UNI_EFAULT);
		memcpy(text + 16, ret, 5);
		assert_int_equal(patch(t, va, 5, ret, site[5], &written), 0);
	}
	guest.config.entries = NULL;
	uni_target_detach(t);
	guest_end();
}

static void test_reads(void **state)
{
	static uint8_t buf[3 * UNI_TRACE_SUB_SIZE];
	static const uint64_t secret = 42;
	struct uni_target_info info;
	struct uni_target *t;
	struct uni_gmem *m;

	guest_start(NULL, false);
	t = attached();
	m = t->ops->gmem(t);
	t->ops->info(t, &info);
	assert_string_equal(info.build_id, "deadbeef");
	assert_int_equal(info.trace_head, (uint64_t)&uni_trace_head);
	assert_null(strchr(info.name, '\t'));
	/* More than one answer holds. */
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(cpu.wptr & ~0xffffull), buf, 0x10000), 0);
	assert_memory_equal(buf, (void *)(cpu.wptr & ~0xffffull), 0x10000);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of((uint64_t)&cpu), buf, sizeof(cpu)), 0);
	assert_int_equal(
		uni_gmem_read(m, uni_gpa_of((uint64_t)&cpu), buf, sizeof(cpu) + 1), -UNI_EFAULT);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of((uint64_t)&secret), buf, 8), -UNI_EFAULT);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of((uint64_t)text), buf, sizeof(text)), 0);
	assert_int_equal(
		uni_gmem_read(m, uni_gpa_of((uint64_t)text), buf, sizeof(text) + 1), -UNI_EFAULT);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(UINT64_MAX - 7), buf, 8), -UNI_EFAULT);
	uni_target_detach(t);
	guest_end();
}

/* A hold stops the rings, and what was stopped before stays so. */
static void test_freeze(void **state)
{
	struct uni_regs regs[UNI_VCPU_MAX];
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), -UNI_ENOTSUP);
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, UNI_SNAP_HOLD), 0);
	assert_false(regs[0].pc_valid);
	assert_int_equal(uni_trace_head.frozen, 1);
	assert_int_equal(t->ops->release(t), 0);
	assert_int_equal(uni_trace_head.frozen, 0);
	uni_trace_freeze();
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, UNI_SNAP_HOLD), 0);
	assert_int_equal(t->ops->release(t), 0);
	assert_int_equal(uni_trace_head.frozen, 1);
	uni_trace_thaw();
	/* The next client finds them running, if the one before died. */
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, UNI_SNAP_HOLD), 0);
	((struct uni_stream_target *)t)->link.gone = true;
	uni_target_detach(t);
	assert_int_equal(uni_trace_head.frozen, 1);
	t = attached();
	assert_int_equal(uni_trace_head.frozen, 0);
	uni_target_detach(t);
	guest_end();
}

/* A host that died: its samples end by themselves. */
static void test_lease(void **state)
{
	struct uni_err err = { 0 };
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	((struct uni_stream_target *)t)->link.gone = true;
	uni_target_detach(t);
	(void)uni_stream_poll(&guest, 100);
	assert_int_equal(uni_sample_hz(), 1000);
	guest.heard -= CYCLES_10S;
	(void)uni_stream_poll(&guest, 100);
	assert_int_equal(uni_sample_hz(), 0);
	/* Another host that comes finds them off. */
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	((struct uni_stream_target *)t)->link.gone = true;
	uni_target_detach(t);
	assert_int_equal(uni_sample_hz(), 1000);
	t = attached();
	assert_int_equal(uni_sample_hz(), 0);
	uni_target_detach(t);
	/* Those that the guest asked for itself do not. */
	uni_sample_set_hz(10);
	(void)uni_stream_poll(&guest, 100);
	assert_int_equal(uni_sample_hz(), 10);
	guest_end();
}

/* --- the key ---------------------------------------------------------------------------------- */

static void test_key(void **state)
{
	static const uint8_t wrong[UNI_STREAM_KEY_BYTES] = "another key";
	struct uni_err err = { 0 };
	struct uni_target *t = NULL;
	struct uni_stream_target *s;
	uint8_t buf[64];

	guest_start(key, false);
	assert_int_equal(attach(NULL, &t, &err), -UNI_EPERM);
	assert_non_null(strstr(err.msg, "key=FILE"));
	memset(&err, 0, sizeof(err));
	assert_int_equal(attach(wrong, &t, &err), -UNI_EPERM);
	assert_true(guest.stats.refused > 0);
	memset(&err, 0, sizeof(err));
	assert_int_equal(attach(key, &t, &err), 0);
	s = (struct uni_stream_target *)t;
	assert_int_equal(uni_link_read(&s->link, (uint64_t)&cpu, buf, 64), 0);
	/* Somebody else's frame on the same line: no seal, then the wrong one. */
	s->link.proved = false;
	s->link.tries = 1;
	assert_int_equal(uni_link_read(&s->link, (uint64_t)&cpu, buf, 64), -UNI_EGONE);
	s->link.gone = false;
	s->link.proved = true;
	s->link.secrets.to_guest[0] ^= 1;
	assert_int_equal(uni_link_read(&s->link, (uint64_t)&cpu, buf, 64), -UNI_EGONE);
	s->link.gone = false;
	s->link.secrets.to_guest[0] ^= 1;
	assert_int_equal(uni_link_read(&s->link, (uint64_t)&cpu, buf, 64), 0);
	/* An old one once more. */
	s->link.id -= 2;
	assert_int_equal(uni_link_read(&s->link, (uint64_t)&cpu, buf, 64), -UNI_EGONE);
	uni_target_detach(t);
	guest_end();
	/* A guest that has none is not believed by who asked for one. */
	guest_start(NULL, false);
	memset(&err, 0, sizeof(err));
	assert_int_equal(attach(key, &t, &err), -UNI_EPERM);
	guest_end();
}

static void test_hash(void **state)
{
	static const uint8_t want[16] = { 0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e,
		0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9 };
	uint8_t k[16], message[15], hash[16];

	for (uint8_t i = 0; i < 16; i++)
		k[i] = i;
	memcpy(message, k, sizeof(message));
	/* The test vector of SipHash's authors for 15 bytes; the check value of CRC-32C. */
	uni_stream_hash(k, message, sizeof(message), hash);
	assert_memory_equal(hash, want, 16);
	assert_int_equal(uni_stream_crc(0, "123456789", 9), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_patches),
		cmocka_unit_test(test_text_rules),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
