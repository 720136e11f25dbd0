/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places to trace, in images as compilers make them. The sites are compared with every jump to the
 * thunk in the code, searched byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obj/sites.h"
#include "obj/sites_prepare.h"

static const char *folder; /* where the images are */

struct loaded {
	struct uni_image *img;
	struct uni_sites *sites;
};

static struct loaded load(const char *name)
{
	struct loaded l = { 0 };
	struct uni_err err = { 0 };
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (uni_image_load(path, &l.img, &err) != 0 || uni_sites_read(l.img, &l.sites, &err) != 0)
		fail_msg("%s", err.msg);
	return l;
}

static void unload(struct loaded *l)
{
	uni_sites_destroy(l->sites);
	uni_image_destroy(l->img);
}

static const struct uni_site_function *function(const struct loaded *l, const char *name)
{
	uint64_t addr, size;

	assert_int_equal(uni_image_find(l->img, name, &addr, &size), 0);
	return uni_sites_at(l->sites, addr);
}

/* Jumps to the thunk within [addr, addr + size), by trying every byte. */
static unsigned jumps(const struct loaded *l, uint64_t addr, uint64_t size)
{
	const struct uni_site probe = { .kind = UNI_SITE_EXIT };
	unsigned nr = 0;

	for (uint64_t i = 0; i + UNI_SITE_BYTES <= size; i++) {
		uint8_t b[UNI_SITE_BYTES];

		if (uni_image_bytes(l->img, addr + i, b, sizeof(b)))
			nr += uni_site_hook(&probe, addr + i, b) == l->sites->thunk;
	}
	return nr;
}

static unsigned exits_of(const struct loaded *l, const struct uni_site_function *fn)
{
	unsigned nr = 0;

	for (uint32_t i = 0; i < fn->nr; i++)
		nr += l->sites->site[fn->first + i].kind == UNI_SITE_EXIT;
	return nr;
}

/* Checks that hold however the image was made; relocations: it was linked with them. */
static void check_functions(const struct loaded *l, bool relocations)
{
	static const char *const names[] = { "leaf", "several_returns", "rare", "with_cold_part",
		"never_returns" };

	assert_int_equal(l->sites->relocations, relocations);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct uni_site_function *fn = function(l, names[i]);
		uint64_t cold, size;
		char name[64];
		unsigned want;

		assert_non_null(fn);
		assert_string_equal(fn->name, names[i]);
		assert_int_equal(fn->exits_known, relocations);
		assert_int_equal(l->sites->site[fn->first].kind, UNI_SITE_ENTRY);
		want = jumps(l, fn->addr, fn->size);
		(void)snprintf(name, sizeof(name), "%s.cold", names[i]);
		if (uni_image_find(l->img, name, &cold, &size) == 0)
			want += jumps(l, cold, size);
		assert_int_equal(exits_of(l, fn), relocations ? want : 0);
	}
	assert_int_equal(exits_of(l, function(l, "never_returns")), 0);
	if (relocations)
		assert_true(exits_of(l, function(l, "several_returns")) > 0);
}

static void check_sites(const struct loaded *l)
{
	uint64_t last = 0;

	for (size_t i = 0; i < l->sites->nr_functions; i++) {
		const struct uni_site_function *fn = &l->sites->function[i];

		assert_true(i == 0 || fn->addr > last);
		last = fn->addr;
		assert_ptr_equal(uni_sites_at(l->sites, fn->addr), fn);
		assert_null(uni_sites_at(l->sites, fn->addr + 1));
		for (uint32_t k = 0; k < fn->nr; k++) {
			const struct uni_site *s = &l->sites->site[fn->first + k];
			uint8_t b[UNI_SITE_BYTES];

			assert_int_equal(s->kind, k == 0 ? UNI_SITE_ENTRY : UNI_SITE_EXIT);
			assert_true(uni_image_bytes(l->img, s->addr, b, sizeof(b)));
			assert_memory_equal(b, s->off, sizeof(b));
		}
	}
}

static void made_with(const char *name, int state, bool relocations)
{
	struct loaded l = load(name);
	const struct uni_site_function *fn;

	check_functions(&l, relocations);
	check_sites(&l);
	fn = function(&l, "leaf");
	assert_int_equal(l.sites->site[fn->first].state, state);
	assert_int_equal(fn->pieces, state == UNI_SITE_PIECES);
	assert_int_equal(fn->low, (fn->addr + 5) & 15);
	assert_null(function(&l, "not_traced"));
	unload(&l);
}

static void by_every_way(void **state)
{
	made_with("sites-mcount", UNI_SITE_FREE, true);
	made_with("sites-fentry", UNI_SITE_JUMPS, true);
	made_with("sites-patchable", UNI_SITE_PIECES, true);
	made_with("sites-pie", UNI_SITE_PIECES, true);
	made_with("sites-norelocs", UNI_SITE_FREE, false);
	made_with("sites-notable", UNI_SITE_FREE, true);
}

/* GCC's .cold part belongs to its function. */
static void cold_parts(void **state)
{
	struct loaded l = load("sites-mcount");
	const struct uni_site_function *fn = function(&l, "with_cold_part");
	uint64_t addr, size;
	bool outside = false;

	assert_int_equal(uni_image_find(l.img, "with_cold_part.cold", &addr, &size), 0);
	for (uint32_t k = 0; k < fn->nr; k++)
		outside |= l.sites->site[fn->first + k].addr - addr < size;
	assert_true(outside);
	unload(&l);
}

static void conditional_returns(void **state)
{
	struct loaded l = load("sites-mcount");
	const struct uni_site_function *fn = function(&l, "returns_if");

	assert_non_null(fn);
	assert_false(fn->exits_known);
	unload(&l);
}

/* Functions that end in jumps without relocations do not claim that all are known. */
static void jumps_without_relocations(void **state)
{
	struct loaded l = load("sites-inside");
	const struct uni_site_function *fn = function(&l, "several_returns");

	assert_true(l.sites->relocations); /* that of the .cold part, in another section */
	assert_non_null(fn);
	assert_false(fn->exits_known);
	assert_false(function(&l, "leaf")->exits_known);
	assert_true(function(&l, "never_returns")->exits_known);
	unload(&l);
}

static void no_such_functions(void **state)
{
	struct uni_image *img = NULL;
	struct uni_sites *sites = NULL;
	struct uni_err err = { 0 };
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/sites-plain", folder);
	assert_int_equal(uni_image_load(path, &img, &err), 0);
	assert_int_equal(uni_sites_read(img, &sites, &err), -UNI_ENOENT);
	assert_non_null(strstr(err.msg, "-fpatchable-function-entry"));
	uni_image_destroy(img);
}

static void bytes_on_and_off(void **state)
{
	const struct uni_site entry = { .addr = 0x1000, .kind = UNI_SITE_ENTRY };
	const struct uni_site end = { .addr = 0x1000, .kind = UNI_SITE_EXIT };
	const uint64_t bias = 0xffffffff80000000;
	const uint8_t call[] = { 0xe8, 0xfb, 0xff, 0xff, 0x7f };
	uint8_t b[UNI_SITE_BYTES];

	assert_true(uni_site_on(&entry, 0, 0x1005 + 0x7ffffffbull, b));
	assert_memory_equal(b, call, sizeof(call));
	assert_int_equal(uni_site_hook(&entry, 0, b), 0x1005 + 0x7ffffffbull);
	assert_int_equal(uni_site_hook(&end, 0, b), 0); /* a call where a jump belongs */
	assert_true(uni_site_on(&end, bias, bias + 0x10, b));
	assert_int_equal(b[0], 0xe9);
	assert_int_equal(uni_site_hook(&end, bias, b), bias + 0x10);
	assert_false(uni_site_on(&end, 0, 0x1005 + 0x80000000ull, b));
	assert_true(uni_site_on(&end, 0, 0x1005 - 0x80000000ull, b));
	assert_false(uni_site_on(&end, 0, 0x1004 - 0x80000000ull, b));
}

/* --- prepare -----------------------------------------------------------------------------------
 */

static void prepared(const char *name)
{
	struct loaded before = load(name), after;
	struct uni_sites_prepared done, again;
	struct uni_err err = { 0 };
	char path[4096], out[4096];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	(void)snprintf(out, sizeof(out), "%s/%s.prepared.%d", folder, name, (int)getpid());
	if (uni_sites_prepare(path, out, NULL, 0, &done, &err) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(done.nr_functions, before.sites->nr_functions);
	assert_int_equal(done.nr_changed + done.nr_ready, before.sites->nr_sites);
	assert_int_equal(uni_sites_prepare(out, out, NULL, 0, &again, &err), 0);
	assert_int_equal(again.nr_changed, 0);
	assert_int_equal(again.nr_ready, before.sites->nr_sites);
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_mode & 0111, 0111);

	(void)snprintf(path, sizeof(path), "%s.prepared.%d", name, (int)getpid());
	after = load(path);
	check_sites(&after);
	assert_string_equal(uni_image_id(after.img), uni_image_id(before.img));
	assert_int_equal(after.sites->nr_functions, before.sites->nr_functions);
	assert_int_equal(after.sites->nr_sites, before.sites->nr_sites);
	for (size_t i = 0; i < after.sites->nr_sites; i++) {
		const struct uni_site *s = &after.sites->site[i];
		uint8_t want[UNI_SITE_BYTES];

		assert_int_equal(s->addr, before.sites->site[i].addr);
		assert_int_equal(s->state, UNI_SITE_FREE);
		uni_site_free_bytes(&before.sites->site[i], want);
		assert_memory_equal(s->off, want, sizeof(want));
	}
	for (size_t i = 0; i < after.sites->nr_functions; i++)
		assert_int_equal(after.sites->function[i].exits_known,
			before.sites->function[i].exits_known);
	unload(&before);
	unload(&after);
	assert_int_equal(unlink(out), 0);
}

static void no_ring_from_boot(void **state)
{
	static const char *const all = "*";
	struct uni_sites_prepared done;
	struct uni_err err = { 0 };
	char path[4096], out[4096];

	(void)snprintf(path, sizeof(path), "%s/sites-mcount", folder);
	(void)snprintf(out, sizeof(out), "%s/sites-mcount.on.%d", folder, (int)getpid());
	assert_int_equal(uni_sites_prepare(path, out, &all, 1, &done, &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, "link boot.c"));
	assert_int_equal(access(out, F_OK), -1);
}

static void prepare_rewrites_the_sites(void **state)
{
	prepared("sites-mcount");
	prepared("sites-fentry");
	prepared("sites-patchable");
	prepared("sites-pie");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_every_way),
		cmocka_unit_test(cold_parts),
		cmocka_unit_test(conditional_returns),
		cmocka_unit_test(jumps_without_relocations),
		cmocka_unit_test(no_such_functions),
		cmocka_unit_test(bytes_on_and_off),
		cmocka_unit_test(prepare_rewrites_the_sites),
		cmocka_unit_test(no_ring_from_boot),
	};

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
