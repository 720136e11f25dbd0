/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inlined functions and lines of objects/inline.c as several compilers describe them.
 * usage: test-debug SOURCE FOLDER-OF-IMAGES
 */
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

#include "base/checked.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/text.h"
#include "obj/params.h"
#include "obj/demangle.h"
#include "obj/usym.h"

#define PATH_LEN 512

static const char *source_path, *images;
static char *source;

static const char *const all_images[] = { "inline-gcc-4", "inline-gcc-5", "inline-gcc-packed",
	"inline-clang-4", "inline-clang-5" };

/* The line of objects/inline.c with that mark. */
static uint32_t line_of(const char *mark)
{
	char word[64];
	const char *hit;
	uint32_t line = 1;

	(void)snprintf(word, sizeof(word), "@%s ", mark);
	hit = strstr(source, word);
	assert_non_null(hit);
	for (const char *s = source; s < hit; s++)
		line += *s == '\n';
	return line;
}

static void expect_place(const struct uni_place *p, const char *function, const char *mark)
{
	assert_string_equal(p->function, function);
	assert_non_null(p->file);
	assert_string_equal(strrchr(p->file, '/'), "/inline.c");
	assert_int_equal(p->line, line_of(mark));
}

static bool is_there(const char *name, char path[PATH_LEN])
{
	(void)snprintf(path, PATH_LEN, "%s/%s", images, name);
	return access(path, R_OK) == 0;
}

static uint64_t address(const struct uni_image *img, const char *name)
{
	uint64_t addr, size;

	assert_int_equal(uni_image_find(img, name, &addr, &size), 0);
	return addr;
}

struct spots {
	uint64_t inlined, after, plain;
};

static struct spots spots_of(const struct uni_image *img)
{
	return (struct spots){ address(img, "spot_inlined"), address(img, "spot_after"),
		address(img, "spot_plain") };
}

/* Clang has linkage names here, GCC has none. */
static void expect_shown(const struct uni_place *p, const char *want)
{
	char text[UNI_TEXT_MAX];

	if (uni_demangle(p->function, text, sizeof(text)))
		assert_string_equal(text, want);
	else
		assert_string_equal(p->function, want);
}

/* Classes and lambdas of a function: Clang numbers a lambda, and GCC does not. */
static void check_local_scopes(const struct uni_image *img, const struct uni_symtab *s)
{
	struct uni_place p[UNI_INLINE_MAX];
	char text[UNI_TEXT_MAX];
	const char *shown;

	assert_int_equal(uni_symtab_places(s, address(img, "spot_local"), p), 2);
	expect_shown(&p[0], "store::count(int)::Local::go");
	expect_shown(&p[1], "store::count");
	assert_int_equal(uni_symtab_places(s, address(img, "spot_lambda"), p), 2);
	shown = uni_demangle(p[0].function, text, sizeof(text)) ? text : p[0].function;
	if (strcmp(shown, "store::count(int)::$_0::operator()") != 0)
		assert_string_equal(shown, "store::count(int)::(anonymous class)::operator()");
	assert_int_equal(uni_symtab_places(s, address(img, "spot_hidden"), p), 2);
	/* Without a linkage name, GCC's function has no parameters. */
	shown = uni_demangle(p[0].function, text, sizeof(text)) ? text : p[0].function;
	if (strcmp(shown, "hide()::Local::go") != 0)
		assert_string_equal(shown, "hide::Local::go");
	assert_int_equal(uni_symtab_places(s, address(img, "spot_c"), p), 2);
	expect_shown(&p[0], "count_all::Local::go");
}

static void check_references(struct uni_debug *d, const struct uni_image *img)
{
	struct uni_params p;

	assert_int_equal(uni_debug_params(d, address(img, "refers"), &p), 0);
	assert_int_equal(p.nr, 2);
	for (int8_t i = 0; i < 2; i++) {
		assert_int_equal(p.param[i].form, UNI_PARAM_POINTER);
		assert_int_equal(p.param[i].reg, i);
		assert_int_equal(p.param[i].size, 8);
	}
}

/* A function without linkage name has its namespaces and classes from the debug data's tree. */
static void inlined_names_have_their_scope(void **state)
{
	static const char *const names[] = { "scoped-gcc", "scoped-clang" };
	unsigned seen = 0;

	for (size_t i = 0; i < uni_array_len(names); i++) {
		struct uni_place p[UNI_INLINE_MAX];
		struct uni_err err = { 0 };
		struct uni_debug *d;
		struct uni_image *img;
		struct uni_symtab *s;
		char path[PATH_LEN];

		if (!is_there(names[i], path))
			continue;
		assert_int_equal(uni_image_load(path, &img, &err), 0);
		assert_int_equal(uni_symtab_of_image(img, &s, &err), 0);
		assert_int_equal(uni_debug_of_image(img, NULL, &d, &err), 0);
		uni_symtab_set_debug(s, d);
		assert_int_equal(uni_symtab_places(s, address(img, "spot_scoped"), p), 4);
		expect_shown(&p[0], "store::(anonymous namespace)::hidden");
		expect_shown(&p[1], "store::(anonymous namespace)::Box::open");
		expect_shown(&p[2], "store::Shop::sell");
		expect_shown(&p[3], "_start");
		check_local_scopes(img, s);
		check_references(d, img);
		uni_symtab_destroy(s);
		uni_image_destroy(img);
		seen++;
	}
	assert_true(seen >= 1);
}

/* Whatever the answers come from. */
static void check_places(const struct uni_symtab *s, const struct spots *at)
{
	struct uni_place p[UNI_INLINE_MAX];

	assert_int_equal(uni_symtab_places(s, at->inlined, p), 3);
	expect_place(&p[0], "innermost", "innermost");
	expect_place(&p[1], "middle", "middle");
	expect_place(&p[2], "outer", "outer");
	assert_int_equal(uni_symtab_places(s, at->after, p), 1);
	expect_place(&p[0], "outer", "after");
	assert_int_equal(uni_symtab_places(s, at->plain, p), 1);
	expect_place(&p[0], "plain", "plain");
	assert_int_equal(uni_symtab_places(s, 0, p), 0);
	assert_int_equal(uni_symtab_places(s, UINT64_MAX, p), 0);
}

static struct uni_symtab *symtab_with_debug(
	const char *path, const struct uni_image_search *search, struct spots *spots_ret)
{
	struct uni_err err = { 0 };
	struct uni_image *img;
	struct uni_symtab *s;
	struct uni_debug *d;

	assert_int_equal(uni_image_load_from(path, search, &img, &err), 0);
	*spots_ret = spots_of(img);
	assert_int_equal(uni_symtab_of_image(img, &s, &err), 0);
	assert_false(uni_symtab_has_places(s));
	assert_int_equal(uni_debug_of_image(img, search, &d, &err), 0);
	assert_null(uni_debug_note(d));
	uni_symtab_set_debug(s, d);
	assert_true(uni_symtab_has_places(s));
	uni_image_destroy(img);
	return s;
}

static void expect_param(const struct uni_param *p, const char *name, enum uni_param_form form,
	unsigned size, int reg)
{
	assert_string_equal(p->name, name);
	assert_int_equal(p->form, form);
	assert_int_equal(p->reg, reg);
	if (reg != UNI_PARAM_NO_REG)
		assert_int_equal(p->size, size);
}

static void check_params(struct uni_debug *d, const struct uni_image *img)
{
	struct uni_params p;

	assert_int_equal(uni_debug_params(d, address(img, "takes"), &p), 0);
	assert_int_equal(p.nr, 7);
	expect_param(&p.param[0], "a", UNI_PARAM_SIGNED, 4, 0);
	expect_param(&p.param[1], "b", UNI_PARAM_POINTER, 8, 1);
	expect_param(&p.param[2], "x", UNI_PARAM_OTHER, 8, UNI_PARAM_NO_REG);
	expect_param(&p.param[3], "c", UNI_PARAM_UNSIGNED, 2, 2);
	expect_param(&p.param[4], "d", UNI_PARAM_BOOL, 1, 3);
	expect_param(&p.param[5], "e", UNI_PARAM_SIGNED, 4, 4);
	expect_param(&p.param[6], "f", UNI_PARAM_UNSIGNED, 8, 5);
	assert_true(p.returns);
	expect_param(&p.value, "", UNI_PARAM_SIGNED, 8, 0);
	/* The result has a place that comes first; the parameters lie in memory. */
	assert_int_equal(uni_debug_params(d, address(img, "gives"), &p), 0);
	assert_int_equal(p.nr, 4);
	expect_param(&p.param[0], "in", UNI_PARAM_OTHER, 0, UNI_PARAM_NO_REG);
	expect_param(&p.param[1], "a", UNI_PARAM_SIGNED, 4, 1);
	expect_param(&p.param[2], "p", UNI_PARAM_OTHER, 0, UNI_PARAM_NO_REG);
	expect_param(&p.param[3], "lost", UNI_PARAM_SIGNED, 4, UNI_PARAM_NO_REG);
	assert_int_equal(p.value.reg, UNI_PARAM_NO_REG);
	assert_int_equal(uni_debug_params(d, address(img, "plain"), &p), 0);
	assert_int_equal(p.nr, 0);
	assert_false(p.returns);
	assert_int_equal(uni_debug_params(d, 1, &p), -UNI_ENOENT);
	assert_int_equal(uni_debug_params(d, UINT64_MAX, &p), -UNI_ENOENT);
}

static void params(void **state)
{
	unsigned done = 0;

	for (size_t i = 0; i < uni_array_len(all_images); i++) {
		struct uni_image *img;
		struct uni_debug *d;
		struct uni_err err = { 0 };
		char path[PATH_LEN];

		if (!is_there(all_images[i], path))
			continue;
		assert_int_equal(uni_image_load(path, &img, &err), 0);
		assert_int_equal(uni_debug_of_image(img, NULL, &d, &err), 0);
		check_params(d, img);
		uni_debug_destroy(d);
		uni_image_destroy(img);
		done++;
	}
	assert_true(done != 0);
}

static void inline_chains(void **state)
{
	unsigned done = 0;

	for (size_t i = 0; i < uni_array_len(all_images); i++) {
		char path[PATH_LEN];
		struct spots at;
		struct uni_symtab *s;

		if (!is_there(all_images[i], path))
			continue;
		s = symtab_with_debug(path, NULL, &at);
		check_places(s, &at);
		uni_symtab_destroy(s);
		done++;
	}
	assert_true(done != 0);
}

/* Reading it all at once changes no answer. */
static void all_at_once(void **state)
{
	struct uni_place one[UNI_INLINE_MAX], all[UNI_INLINE_MAX];
	struct uni_debug *lazy, *eager;
	struct uni_image *img;
	struct uni_span span;
	char path[PATH_LEN];
	uint64_t at;

	assert_true(is_there("inline-gcc-5", path));
	assert_int_equal(uni_image_load(path, &img, NULL), 0);
	assert_int_equal(uni_debug_of_image(img, NULL, &lazy, NULL), 0);
	assert_int_equal(uni_debug_of_image(img, NULL, &eager, NULL), 0);
	uni_debug_load_all(eager);
	at = address(img, "spot_inlined");
	assert_int_equal(uni_debug_lookup(lazy, at, one, &span), 3);
	assert_int_equal(uni_debug_lookup(eager, at, all, NULL), 3);
	assert_true(uni_range_has(span.start, span.size, at));
	assert_false(uni_range_has(span.start, span.size, address(img, "spot_plain")));
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(one[i].function, all[i].function);
	uni_debug_destroy(lazy);
	uni_debug_destroy(eager);
	uni_image_destroy(img);
}

/* A .usym keeps what DWARF said; it does not know other addresses. */
static void places_travel(void **state)
{
	char dir[] = "/tmp/uni-debug-XXXXXX", file[64], path[PATH_LEN];
	struct uni_place p[UNI_INLINE_MAX];
	struct uni_err err = { 0 };
	struct uni_symtab *s, *back;
	struct spots at;

	assert_true(is_there("inline-gcc-5", path));
	s = symtab_with_debug(path, NULL, &at);
	uint64_t kept[] = { at.plain, at.inlined, 12, at.after, at.inlined };

	assert_int_equal(uni_symtab_keep_places(s, kept, uni_array_len(kept), &err), 0);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/x.usym", dir);
	assert_int_equal(uni_symtab_write_below(s, AT_FDCWD, file, file, &err), 0);
	uni_symtab_destroy(s);
	assert_int_equal(uni_symtab_load(file, &back, &err), 0);
	assert_true(uni_symtab_has_places(back));
	check_places(back, &at);
	assert_int_equal(uni_symtab_places(back, at.plain + 64, p), 0);
	uni_symtab_destroy(back);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Damaged places, with a right checksum: refused, or harmless. */
static void hostile_places_do_no_harm(void **state)
{
	char dir[] = "/tmp/uni-debug-XXXXXX", file[64], path[PATH_LEN], *data;
	struct uni_place p[UNI_INLINE_MAX];
	struct uni_symtab *s;
	struct spots at;
	size_t size, refused = 0;

	assert_true(is_there("inline-gcc-5", path));
	s = symtab_with_debug(path, NULL, &at);
	uint64_t kept[] = { at.inlined, at.after, at.plain };

	assert_int_equal(uni_symtab_keep_places(s, kept, 3, NULL), 0);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/x.usym", dir);
	assert_int_equal(uni_symtab_write_below(s, AT_FDCWD, file, file, NULL), 0);
	uni_symtab_destroy(s);
	assert_int_equal(uni_read_file(file, 1 << 20, &data, &size, NULL), 0);
	for (size_t i = 0; i < size * 3; i++) {
		char *byte = &data[i / 3], good = *byte;
		uint64_t h = 0xcbf29ce484222325ull;

		*byte = (char)(i % 3 == 0 ? 0 : i % 3 == 1 ? 0xff : good + 1);
		memset(data + 56, 0, 8);
		for (size_t k = 0; k < size; k++)
			h = (h ^ (uint8_t)data[k]) * 0x100000001b3ull;
		memcpy(data + 56, &h, 8);
		if (uni_symtab_parse(data, size, &s, NULL) == 0) {
			for (uint64_t a = 0; a < 64; a++)
				(void)uni_symtab_places(s, at.inlined + a, p);
			uni_symtab_destroy(s);
		} else {
			refused++;
		}
		*byte = good;
	}
	assert_true(refused > size / 4);
	free(data);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Split files */

static void copy_file(const char *from, const char *to)
{
	struct uni_sink *out;
	size_t size;
	char *data;

	assert_int_equal(uni_read_file(from, 1 << 24, &data, &size, NULL), 0);
	assert_int_equal(uni_sink_open_file(to, &out, NULL), 0);
	uni_sink_write(out, data, size);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	free(data);
}

struct split {
	char dir[32], image[64], debug[PATH_LEN]; /* debug: where the test put it */
};

/* The stripped image alone in a folder, under a name that gives no hint. */
static void split_begin(struct split *s, const char *name)
{
	char path[PATH_LEN];

	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/uni-split-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	(void)snprintf(s->image, sizeof(s->image), "%s/app", s->dir);
	assert_true(is_there(name, path));
	copy_file(path, s->image);
}

static void split_end(const struct split *s)
{
	char up[PATH_LEN];

	(void)unlink(s->image);
	(void)unlink(s->debug);
	(void)snprintf(up, sizeof(up), "%s", s->debug);
	for (char *slash = strrchr(up, '/'); slash != NULL && strlen(up) > strlen(s->dir);
		slash = strrchr(up, '/')) {
		*slash = '\0';
		(void)rmdir(up);
	}
	(void)rmdir(s->dir);
	assert_int_equal(access(s->dir, F_OK), -1);
}

static void make_folders(char *path, size_t from)
{
	for (char *slash = strchr(path + from + 1, '/'); slash != NULL;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
}

static void split_put(struct split *s, const char *where, const char *debug)
{
	char path[PATH_LEN];

	(void)snprintf(s->debug, sizeof(s->debug), "%s/%s", s->dir, where);
	make_folders(s->debug, strlen(s->dir));
	assert_true(is_there(debug, path));
	copy_file(path, s->debug);
}

static void split_works(struct split *s, const char *debug_dir)
{
	const char *dirs[] = { debug_dir };
	const struct uni_image_search search = { dirs, debug_dir != NULL ? 1 : 0 };
	struct spots at;
	struct uni_symtab *symtab = symtab_with_debug(s->image, &search, &at);

	check_places(symtab, &at);
	uni_symtab_destroy(symtab);
	split_end(s);
}

static void link_beside_the_image(void **state)
{
	struct split s;

	split_begin(&s, "split.stripped");
	split_put(&s, "split.debug", "split.debug");
	split_works(&s, NULL);
	split_begin(&s, "split.stripped");
	split_put(&s, ".debug/split.debug", "split.debug");
	split_works(&s, NULL);
}

static void link_below_a_debug_folder(void **state)
{
	struct split s;
	char where[PATH_LEN], dir[64];

	split_begin(&s, "split.stripped");
	(void)snprintf(where, sizeof(where), "dbg%s/split.debug", s.dir);
	(void)snprintf(dir, sizeof(dir), "%s/dbg", s.dir);
	split_put(&s, where, "split.debug");
	split_works(&s, dir);
	/* And in the folder itself, if it was asked for. */
	split_begin(&s, "split.stripped");
	(void)snprintf(dir, sizeof(dir), "%s/dbg", s.dir);
	split_put(&s, "dbg/split.debug", "split.debug");
	split_works(&s, dir);
}

static void by_build_id(void **state)
{
	struct split s;
	struct uni_image *img;
	char where[PATH_LEN], dir[64];
	const char *id;

	split_begin(&s, "split.stripped");
	assert_int_equal(uni_image_load(s.image, &img, NULL), 0);
	assert_non_null(uni_image_note(img));
	id = uni_image_id(img);
	(void)snprintf(where, sizeof(where), "dbg/.build-id/%.2s/%s.debug", id, id + 2);
	(void)snprintf(dir, sizeof(dir), "%s/dbg", s.dir);
	split_put(&s, where, "split.debug");
	uni_image_destroy(img);
	split_works(&s, dir);
}

/* Without build-ids the checksum of the link is all there is. */
static void checksum_of_the_link(void **state)
{
	struct uni_err err = { 0 };
	struct uni_image *img;
	struct uni_debug *d = NULL;
	struct split s;

	split_begin(&s, "split-noid.stripped");
	split_put(&s, "split-noid.debug", "split-noid.debug");
	split_works(&s, NULL);
	split_begin(&s, "split-noid.stripped");
	split_put(&s, "split-noid.debug", "split.debug"); /* another file of that name */
	assert_int_equal(uni_image_load(s.image, &img, &err), 0);
	assert_non_null(strstr(uni_image_note(img), "split-noid.debug (of another build)"));
	assert_int_equal(uni_debug_of_image(img, NULL, &d, &err), -UNI_ENOENT);
	assert_non_null(strstr(err.msg, "split-noid.debug (of another build)"));
	uni_image_destroy(img);
	split_end(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_chains),
		cmocka_unit_test(inlined_names_have_their_scope),
		cmocka_unit_test(params),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(places_travel),
		cmocka_unit_test(hostile_places_do_no_harm),
		cmocka_unit_test(link_beside_the_image),
		cmocka_unit_test(link_below_a_debug_folder),
		cmocka_unit_test(by_build_id),
		cmocka_unit_test(checksum_of_the_link),
	};
	size_t size;
	int failed;

	if (argc != 3)
		return 2;
	source_path = argv[1];
	images = argv[2];
	if (uni_read_file(source_path, 1 << 20, &source, &size, NULL) != 0)
		return 2;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(source);
	return failed;
}
