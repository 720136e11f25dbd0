/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "app/xl_config.h"

static void expect(const char *text, const char *name, const char *kernel)
{
	struct uni_xl_config c;

	uni_xl_config_parse(text, strlen(text), &c);
	assert_string_equal(c.name, name);
	assert_string_equal(c.kernel, kernel);
}

static void assignments(void **state)
{
	expect("", "", "");
	expect("name=\"uk\"\nkernel=\"/mnt/uk.elf\"\n", "uk", "/mnt/uk.elf");
	expect("  name = 'a b'  # its name\r\nmemory = 8\nkernel\t= 'k'", "a b", "k");
	expect("memory = 8; name = 'uk'; kernel = 'k'", "uk", "k");
	expect("name = 'first'\nname = 'second'\n", "second", "");
}

/* Only what is assigned to just these names, and only strings. */
static void other_things(void **state)
{
	expect("#name='x'\nnames='y'\nmy_name='z'\nname2='w'\n", "", "");
	expect("name = uk\nkernel = 5\n", "", "");
	expect("extra = \"name='x'; kernel='y'\"\nname='uk'\n", "uk", "");
	expect("vif = [ 'mac=00:16:3e:00:00:01,bridge=b', 'name=x' ]\nname = 'uk'\n", "uk", "");
	expect("vif = [\n 'script=x',\n]\nname = 'uk'\n", "uk", "");
	expect("extra = 'a # b' # name = 'x'\nname = \"uk\"", "uk", "");
	expect("name = 'uk'\nmemory = 32 # was; name = 'other'\n", "uk", "");
	expect("type = 'pvh' ; name = 'uk' ;kernel = 'k'", "uk", "k");
	expect("name = uk 'x' ; kernel = 'k'", "", "k");
	expect("name = 'not ended\nkernel = 'k'", "", "k");
}

/* A written one reads back, and nothing breaks out of its string. */
static void written(void **state)
{
	const struct uni_xl_config c = { .name = "app", .kernel = "/srv/it's app.xen" };
	struct uni_strbuf text;

	uni_strbuf_init(&text);
	uni_xl_config_write(&c, "a \"b\\\nname = 'x'", 64, &text);
	assert_string_equal(text.s, "name = \"app\"\n"
				    "kernel = \"/srv/it's app.xen\"\n"
				    "type = \"pvh\"\nmemory = 64\nvcpus = 1\n"
				    "extra = \"a \\\"b\\\\ name = 'x'\"\n"
				    "on_reboot = \"destroy\"\n");
	expect(text.s, "app", "/srv/it's app.xen");
	uni_strbuf_deinit(&text);
}

static void hostile(void **state)
{
	struct uni_xl_config c;
	char text[600];

	memset(text, 'n', sizeof(text));
	uni_xl_config_parse(text, sizeof(text), &c);
	assert_string_equal(c.name, "");
	memcpy(text, "name='", 6);
	text[sizeof(text) - 1] = '\'';
	uni_xl_config_parse(text, sizeof(text), &c);
	assert_int_equal(strlen(c.name), sizeof(c.name) - 1);
	expect("name='a\x1b[2Jb'", "a\xef\xbf\xbd[2Jb", "");
	expect("=\n===;;;'\"\n'name'='x'", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(assignments),
		cmocka_unit_test(other_things),
		cmocka_unit_test(written),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests_name("xlconfig", tests, NULL, NULL);
}
