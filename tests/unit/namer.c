/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of addresses: inlined functions and lines of objects/inline.c on their way into a profile
 * and out of it. usage: test-namer FOLDER-OF-IMAGES
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/frame.h"
#include "base/strbuf.h"
#include "format/export.h"
#include "format/svg/colour.h"
#include "obj/symtext.h"
#include "profile/namer.h"

#define BIAS 0xffffffff80000000

static const char *images;

struct fixture {
	struct uni_image *img;
	struct uni_symtab *symtab;
	struct uni_profile *p;
	struct uni_namer *namer;
	struct uni_naming naming;
	uint64_t inlined, after; /* in the guest */
};

static void begin(struct fixture *f, const struct uni_naming *naming, struct uni_symtab *other)
{
	struct uni_err err = { 0 };
	struct uni_debug *debug;
	uint64_t size;
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/inline-gcc-5", images);
	assert_int_equal(uni_image_load(path, &f->img, &err), 0);
	f->symtab = other;
	if (other == NULL)
		assert_int_equal(uni_symtab_of_image(f->img, &f->symtab, &err), 0);
	assert_int_equal(uni_debug_of_image(f->img, NULL, &debug, &err), 0);
	uni_symtab_set_debug(f->symtab, debug);
	assert_int_equal(uni_image_find(f->img, "spot_inlined", &f->inlined, &size), 0);
	assert_int_equal(uni_image_find(f->img, "spot_after", &f->after, &size), 0);
	f->inlined += BIAS;
	f->after += BIAS;
	f->p = uni_profile_create();
	f->naming = *naming;
	f->namer = uni_namer_create(&(struct uni_namer_from){ .p = f->p,
		.symtab = f->symtab,
		.bias = BIAS,
		.image = "/boot/app.elf",
		.naming = &f->naming });
	assert_non_null(f->namer);
}

static void end(struct fixture *f)
{
	uni_namer_destroy(f->namer);
	uni_profile_destroy(f->p);
	uni_symtab_destroy(f->symtab);
	uni_image_destroy(f->img);
}

/* "outer|middle|innermost", with lines as "N", and '+' behind what is inlined. */
static void expect(struct fixture *f, uint64_t pc, bool exact, const char *want)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	size_t nr = 0;
	const uint32_t *frames = uni_namer_frames(f->namer, pc, exact ? UNI_FRAME_EXACT : 0, &nr);

	uni_strbuf_init(&b);
	assert_non_null(frames);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *frame = uni_profile_get_frame(f->p, frames[i]);
		const char *name = uni_profile_str(f->p, frame->name);

		uni_strbuf_addf(
			&b, "%s%.*s", i != 0 ? "|" : "", (int)strcspn(name, "0123456789"), name);
		uni_strbuf_adds(&b, frame->kind == UNI_FK_INLINED ? "+" : "");
		assert_true((frame->line != 0) == (strstr(name, "(inline.c:") != NULL));
		assert_true((frame->plain != 0) == (frame->line != 0));
		assert_true(frame->kind != UNI_FK_INLINED || frame->addr == 0);
	}
	assert_string_equal(b.s, want);
}

static void functions_only(void **state)
{
	struct fixture f;

	begin(&f, &(struct uni_naming){ 0 }, NULL);
	expect(&f, f.inlined, true, "outer");
	expect(&f, f.inlined, true, "outer"); /* known by now */
	expect(&f, f.inlined + 1, false, "outer");
	expect(&f, BIAS + 0x10, true, "");
	end(&f);
}

static void inlined_functions(void **state)
{
	struct fixture f;

	begin(&f, &(struct uni_naming){ .inlined = true }, NULL);
	expect(&f, f.inlined, true, "outer|middle+|innermost+");
	expect(&f, f.after, true, "outer");
	/* A return address behind the inlined code: the call stands in it. */
	expect(&f, f.after, false, "outer|middle+|innermost+");
	end(&f);
}

static void lines(void **state)
{
	struct fixture f;

	begin(&f, &(struct uni_naming){ .lines = true }, NULL);
	expect(&f, f.inlined, true, "outer (inline.c:");
	end(&f);
	begin(&f, &(struct uni_naming){ .inlined = true, .lines = true }, NULL);
	expect(&f, f.inlined, true, "outer (inline.c:|middle (inline.c:+|innermost (inline.c:+");
	end(&f);
}

/* An image whose symbols were thrown away still has the names that DWARF knows. */
static void names_from_debug_data(void **state)
{
	static const char table[] = "00000010 T elsewhere\n00000020 D end\n";
	struct uni_symtab *s;
	struct fixture f;

	assert_int_equal(uni_symtab_of_text("t", table, strlen(table), &s, NULL), 0);
	begin(&f, &(struct uni_naming){ 0 }, s);
	expect(&f, f.inlined, true, "outer");
	end(&f);
}

/* A symbol without a size that happens to reach so far does not hide the function that DWARF knows.
 */
static void guesses_give_way(void **state)
{
	static const char table[] = "0000000000400000 T _start_of_all\n"
				    "0000000000410000 D data\n";
	struct uni_symtab *s;
	struct fixture f;

	assert_int_equal(uni_symtab_of_text("t", table, strlen(table), &s, NULL), 0);
	begin(&f, &(struct uni_naming){ .inlined = true }, s);
	expect(&f, f.inlined, true, "outer|middle+|innermost+");
	expect(&f, BIAS + 0x400010, true, "_start_of_all");
	end(&f);
}

/* A handler returns to where nothing was called from: to the first byte of a function. */
static void handlers_return_to_the_first_byte(void **state)
{
	static const char table[] = "0000000000001000 0000000000000010 T first\n"
				    "0000000000001020 0000000000000010 T restore\n";
	struct uni_symtab *s;
	struct fixture f;

	assert_int_equal(uni_symtab_of_text("t", table, strlen(table), &s, NULL), 0);
	begin(&f, &(struct uni_naming){ 0 }, s);
	expect(&f, BIAS + 0x1010, false, "first");
	expect(&f, BIAS + 0x1020, false, "restore");
	expect(&f, BIAS + 0x1020, true, "restore");
	expect(&f, BIAS + 0x1018, false, ""); /* an address */
	end(&f);
}

static char *export_to(const struct uni_profile *p, const char *format)
{
	struct uni_view v = { .profile = p };
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_exporter_by_name(format)->write(&v, NULL, 0, out, NULL), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	return uni_strbuf_detach(&b);
}

static void has(struct fixture *f, const char *format, const char *part)
{
	char *text = export_to(f->p, format);

	if (strstr(text, part) == NULL)
		fail_msg("no \"%s\" in:\n%s", part, text);
	free(text);
}

static void exporters_mark_them(void **state)
{
	struct uni_colours c = { .palette = uni_palette_by_name("hot") };
	struct uni_rgb aqua = uni_colour_inlined(&c, "middle"), hot = uni_colour_name(&c, "middle");
	struct fixture f;
	const uint32_t *frames;
	char fill[64];
	size_t nr;

	begin(&f, &(struct uni_naming){ .inlined = true }, NULL);
	frames = uni_namer_frames(f.namer, f.inlined, UNI_FRAME_EXACT, &nr);
	assert_int_equal(uni_profile_add(f.p, frames, nr, 3, 0), 0);
	assert_int_equal(uni_profile_finish(f.p), 0);
	has(&f, "folded", "outer;middle_[i];innermost_[i] 3\n");
	has(&f, "json", "\"name\":\"middle\",\"kind\":\"inlined\",\"image\":\"app.elf\"");
	assert_true(aqua.r < 100 && aqua.g > 150 && aqua.b > 150 && hot.r > 200);
	(void)snprintf(fill, sizeof(fill), "rgb(%u,%u,%u)", aqua.r, aqua.g, aqua.b);
	has(&f, "svg", fill);
	has(&f, "svg", "<title>middle (3 samples, 100.00%)</title>");
	end(&f);
	begin(&f, &(struct uni_naming){ .inlined = true, .lines = true }, NULL);
	frames = uni_namer_frames(f.namer, f.inlined, UNI_FRAME_EXACT, &nr);
	assert_int_equal(uni_profile_add(f.p, frames, nr, 3, 0), 0);
	assert_int_equal(uni_profile_finish(f.p), 0);
	has(&f, "json",
		"\"name\":\"middle\",\"kind\":\"inlined\",\"image\":\"app.elf\",\"file\":\"/");
	has(&f, "folded", "middle (inline.c:");
	end(&f);
}

/* A scan's find is another frame than the same function where it is certain, unless unwanted. */
static void guesses_are_marked(void **state)
{
	const struct uni_frame *frame;
	const uint32_t *frames;
	struct fixture f;
	uint32_t sure;
	size_t nr;

	begin(&f, &(struct uni_naming){ 0 }, NULL);
	sure = uni_namer_frames(f.namer, f.inlined + 1, 0, &nr)[0];
	frames = uni_namer_frames(f.namer, f.inlined + 1, UNI_FRAME_GUESS, &nr);
	frame = uni_profile_get_frame(f.p, frames[0]);
	assert_true(frames[0] != sure && frame->guess);
	assert_string_equal(uni_profile_str(f.p, frame->name), "outer ?");
	assert_string_equal(uni_profile_str(f.p, frame->plain), "outer");
	assert_int_equal(uni_profile_add(f.p, frames, nr, 3, 0), 0);
	frames = uni_namer_frames(f.namer, BIAS + 0x10, UNI_FRAME_GUESS, &nr);
	assert_string_equal(uni_profile_str(f.p, uni_profile_get_frame(f.p, frames[0])->name),
		"0xffffffff80000010 ?");
	assert_int_equal(uni_profile_finish(f.p), 0);
	has(&f, "folded", "outer ? 3\n");
	has(&f, "svg", "<title>outer ? (3 samples");
	has(&f, "json", "\"name\":\"outer\",\"kind\":\"guest\",\"guess\":true");
	end(&f);
	begin(&f, &(struct uni_naming){ .unmarked = true }, NULL);
	sure = uni_namer_frames(f.namer, f.inlined + 1, 0, &nr)[0];
	assert_int_equal(uni_namer_frames(f.namer, f.inlined + 1, UNI_FRAME_GUESS, &nr)[0], sure);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_only),
		cmocka_unit_test(inlined_functions),
		cmocka_unit_test(lines),
		cmocka_unit_test(names_from_debug_data),
		cmocka_unit_test(guesses_give_way),
		cmocka_unit_test(handlers_return_to_the_first_byte),
		cmocka_unit_test(exporters_mark_them),
		cmocka_unit_test(guesses_are_marked),
	};

	if (argc != 2)
		return 2;
	images = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
