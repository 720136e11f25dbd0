/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "recording/ctf.h"
#include "recording/ctf_trace.h"

static const uint8_t uuid[UNI_CTF_UUID] = { 0x12, 0x34, 0x56, 0x78, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
	11, 0xff };

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

static void sample_comes_back_whole(void **state)
{
	struct both *b = *state;
	const uint64_t pc[] = { 0x1000, UINT64_MAX, 0 };
	const uint8_t flags[] = { UNI_FRAME_EXACT, 0, UNI_FRAME_GUESS };
	struct uni_sample s = { .t_ns = 77,
		.weight = 3,
		.thread = 9,
		.pause_ns = 1234,
		.stop = UNI_STOP_LOOP,
		.state = UNI_VCPU_HALTED,
		.nr = 3,
		.pc = pc,
		.flags = flags };
	struct uni_sample got;

	uni_ctf_packet_start(&b->w, 5);
	assert_true(uni_ctf_packet_add(&b->w, &s));
	s.t_ns = 99;
	s.weight = UINT64_MAX; /* imports count bytes and nanoseconds */
	assert_true(uni_ctf_packet_add(&b->w, &s));
	uni_ctf_packet_finish(&b->w, uuid, 42, 7);
	assert_int_equal(b->w.nr_stacks, 1);
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), 0);
	assert_memory_equal(b->r.h.uuid, uuid, sizeof(uuid));
	assert_int_equal(b->r.h.seq, 42);
	assert_int_equal(b->r.h.discarded, 7);
	assert_int_equal(b->r.h.begin_ns, 77);
	assert_int_equal(b->r.h.end_ns, 99);
	assert_true(uni_ctf_reader_next(&b->r, &got));
	assert_int_equal(got.t_ns, 77);
	assert_int_equal(got.weight, 3);
	assert_int_equal(got.vcpu, 5);
	assert_int_equal(got.thread, 9);
	assert_int_equal(got.pause_ns, 1234);
	assert_int_equal(got.stop, UNI_STOP_LOOP);
	assert_int_equal(got.state, UNI_VCPU_HALTED);
	assert_int_equal(got.nr, 3);
	assert_memory_equal(got.pc, pc, sizeof(pc));
	assert_memory_equal(got.flags, flags, sizeof(flags));
	assert_true(uni_ctf_reader_next(&b->r, &got));
	assert_int_equal(got.t_ns, 99);
	assert_true(got.weight == UINT64_MAX);
	assert_false(uni_ctf_reader_next(&b->r, &got));
}

/* Fills a packet with chains of many lengths, most of them new; returns how many went in. */
static uint32_t fill(struct uni_ctf_packet *p, uint64_t *pc)
{
	struct uni_sample s = { .weight = 1, .pc = pc };
	uint32_t n = 0;

	uni_ctf_packet_start(p, 0);
	for (;; n++) {
		s.t_ns = 1000 + n;
		s.nr = (uint16_t)(n % 7 * (n % 7));
		pc[0] = n % 50 * 16;
		if (!uni_ctf_packet_add(p, &s))
			return n;
	}
}

static void full_packet_decodes(void **state)
{
	struct both *b = *state;
	uint64_t pc[UNI_CHAIN_MAX] = { 0 };
	uint32_t n = fill(&b->w, pc), got = 0;
	struct uni_sample s;

	assert_in_range(n, 500, 2500);
	assert_in_range(b->w.len, UNI_CTF_PACKET_MAX - 1000, UNI_CTF_PACKET_MAX);
	assert_true(b->w.nr_stacks < n / 2); /* equal chains are written once */
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), 0);
	for (; uni_ctf_reader_next(&b->r, &s); got++) {
		assert_int_equal(s.t_ns, 1000 + got);
		assert_int_equal(s.nr, got % 7 * (got % 7));
		if (s.nr != 0)
			assert_int_equal(s.pc[0], got % 50 * 16);
	}
	assert_int_equal(got, n);
}

static void smallest_samples_fill_the_table(void **state)
{
	struct both *b = *state;
	uint64_t pc;
	struct uni_sample s = { .nr = 1, .pc = &pc };
	uint32_t n = 0, got = 0;

	uni_ctf_packet_start(&b->w, 0);
	for (pc = 0; uni_ctf_packet_add(&b->w, &s); pc++)
		n++;
	assert_int_equal(b->w.nr_stacks, n);
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), 0);
	for (; uni_ctf_reader_next(&b->r, &s); got++)
		assert_int_equal(s.pc[0], got);
	assert_int_equal(got, n);
}

/* One leaf, and as many callers as fit: stacks that are nearly equal are kept apart. */
static void stacks_of_one_leaf_stay_apart(void **state)
{
	struct both *b = *state;
	uint64_t pc[] = { 0x1000, 0 };
	struct uni_sample s = { .weight = 1, .nr = 2, .pc = pc }, got;
	uint32_t nr = 0;

	uni_ctf_packet_start(&b->w, 0);
	for (pc[1] = 1; uni_ctf_packet_add(&b->w, &s); pc[1]++)
		nr++;
	assert_int_equal(b->w.nr_stacks, nr);
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), 0);
	for (uint64_t caller = 1; caller <= nr; caller++) {
		assert_true(uni_ctf_reader_next(&b->r, &got));
		assert_int_equal(got.nr, 2);
		assert_int_equal(got.pc[0], 0x1000);
		assert_int_equal(got.pc[1], caller);
	}
	assert_false(uni_ctf_reader_next(&b->r, &got));
}

static void longest_chain_fits(void **state)
{
	struct both *b = *state;
	uint64_t pc[UNI_CHAIN_MAX];
	struct uni_sample s = { .nr = UNI_CHAIN_MAX, .pc = pc, .weight = 1 };

	memset(pc, 0xab, sizeof(pc));
	uni_ctf_packet_start(&b->w, 0);
	assert_true(uni_ctf_can_hold(&s));
	assert_true(uni_ctf_packet_add(&b->w, &s));
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	assert_int_equal(uni_ctf_reader_open(&b->r, b->w.data, b->w.len), 0);
	assert_true(uni_ctf_reader_next(&b->r, &s));
	assert_int_equal(s.nr, UNI_CHAIN_MAX);
	s.nr = UNI_CHAIN_MAX + 1;
	assert_false(uni_ctf_can_hold(&s));
}

/* In memory of exactly its size, so that the sanitizer sees each byte read too many. */
static void try(struct both *b, const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + (size == 0));
	struct uni_sample s;
	size_t n = 0;

	assert_non_null(copy);
	memcpy(copy, data, size);
	if (uni_ctf_reader_open(&b->r, copy, size) == 0) {
		while (uni_ctf_reader_next(&b->r, &s)) {
			assert_true(s.nr <= UNI_CHAIN_MAX);
			assert_true(s.stop < UNI_STOP_NR);
			assert_true(++n <= UNI_CTF_PACKET_MAX);
		}
	}
	free(copy);
}

static void corrupt_packets_are_refused_or_sane(void **state)
{
	struct both *b = *state;
	uint64_t pc[UNI_CHAIN_MAX] = { 1 };
	struct uni_sample s = { .weight = 1, .pc = pc, .nr = 3 };
	uint8_t *data;

	uni_ctf_packet_start(&b->w, 0);
	for (s.t_ns = 10; s.t_ns < 20; s.t_ns++) {
		pc[0] = s.t_ns % 3;
		assert_true(uni_ctf_packet_add(&b->w, &s));
	}
	uni_ctf_packet_finish(&b->w, uuid, 0, 0);
	data = b->w.data;
	for (size_t len = 0; len < b->w.len; len++) {
		assert_int_equal(uni_ctf_reader_open(&b->r, data, len), -UNI_EFORMAT);
		try(b, data, len);
	}
	for (size_t i = 0; i < b->w.len; i++) {
		uint8_t old = data[i];

		for (unsigned bit = 0; bit < 8; bit++) {
			data[i] = (uint8_t)(old ^ 1u << bit);
			try(b, data, b->w.len);
		}
		data[i] = 0xff;
		try(b, data, b->w.len);
		data[i] = old;
	}
	assert_int_equal(uni_ctf_reader_open(&b->r, data, b->w.len), 0);
}

static void uuid_round_trip(void **state)
{
	uint8_t back[UNI_CTF_UUID];
	char text[37];

	uni_ctf_uuid_print(uuid, text);
	assert_string_equal(text, "12345678-0102-0304-0506-0708090a0bff");
	assert_true(uni_ctf_uuid_parse(text, back));
	assert_memory_equal(back, uuid, sizeof(uuid));
	assert_false(uni_ctf_uuid_parse("", back));
	assert_false(uni_ctf_uuid_parse("12345678-0102-0304-0506-0708090a0bf", back));
	assert_false(uni_ctf_uuid_parse("12345678-0102-0304-0506-0708090a0bfff", back));
	assert_false(uni_ctf_uuid_parse("12345678x0102-0304-0506-0708090a0bff", back));
	assert_false(uni_ctf_uuid_parse("1234567G-0102-0304-0506-0708090a0bff", back));
}

static void metadata_says_what_it_must(void **state)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_ctf_metadata(&b, uuid, 1700000000123456789ull);
	assert_int_equal(strncmp(b.s, "/* CTF 1.8 */", 13), 0);
	assert_non_null(strstr(b.s, "uuid = \"12345678-0102-0304-0506-0708090a0bff\""));
	assert_non_null(strstr(b.s, "offset_s = 1700000000;\n\toffset = 123456789;"));
	for (unsigned i = 0; i < UNI_STOP_NR; i++)
		assert_non_null(strstr(b.s, uni_stop_name(i)));
	uni_strbuf_deinit(&b);
}

/* A guest's counter of 1 kHz was 2500 at 4.25 s, which was 1700000004.37 s: it began 2.5 s before.
 */
static void metadata_has_the_zero_of_clocks(void **state)
{
	struct uni_record_trace_cpu cpu = {
		.clock = { .cycles = 2500, .ns = 4250000000, .hz = 1000, .error_ns = UINT64_MAX }
	};
	struct uni_record_trace trace = { .nr_cpus = 1, .cpu = &cpu };
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_ctf_metadata_trace(&b, &trace, 1700000000120000000ull);
	assert_non_null(strstr(b.s, "offset_s = 1700000001;\n\toffset = 870;"));
	uni_strbuf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sample_comes_back_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(full_packet_decodes, setup, teardown),
		cmocka_unit_test_setup_teardown(smallest_samples_fill_the_table, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_of_one_leaf_stay_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(longest_chain_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(
			corrupt_packets_are_refused_or_sane, setup, teardown),
		cmocka_unit_test(uuid_round_trip),
		cmocka_unit_test(metadata_says_what_it_must),
		cmocka_unit_test(metadata_has_the_zero_of_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
