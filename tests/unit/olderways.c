/* SPDX-License-Identifier: BSD-2-Clause */
/* As older tools were told of guests, and what uniprof said of the deadlines that it missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/x86_64/x86_64.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "compat/names.h"
#include "compat/uniprof/print.h"
#include "obj/symtext.h"
#include "obj/usym.h"
#include "sampling/sampler.h"
#include "sampler_fake.h"

static void operands(void **state)
{
	static char operand[UNI_COMPAT_TARGET_MAX + 1], ret[UNI_COMPAT_TARGET_MAX];
	const size_t longest = UNI_COMPAT_TARGET_MAX - sizeof("xen:dom=");
	struct uni_err err = { 0 };

	(void)state;
	assert_int_equal(uni_compat_target("7", ret, &err), 0);
	assert_string_equal(ret, "xen:dom=7");
	assert_int_equal(uni_compat_target("kvm:pid=7", ret, &err), 0);
	assert_string_equal(ret, "kvm:pid=7");
	assert_int_equal(uni_compat_target("", ret, &err), 0);
	assert_string_equal(ret, "");
	assert_int_equal(uni_compat_target("00", ret, &err), -UNI_EUSAGE);
	/* A number gets eight characters in front, and a target has none to lose. */
	memset(operand, '7', longest);
	assert_int_equal(uni_compat_target(operand, ret, &err), 0);
	assert_int_equal(strlen(ret), longest + strlen("xen:dom="));
	assert_string_equal(ret + strlen("xen:dom="), operand);
	memset(operand, '7', longest + 1);
	assert_int_equal(uni_compat_target(operand, ret, &err), -UNI_EUSAGE);
}

/* Runs the tracer, and returns its stderr. */
static char *said_by(struct bench *b, const struct uni_tracer_args *args, struct uni_strbuf *text)
{
	struct uni_guest g = { .t = &b->f.t, .unwinder = b->u };
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };
	FILE *said = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t size;
	char *ret;

	assert_true(said != NULL && saved >= 0);
	assert_int_equal(uni_sink_open_strbuf(text, &out), 0);
	assert_true(dup2(fileno(said), STDERR_FILENO) >= 0);
	assert_int_equal(uni_tracer_run(&g, args, out, &err), 0);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
	assert_int_equal(uni_sink_close(out, &err), 0);
	size = (size_t)ftell(said);
	ret = calloc(1, size + 1);
	assert_non_null(ret);
	rewind(said);
	assert_int_equal(fread(ret, 1, size, said), size);
	(void)fclose(said);
	return ret;
}

static unsigned count(const char *text, const char *what)
{
	unsigned ret = 0;

	for (const char *p = strstr(text, what); p != NULL; p = strstr(p + 1, what))
		ret++;
	return ret;
}

/* The third and the sixth take longer. */
static int slow_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fake *f = (struct fake *)t;

	f->slow_once_ns = f->snaps == 2 ? 35 * MS : f->snaps == 5 ? 14 * MS : 0;
	return fake_snap(t, set, ret, flags);
}

/* 100 Hz, and a snapshot takes 35 ms: three deadlines pass, and each is said. One of 14 ms: one. */
static void missed_deadlines(void **state)
{
	static const char *const late[] = { "0.035", "0.025", "0.015", "0.014" };
	struct bench *b = *state;
	struct uni_target_ops ops = fake_ops;
	const struct uni_pace pace = { .max_pause = "off", .skip_late = true };
	struct uni_tracer_args args = { .frequency = 100,
		.duration = 0.2,
		.target = "fake",
		.pace = &pace,
		.say_missed = true,
		.quiet = true };
	struct uni_strbuf text;
	char *said, *at;

	ops.snap = slow_snap;
	b->f.t.ops = &ops;
	uni_strbuf_init(&text);
	said = at = said_by(b, &args, &text);
	for (unsigned i = 0; i < uni_array_len(late); i++) {
		static const char behind[] = "we're falling behind by ";

		assert_int_equal(strncmp(at, behind, sizeof(behind) - 1), 0);
		at += sizeof(behind) - 1;
		assert_int_equal(strncmp(at, late[i], strlen(late[i])), 0);
		at = strchr(at, '\n') + 1;
		assert_int_equal(at[-2], '!');
	}
	assert_string_equal(at, "Missed 4 deadlines\n");
	assert_int_equal(
		count(text.s, "0x1000\n0x2001\n0x2002\n0x2003\n0x2004\n1\n\n"), 20 - 4 + 1);
	free(said);
	uni_strbuf_deinit(&text);
	/* Not asked: the sum alone. */
	args.say_missed = false;
	b->f.snaps = 0;
	uni_strbuf_init(&text);
	said = said_by(b, &args, &text);
	assert_null(strstr(said, "behind"));
	assert_non_null(strstr(said, "Missed "));
	free(said);
	uni_strbuf_deinit(&text);
}

/* The first frame was interrupted at its pc; each other pc is behind a call. */
static void names_of_frames(void **state)
{
	static const char table[] = "0000000000000f00 T before\n0000000000001000 T leaf\n"
				    "0000000000001010 T caller\n0000000000002001 T behind\n";
	struct bench *b = *state;
	const struct uni_pace pace = { .max_pause = "off" };
	struct uni_tracer_args args = {
		.frequency = 100, .duration = 0.1, .target = "fake", .pace = &pace, .quiet = true
	};
	struct uni_symtab *symtab = NULL;
	struct uni_strbuf text;

	assert_int_equal(uni_symtab_of_nm("t", table, sizeof(table) - 1, &symtab, NULL), 0);
	args.symtab = symtab;
	uni_strbuf_init(&text);
	free(said_by(b, &args, &text));
	assert_true(count(text.s, "leaf+0x0\ncaller+0xff1\nbehind+0x1\nbehind+0x2\n") > 5);
	uni_strbuf_deinit(&text);
	uni_symtab_destroy(symtab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands),
		cmocka_unit_test_setup_teardown(missed_deadlines, setup, teardown),
		cmocka_unit_test_setup_teardown(names_of_frames, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
