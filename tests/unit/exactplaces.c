/* SPDX-License-Identifier: BSD-2-Clause */
/* QEMU's plugin finds the image's code, in pages that are given to it, without QEMU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

#define PAGE   4096u
#define LINKED UINT64_C(0x200800) /* not at the begin of a page */
#define SIZE   (3 * PAGE)
#define SLOT   UINT64_C(0x600100000000)
#define AWAY   UINT64_C(0xffffffff9d9d0000)
#define SHIFT  UINT64_C(0x700000000000)

struct plugin plugin;
static struct uni_exact_header header;
static uint8_t file[SIZE + PAGE]; /* as linked: the image, then a program of one page */
static struct code_piece piece[2];
static _Alignas(PAGE) uint8_t page[PAGE];

static uint64_t at;
static void *code;

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	(void)tb;
	return at;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx)
{
	(void)tb;
	(void)idx;
	return NULL;
}

void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn)
{
	(void)insn;
	return code;
}

/* A block at pc, as the guest has `page` there; its address as linked. */
static uint64_t runs(uint64_t pc)
{
	at = pc;
	code = page + pc % PAGE;
	return places_linked(pc, places_moved(NULL));
}

/* The guest's page has the image's bytes of the page with that offset in the image's pages. */
static void holds(size_t offset)
{
	memset(page, 0xcc, PAGE);
	for (size_t i = 0; i < PAGE; i++) {
		if (offset + i >= LINKED % PAGE && offset + i - LINKED % PAGE < SIZE)
			page[i] = file[offset + i - LINKED % PAGE];
	}
}

static void noise(unsigned seed)
{
	srandom(seed);
	for (size_t i = 0; i < PAGE; i++)
		page[i] = (uint8_t)random();
}

/* Each test begins with an image that nobody has seen: the program beside it, too. */
static int begin(void **state)
{
	(void)state;
	plugin.area.header = &header;
	header = (struct uni_exact_header){ 0 };
	srandom(1);
	for (size_t i = 0; i < SIZE + PAGE; i++)
		file[i] = (uint8_t)random();
	piece[0] = (struct code_piece){ LINKED, SIZE, 0 };
	piece[1] = (struct code_piece){ SLOT + 0x1000, PAGE, SIZE };
	places_init(piece, 2, 1, file);
	return 0;
}

static void test_moved(void **state)
{
	(void)state;
	noise(7);
	assert_int_equal(runs(0x7c00), 0x7c00); /* firmware */
	holds(0);
	assert_int_equal(runs(0x200900), 0x200900); /* where it is linked */
	assert_int_equal(header.moved, 0);
	holds(PAGE);
	assert_int_equal(runs(AWAY + 0x201010), 0x201010);
	assert_int_equal(header.moved, AWAY);
	holds(0); /* half a page of it */
	assert_int_equal(runs(AWAY + 0x200810), 0x200810);
	holds(PAGE);
	memset(page + 0x20, 0x90, 3 * PAGE / 8); /* changed as the guest ran */
	assert_int_equal(runs(AWAY + 0x201010), 0x201010);
	memset(page + 0x20, 0x90, 5 * PAGE / 8); /* something else */
	assert_int_equal(runs(AWAY + 0x201010), AWAY + 0x201010);
	noise(8);
	assert_int_equal(runs(AWAY + 0x202010), AWAY + 0x202010);
	/* A program, which has no place of its own. It is not the image that moved. */
	memcpy(page, file + SIZE, PAGE);
	assert_int_equal(runs(0x400123), SLOT + 0x1123);
	assert_int_equal(header.moved, AWAY);
}

/* A place that is not known yet needs more than one that is; and nothing is guessed. */
static void test_unlike(void **state)
{
	(void)state;
	holds(PAGE);
	memset(page + 0x20, 0x90, PAGE / 4);
	assert_int_equal(runs(0x5201010), 0x5201010);
	memset(page, 0x90, PAGE);
	memset(file, 0x90, SIZE); /* all pages of it are the same */
	assert_int_equal(runs(0x5201010), 0x5201010);
	assert_int_equal(header.moved, 0);
}

/* Another program lies at the place that the image is linked for, after it has moved. */
static void test_other_there(void **state)
{
	(void)state;
	noise(9);
	assert_int_equal(
		runs(0x201400), 0x201400); /* as long as it has not moved: its own, as changed */
	holds(2 * PAGE);
	assert_int_equal(runs(AWAY + 0x202010), 0x202010);
	noise(10);
	assert_int_equal(runs(0x201400), 0x201400 + SHIFT);
	/* Such a program's calls, from there and from elsewhere, lead there. */
	assert_int_equal(places_linked(0x202020, places_moved(NULL)), 0x202020 + SHIFT);
	assert_int_equal(places_linked(0x9000, places_moved(NULL)), 0x9000);
	assert_int_equal(runs(0x9000), 0x9000);
	assert_int_equal(places_linked(0x201400, places_moved(NULL)), 0x201400 + SHIFT);
	assert_int_equal(places_linked(NOWHERE, places_moved(NULL)), NOWHERE);
	holds(PAGE); /* and there is its own code, still */
	assert_int_equal(runs(0x201400), 0x201400);
	assert_int_equal(header.moved, 0);
}

/* QEMU does not always know where the bytes are. */
static void test_no_bytes(void **state)
{
	(void)state;
	code = NULL;
	at = 0x201000;
	assert_int_equal(places_linked(at, places_moved(NULL)), at);
	at = AWAY + 0x201000;
	assert_int_equal(places_linked(at, places_moved(NULL)), at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_moved, begin),
		cmocka_unit_test_setup(test_unlike, begin),
		cmocka_unit_test_setup(test_other_there, begin),
		cmocka_unit_test_setup(test_no_bytes, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
