/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of colours that functions keep: lines that are right, and lines that nearly are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "format/svg/files.h"

/* The file of one line. */
static int open_line(const char *line, struct uni_palette_map **ret, struct uni_err *err)
{
	char path[] = "/tmp/uniscope-palette-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
	(void)close(fd);
	rc = uni_palette_map_open(path, ret, err);
	(void)unlink(path);
	return rc;
}

static void colours_are_read(void **state)
{
	static const struct uni_rgb none = { 1, 1, 1 };
	struct uni_palette_map *m;
	struct uni_err err = { 0 };
	struct uni_rgb c;

	(void)state;
	assert_int_equal(open_line("a->b->rgb(255,0,9)\n", &m, &err), 0);
	c = uni_palette_map_colour(m, "a->b", none);
	assert_int_equal(c.r, 255);
	assert_int_equal(c.g, 0);
	assert_int_equal(c.b, 9);
	assert_int_equal(uni_palette_map_colour(m, "a", none).r, 1);
	uni_palette_map_close(m);
}

static void others_are_refused(void **state)
{
	static const char *const bad[] = { "f->rgb(256,0,0)", "f->rgb(0,256,0)", "f->rgb(0,0,256)",
		"f->rgb(999,0,0)", "f->rgb(0001,0,0)", "f->rgb(,0,0)", "f->rgb(1,2)",
		"f->rgb(1,2,3", "f->rgb(1,2,3) ", "f->rgb(-1,2,3)", "f->RGB(1,2,3)", "f", "f->" };

	(void)state;
	for (size_t i = 0; i < uni_array_len(bad); i++) {
		struct uni_palette_map *m = NULL;
		struct uni_err err = { 0 };

		if (open_line(bad[i], &m, &err) != -UNI_EFORMAT)
			fail_msg("\"%s\" is taken", bad[i]);
		assert_non_null(strstr(err.msg, "line 1 is not FUNCTION->rgb(RED,GREEN,BLUE)"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(colours_are_read),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
