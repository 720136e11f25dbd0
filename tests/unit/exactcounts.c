/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact counts as QEMU's plugin leaves them: what is taken, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/exact.h"

static struct file {
	struct uni_exact_header head;
	struct uni_exact_function function[3];
	struct uni_exact_node node[4];
	struct uni_exact_block block[2];
	uint8_t length[8];
	struct uni_exact_cut cut[1];
} f;

#define PART(member, n)                                        \
	{                                                      \
		.at = offsetof(struct file, member), .nr = (n) \
	}

static void fill(void)
{
	f = (struct file){
		.head = { .magic = UNI_EXACT_MAGIC,
			.mode = UNI_EXACT_TREE,
			.state = UNI_EXACT_ENDED,
			.machine = 62,
			.nr_vcpus = 2,
			.part = { [UNI_EXACT_PART_FUNCTIONS] = PART(function, 3),
				[UNI_EXACT_PART_NODES] = PART(node, 4),
				[UNI_EXACT_PART_BLOCKS] = PART(block, 2),
				[UNI_EXACT_PART_LENGTHS] = PART(length, 6),
				[UNI_EXACT_PART_CUTS] = PART(cut, 1) },
			.stat = { [UNI_EXACT_CALLS] = 7 } },
		.function = { { 0, 0 }, { 0x1000, 0x1010 }, { 0x9000, 0 } },
		.node = { { 0, 0, 5, 0 }, { 0, 1, 30, 1 }, { 1, 2, 12, 3 }, { 2, 1, 4, 1 } },
		.block = { { 0x1000, 10, 3, 0 }, { 0x1008, 4, 3, 3 } },
		.length = { 1, 2, 15, 4, 5, 1 },
		.cut = { { 1, 2, 4 } },
	};
}

static int parse(struct uni_exact **ret)
{
	return uni_exact_parse(&f, sizeof(f), ret, NULL);
}

static void taken(void **state)
{
	const struct uni_exact_node *node;
	struct uni_exact *e = NULL;
	uint32_t nr;

	(void)state;
	fill();
	assert_int_equal(parse(&e), 0);
	assert_int_equal(uni_exact_state(e), UNI_EXACT_ENDED);
	assert_int_equal(uni_exact_nr_vcpus(e), 2);
	assert_int_equal(uni_exact_insns(e), 46);
	assert_int_equal(uni_exact_before(e), 5);
	assert_int_equal(uni_exact_stat(e, UNI_EXACT_CALLS), 7);
	node = uni_exact_nodes(e, &nr);
	assert_int_equal(nr, 4);
	assert_int_equal(node[2].calls, 3);
	assert_int_equal(uni_exact_functions(e, &nr)[2].start, 0x9000);
	assert_int_equal(nr, 3);
	uni_exact_destroy(e);
	uni_exact_destroy(NULL);
}

/* Each of them alone makes it something else. */
static void refused(void **state)
{
	struct uni_exact *e = NULL;

#define REFUSED(change)                                    \
	do {                                               \
		fill();                                    \
		change;                                    \
		assert_int_equal(parse(&e), -UNI_EFORMAT); \
		assert_null(e);                            \
	} while (0)

	(void)state;
	REFUSED(f.head.magic++);
	REFUSED(f.head.mode = 9);
	REFUSED(f.head.state = 0);
	REFUSED(f.head.state = 5);
	REFUSED(f.head.nr_vcpus = 0);
	REFUSED(f.head.nr_vcpus = 1u << 20);
	REFUSED(f.head.part[UNI_EXACT_PART_NODES].nr = 0);
	REFUSED(f.head.part[UNI_EXACT_PART_NODES].nr = UINT64_MAX / 24);
	REFUSED(f.head.part[UNI_EXACT_PART_NODES].at = sizeof(f) - 8);
	REFUSED(f.head.part[UNI_EXACT_PART_CUTS].at = UINT64_MAX);
	REFUSED(f.head.part[UNI_EXACT_PART_LENGTHS].nr = UNI_EXACT_LENGTHS + 1u);
	REFUSED(f.function[1].end = f.function[1].start);
	REFUSED(f.node[0].function = 1);
	REFUSED(f.node[1].parent = 1);
	REFUSED(f.node[2].parent = UINT32_MAX);
	REFUSED(f.node[3].function = 3);
	REFUSED(f.node[3].insns = UINT64_MAX);
	REFUSED(f.node[3].insns = INT64_MAX);
	REFUSED(f.block[0].nr_insns = 0);
	REFUSED(f.block[0].nr_insns = UNI_EXACT_BLOCK_INSN + 1u);
	REFUSED(f.block[1].lengths = 4);
	REFUSED(f.block[1].lengths = UINT32_MAX);
	REFUSED(f.length[5] = 0);
	REFUSED(f.length[5] = 17);
	REFUSED(f.cut[0].block = 2);
	REFUSED(f.cut[0].insn = 3);
	REFUSED(f.cut[0].number = 5);
	fill();
	assert_int_equal(uni_exact_parse(&f, sizeof(f.head) - 1, &e, NULL), -UNI_EFORMAT);
	assert_int_equal(uni_exact_parse("", 0, &e, NULL), -UNI_EFORMAT);
}

/* Without a tree: each block counts for the function that holds its first byte. */
static void blocks_add_up(void **state)
{
	static const struct {
		uint64_t pc;
		uint32_t at; /* the function, 0: none */
		bool begins;
	} c[] = {
		{ 0xfff, 0, false },
		{ 0x1000, 1, true },
		{ 0x1001, 1, false },
		{ 0x100f, 1, false },
		{ 0x1010, 2, true },
		{ 0x101f, 2, false },
		{ 0x1020, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		const struct uni_exact_node *node;
		struct uni_exact *e = NULL;
		uint32_t nr;

		fill();
		f.head.mode = UNI_EXACT_COUNTS;
		f.head.part[UNI_EXACT_PART_NODES].nr = 3;
		memset(f.node, 0, sizeof(f.node));
		for (uint32_t k = 1; k < 3; k++)
			f.node[k].function = k;
		f.function[2] = (struct uni_exact_function){ 0x1010, 0x1020 };
		f.block[0].pc = c[i].pc; /* 10 times 3 instructions; the other block: 4 times 3 */
		f.block[1].pc = 0x5000;
		f.cut[0] = (struct uni_exact_cut){ .block = 0, .insn = 0, .number = 2 };
		assert_int_equal(parse(&e), 0);
		node = uni_exact_nodes(e, &nr);
		assert_int_equal(nr, 3);
		for (uint32_t k = 0; k < 3; k++) {
			assert_int_equal(
				node[k].insns, (k == 0 ? 12 : 0) + (k == c[i].at ? 24 : 0));
			assert_int_equal(node[k].calls, k == c[i].at && c[i].begins ? 8 : 0);
		}
		uni_exact_destroy(e);
	}
}

/* Before the image runs, it is firmware; later it is code without a function. */
static void rest_is_split(void **state)
{
	struct uni_exact *e = NULL;
	const struct uni_exact_node *node;
	uint32_t nr;

	(void)state;
	for (unsigned began = 0; began < 2; began++) {
		fill();
		f.head.mode = UNI_EXACT_COUNTS;
		memset(f.node, 0, sizeof(f.node));
		for (uint32_t k = 1; k < 3; k++)
			f.node[k].function = k;
		f.node[0].insns = 7;
		f.function[2] = (struct uni_exact_function){ 0x9000, 0x9010 };
		f.block[0].pc = began ? 0x9000 : 0x4000; /* 30 instructions */
		f.block[1].pc = 0x5000;			 /* 12, of which 4 did not run */
		assert_int_equal(parse(&e), 0);
		node = uni_exact_nodes(e, &nr);
		assert_int_equal(nr, 4);
		assert_int_equal(uni_exact_before(e), began ? 7 : 38);
		assert_int_equal(node[3].insns, began ? 1 : 0);
		assert_int_equal(uni_exact_insns(e), began ? 31 : 0);
		uni_exact_destroy(e);
	}
	f.node[0].insns = 9;
	assert_int_equal(parse(&e), -UNI_EFORMAT);
	f.node[0].insns = 7;
	f.node[3].function = 1;
	assert_int_equal(parse(&e), -UNI_EFORMAT);
}

/* QEMU's file is locked while QEMU lives. */
static void killed_or_running(void **state)
{
	static const struct {
		enum uni_exact_state state, then;
		bool locked, known; /* known: the open frames */
	} c[] = {
		{ UNI_EXACT_RUNS, UNI_EXACT_RUNS, true, false },
		{ UNI_EXACT_RUNS, UNI_EXACT_KILLED, false, true },
		{ UNI_EXACT_ENDED, UNI_EXACT_ENDED, false, true },
		{ UNI_EXACT_REACHED, UNI_EXACT_REACHED, true, true },
	};
	char dir[] = "/tmp/exactcounts.XXXXXX", path[64], guest[64];
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(guest, sizeof(guest), "%s/guest-0", dir);
	(void)snprintf(path, sizeof(path), "%s/guest-0/exact", dir);
	assert_int_equal(mkdir(guest, 0700), 0);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct uni_exact *e = NULL, *again = NULL;
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

		fill();
		f.head.state = c[i].state;
		f.head.stat[UNI_EXACT_CALLS] = 70;
		f.head.stat[UNI_EXACT_TAIL_CALLS] = 5;
		f.head.stat[UNI_EXACT_RETURNS] = 50;
		f.head.stat[UNI_EXACT_DROPPED] = 3;
		f.head.stat[UNI_EXACT_OPEN] = c[i].state == UNI_EXACT_RUNS ? 0 : 12;
		assert_int_equal(write(fd, &f, sizeof(f)), sizeof(f));
		if (c[i].locked)
			assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
		assert_int_equal(uni_exact_take(path, &e, NULL), 0);
		assert_int_equal(uni_exact_state(e), c[i].then);
		assert_int_equal(uni_exact_knows(e, UNI_EXACT_OPEN), c[i].known);
		assert_true(uni_exact_knows(e, UNI_EXACT_CALLS));
		if (c[i].known)
			assert_int_equal(uni_exact_stat(e, UNI_EXACT_OPEN), 12);
		/* A session keeps what it was, and nobody writes it any more. */
		(void)close(fd);
		assert_int_equal(uni_exact_load(dir, 0, &again, NULL), 0);
		assert_int_equal(uni_exact_state(again), c[i].state);
		uni_exact_destroy(again);
		uni_exact_destroy(e);
	}
	(void)unlink(path);
	(void)rmdir(guest);
	(void)rmdir(dir);
}

/* Counts alone have no calls, and no cuts until the end. */
static void not_counted(void **state)
{
	struct uni_exact *e = NULL;

	(void)state;
	for (unsigned ended = 0; ended < 2; ended++) {
		fill();
		f.head.mode = UNI_EXACT_COUNTS;
		f.head.state = ended ? UNI_EXACT_ENDED : UNI_EXACT_KILLED;
		f.head.part[UNI_EXACT_PART_NODES].nr = 3;
		assert_int_equal(parse(&e), 0);
		assert_false(uni_exact_knows(e, UNI_EXACT_CALLS));
		assert_false(uni_exact_knows(e, UNI_EXACT_STACKS));
		assert_true(uni_exact_knows(e, UNI_EXACT_UNCOUNTED));
		assert_int_equal(uni_exact_knows(e, UNI_EXACT_CUT), ended);
		uni_exact_destroy(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),
		cmocka_unit_test(refused),
		cmocka_unit_test(blocks_add_up),
		cmocka_unit_test(rest_is_split),
		cmocka_unit_test(killed_or_running),
		cmocka_unit_test(not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
