/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of all commands. A letter is the letter of one long option in all of them, except in
 * the front ends of older tools. --from and --to are times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "app/cmd.h"

#define LETTERS 128

static struct {
	const char *long_name[LETTERS], *command[LETTERS];
	unsigned nr_options, nr_letters, nr_wrong;
} seen;

static void take_option(const struct uni_opt *o, const char *command)
{
	unsigned c = (unsigned char)o->short_name;

	seen.nr_options++;
	assert_true(c < LETTERS);
	if (strcmp(o->long_name, "from") == 0 || strcmp(o->long_name, "to") == 0)
		assert_string_equal(o->arg, "SECONDS");
	if (c == 0)
		return;
	seen.nr_letters++;
	if (seen.long_name[c] != NULL && strcmp(seen.long_name[c], o->long_name) != 0) {
		print_error("-%c is --%s of %s and --%s of %s\n", (int)c, seen.long_name[c],
			seen.command[c], o->long_name, command);
		seen.nr_wrong++;
	}
	seen.long_name[c] = o->long_name;
	seen.command[c] = command;
}

/* In one command: no letter and no name twice, whether old or not. */
static void check_twice(const struct uni_opt *opts, const char *command)
{
	bool letter[LETTERS] = { false };

	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		for (const char *c = (const char[]){ o->short_name, o->old_letter }, *end = c + 2;
			c < end; c++) {
			if (*c == '\0')
				continue;
			if (letter[(unsigned char)*c])
				fail_msg("%s has -%c twice", command, *c);
			letter[(unsigned char)*c] = true;
		}
		for (const struct uni_opt *p = opts; p->long_name != NULL; p++) {
			if (p != o && strcmp(p->long_name, o->long_name) == 0)
				fail_msg("%s has --%s twice", command, o->long_name);
			if (p->old_name != NULL && strcmp(p->old_name, o->long_name) == 0)
				fail_msg("%s has --%s, which is also an old name", command,
					o->long_name);
		}
	}
}

static void walk_commands(const struct uni_cmd *const *list, bool compat)
{
	for (size_t i = 0; list[i] != NULL; i++) {
		const struct uni_cmd *c = list[i];
		bool older = compat || c->group == UNI_CMDS_COMPAT;
		const struct uni_opt *opts;

		assert_non_null(c->summary);
		if (c->sub != NULL) {
			walk_commands(c->sub, older);
			continue;
		}
		opts = c->options();
		check_twice(opts, c->name);
		for (const struct uni_opt *o = opts; !older && o->long_name != NULL; o++)
			take_option(o, c->name);
	}
}

static void a_letter_means_one_thing(void **state)
{
	(void)state;
	walk_commands(uni_cmds, false);
	assert_true(seen.nr_options > 200 && seen.nr_letters > 60);
	assert_int_equal(seen.nr_wrong, 0);
}

/* strace's letters are those of the old table of `trace syscalls`. */
static void strace_has_its_letters(void **state)
{
	const struct uni_cmd *const *c = uni_compat_cmds;
	const char *letter = "etrasTcCSzZo";

	(void)state;
	while (*c != NULL && strcmp((*c)->name, "strace") != 0)
		c++;
	assert_non_null(*c);
	for (; *letter != '\0'; letter++) {
		const struct uni_opt *o = (*c)->options();

		while (o->long_name != NULL && o->short_name != *letter)
			o++;
		assert_non_null(o->long_name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_letter_means_one_thing),
		cmocka_unit_test(strace_has_its_letters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
