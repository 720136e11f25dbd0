/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "recording/ctf.h"

static const uint8_t uuid[UNI_CTF_UUID] = { 9, 8, 7 };

/* Offsets of the fields behind the header of the one exit event that ends a packet. */
#define EXIT_FIELDS 54u
#define AT_ISA	    48u /* of the six bytes at the end */

struct both {
	struct uni_ctf_packet w;
	struct uni_ctf_reader r;
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct both));
	return *state == NULL;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void start(struct both *b, uint32_t vcpu)
{
	uni_ctf_packet_start(&b->w, vcpu);
	b->w.stream = UNI_CTF_EXITS;
}

static const uint64_t pc[] = { 0xffffffff80200058, 0xffffffff80201000 };
static const uint8_t flags[] = { 0, UNI_FRAME_GUESS };

static struct uni_stream_exit example(void)
{
	return (struct uni_stream_exit){ .t_ns = 1000,
		.weight = 10,
		.host_ns = 123456,
		.asleep_ns = 1111,
		.stolen_ns = 222,
		.info = 0x3f8,
		.reason = 0x7b,
		.isa = UNI_EXIT_ISA_SVM,
		.info_kind = UNI_EXIT_INFO_PORT,
		.access = UNI_EXIT_ACCESS_WRITE,
		.size = 4,
		.userspace = true,
		.stop = UNI_STOP_ROOT,
		.nr = 2,
		.pc = pc,
		.flags = flags };
}

static void exit_comes_back_whole(void **state)
{
	struct both *b = *state;
	struct uni_stream_exit e = example(), got;

	start(b, 3);
	assert_true(uni_ctf_packet_add_exit(&b->w, &e));
	e.t_ns = 2000;
	e.weight = UINT64_MAX;
	e.userspace = false;
	assert_true(uni_ctf_packet_add_exit(&b->w, &e));
	assert_int_equal(b->w.nr_stacks, 1);
	assert_int_equal(b->w.nr_samples, 2);
	uni_ctf_packet_finish(&b->w, uuid, 5, 6);
	assert_int_equal(uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len), 0);
	assert_int_equal(b->r.h.stream, UNI_CTF_EXITS);
	assert_int_equal(b->r.h.discarded, 6);
	assert_true(uni_ctf_reader_next_exit(&b->r, &got));
	assert_int_equal(got.vcpu, 3);
	assert_int_equal(got.t_ns, 1000);
	assert_int_equal(got.weight, 10);
	assert_int_equal(got.host_ns, 123456);
	assert_int_equal(got.asleep_ns, 1111);
	assert_int_equal(got.stolen_ns, 222);
	assert_int_equal(got.info, 0x3f8);
	assert_int_equal(got.reason, 0x7b);
	assert_int_equal(got.isa, UNI_EXIT_ISA_SVM);
	assert_int_equal(got.info_kind, UNI_EXIT_INFO_PORT);
	assert_int_equal(got.access, UNI_EXIT_ACCESS_WRITE);
	assert_int_equal(got.size, 4);
	assert_true(got.userspace);
	assert_int_equal(got.stop, UNI_STOP_ROOT);
	assert_int_equal(got.nr, 2);
	assert_memory_equal(got.pc, pc, sizeof(pc));
	assert_memory_equal(got.flags, flags, sizeof(flags));
	assert_true(uni_ctf_reader_next_exit(&b->r, &got));
	assert_true(got.weight == UINT64_MAX && !got.userspace && got.t_ns == 2000);
	assert_false(uni_ctf_reader_next_exit(&b->r, &got));
}

/* Each kind of packet is refused by the reader of the other. */
static void kinds_are_not_mixed_up(void **state)
{
	struct both *b = *state;
	struct uni_stream_exit e = example();
	struct uni_sample s = { .t_ns = 1, .weight = 1, .nr = 2, .pc = pc, .flags = flags };

	start(b, 0);
	assert_true(uni_ctf_packet_add_exit(&b->w, &e));
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), -UNI_EFORMAT);
	uni_ctf_packet_start(&b->w, 0);
	assert_true(uni_ctf_packet_add(&b->w, &s));
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len), -UNI_EFORMAT);
	b->w.data[20] = UNI_CTF_STREAM_NR;
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), -UNI_EFORMAT);
	assert_int_equal(uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len), -UNI_EFORMAT);
}

static void full_packet_decodes(void **state)
{
	struct both *b = *state;
	uint64_t deep[UNI_CHAIN_MAX] = { 0 };
	struct uni_stream_exit e = example();
	uint32_t n = 0, got = 0;

	start(b, 0);
	for (e.pc = deep, e.flags = NULL;; n++) {
		e.t_ns = n;
		e.nr = (uint16_t)(n % 40);
		deep[0] = n % 80;
		if (!uni_ctf_packet_add_exit(&b->w, &e))
			break;
	}
	assert_in_range(n, 300, 1040);
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len), 0);
	for (; uni_ctf_reader_next_exit(&b->r, &e); got++) {
		assert_int_equal(e.nr, got % 40);
		assert_int_equal(e.t_ns, got);
		if (e.nr != 0)
			assert_int_equal(e.pc[0], got % 80);
	}
	assert_int_equal(got, n);
	start(b, 0);
	e = example();
	e.nr = UNI_CHAIN_MAX;
	e.pc = deep;
	e.flags = NULL;
	assert_true(uni_ctf_packet_add_exit(&b->w, &e)); /* the longest goes into an empty one */
}

static void what_cannot_be_is_refused(void **state)
{
	struct both *b = *state;
	struct uni_stream_exit e = example();
	static const struct {
		unsigned at;
		uint8_t value;
	} bad[] = {
		{ 0, 1 }, /* a stack that is not there */
		{ AT_ISA, UNI_EXIT_ISA_NR },
		{ AT_ISA + 1, UNI_EXIT_INFO_NR },
		{ AT_ISA + 2, UNI_EXIT_ACCESS_NR },
		{ AT_ISA + 4, 2 }, /* userspace */
		{ AT_ISA + 5, UNI_STOP_NR },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start(b, 0);
		assert_true(uni_ctf_packet_add_exit(&b->w, &e));
		uni_ctf_packet_finish(&b->w, uuid, 0, 0);
		assert_int_equal(uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len), 0);
		b->w.data[b->w.len - EXIT_FIELDS + bad[i].at] = bad[i].value;
		assert_int_equal(
			uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len), -UNI_EFORMAT);
	}
	for (uint32_t cut = 1; cut < EXIT_FIELDS; cut++)
		assert_int_equal(
			uni_ctf_reader_open_exits(&b->r, b->w.data, b->w.len - cut), -UNI_EFORMAT);
	e.stop = UNI_STOP_NR;
	assert_false(uni_ctf_can_hold_exit(&e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exit_comes_back_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds_are_not_mixed_up, setup, teardown),
		cmocka_unit_test_setup_teardown(full_packet_decodes, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
