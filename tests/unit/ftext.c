/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "format/ftrace/fcalls.h"
#include "format/ftrace/ftext.h"

#define HEAD                                                \
	"# tracer: function_graph\n"                        \
	"#\n"                                               \
	"# CPU  DURATION                  FUNCTION CALLS\n" \
	"# |     |   |                     |   |   |   |\n"
#define FUNCTION_HEAD                                           \
	"# tracer: function\n"                                  \
	"#\n"                                                   \
	"#\n"                                                   \
	"#           TASK-PID   CPU#     TIMESTAMP  FUNCTION\n" \
	"#              | |       |         |         |\n"
#define RULER "------------------------------------------\n"

static struct uni_ftext_stats parse(const char *text, struct uni_ftext *t)
{
	struct uni_ftext_stats st;

	assert_int_equal(uni_ftext_parse(text, strlen(text), t, &st, NULL), 0);
	return st;
}

static void written(const struct uni_ftext *t, const char *want)
{
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_ftext_write(t, out);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
}

/* Nanos' own text comes out as it went in. */
static void same_text(void **state)
{
	static const char graph[] =
		HEAD " 0)   0.071 us    |  leaf();\n"
		     " 0)               |  outer() {\n"
		     " 0) + 10.000 us   |    middle.part.0();\n"
		     " 0)               |    inner() {\n"
		     " 0)   9.999 us    |      ();\n"
		     " 0) ! 207.666 us  |    }\n"
		     " 1) # 1234.567 us |  other();\n"
		     " 12) * 12345.67 us |  far();\n"
		     " 0) @ 1234567. us |  } /* outer */\n" RULER
		     " 0) tid-3  => worker thread-14\n" RULER
		     " 0) @ 12345678 us |  f(int, char*)();\nCPU:12 [LOST 54 EVENTS]\n";
	static const char function[] =
		FUNCTION_HEAD "             tid-1     [000]  123456789: first <-start\n"
			      " a.long-name.of.-12345 [011]  18446744073709551615: << unknown "
			      "symbol >> <-first\n";
	struct uni_ftext t;
	struct uni_ftext_stats st = parse(graph, &t);

	written(&t, graph);
	assert_int_equal(st.bad_lines, 0);
	assert_int_equal(st.damaged, 1);
	assert_int_equal(st.headers, 6);
	assert_int_equal(t.events.nr, 12);
	uni_ftext_deinit(&t);
	st = parse(function, &t);
	written(&t, function);
	assert_int_equal(st.bad_lines, 0);
	assert_int_equal(t.events.nr, 2);
	uni_ftext_deinit(&t);
	(void)parse("# tracer: nop\n#\n", &t);
	assert_int_equal(t.tracer, UNI_FTEXT_NOP);
	uni_ftext_deinit(&t);
}

static void durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {
		{ 0, "  0.000 us   " },
		{ 71, "  0.071 us   " },
		{ 9999, "  9.999 us   " },
		{ 10000, "+ 10.000 us  " },
		{ 100000, "! 100.000 us " },
		{ 207666, "! 207.666 us " },
		{ 1000000, "# 1000.000 us" },
		{ 10000000, "* 10000.00 us" },
		{ 100000000, "@ 100000.0 us" },
		{ 1234567890, "@ 1234567. us" },
		{ 12345678901, "@ 12345678 us" },
		/* Nanos showed "12345678 us" for this, too. */
		{ 123456789012, "@ 123456789 us" },
		{ UINT64_MAX, "@ 18446744073709551 us" },
	};

	for (size_t i = 0; i < uni_array_len(cases); i++) {
		char text[UNI_FTEXT_DURATION_MAX + 1] = "";
		size_t n = uni_ftext_duration(cases[i].ns, text);

		text[n] = '\0';
		assert_string_equal(text, cases[i].want);
		assert_true(n >= UNI_FTEXT_DURATION);
	}
}

/* Additions of Linux, headers in the middle, and damage: read, or counted. */
static void other_text(void **state)
{
	struct uni_ftext t;
	struct uni_ftext_stats st =
		parse(" ------------------------------------------\n"
		      "  3)  bash-17     =>  sshd-5     \n"
		      " ------------------------------------------\n\n"
		      "  3)               |  outer() {\r\n"
		      "  3)   0.5 us      |    leaf(); /* = 0x0 */\n"
		      "  3)   ==========> |\n"
		      "  3)               |    /* a comment | of the kernel */\n" HEAD
		      "  3) $ 2000000 us  |  } /* outer ret=0x1 */\n"
		      " 12.345678 |   3)  bash-17   |  d..1 |   1.250 us    |  args(x=1, y=2);\n"
		      "  3)   0.0#1 us    |  odd();\n"
		      "  3)   12.3        |  no_unit();\n"
		      "  3)   1.000 us    |  cut_of\n"
		      "  4096)   1.000 us    |  cpu();\n"
		      "noise\n"
		      "  3)   0.200 us    |  } /* = 0x5 */\n"
		      "  3)   0.100 us    |  }",
			&t);

	written(&t, HEAD RULER " 3) bash-17  => sshd-5\n" RULER " 3)               |  outer() {\n"
			       " 3)   0.500 us    |    leaf();\n"
			       " 3) @ 2000000. us |  } /* outer */\n"
			       " 3) bash-17  |   1.250 us    |  args();\n"
			       " 3)               |  odd();\n"
			       " 3)               |  no_unit();\n"
			       " 3)   0.200 us    |  }\n"
			       " 3)   0.100 us    |  }\n");
	assert_int_equal(st.bad_lines, 2);
	assert_int_equal(st.first_bad_line, 17);
	assert_int_equal(st.outside, 1);
	assert_int_equal(st.unreadable, 2);
	assert_int_equal(st.damaged, 0);
	uni_ftext_deinit(&t);
	st = parse("           bash-4251  [001] d..2. 10152.583854: path_put <-path_walk\n"
		   "           bash-4251  [01] 10152.5838545: a <-b\n"
		   " 0)   0.071 us    |  leaf();\n",
		&t);
	written(&t,
		FUNCTION_HEAD "            bash-4251  [001]  10152.583854: path_put <-path_walk\n"
			      "            bash-4251  [001]  10152.583854500: a <-b\n");
	assert_int_equal(st.bad_lines, 1);
	uni_ftext_deinit(&t);
}

/* Lines that are right but for a number that none can be. */
static void absurd_numbers(void **state)
{
	struct uni_ftext_stats st;
	struct uni_ftext t;

	st = parse(HEAD " 0)   0.071 us    |  leaf();\n"
			"99999)   1.0 us   |  z();\n"
			" 0) 18446744073709551.000 us | f();\n"
			" 0)   0.500 us    |  leaf();\n",
		&t);
	assert_int_equal(st.bad_lines, 0);
	assert_int_equal(st.outside, 1);
	assert_int_equal(st.first_bad_line, st.lines - 2);
	assert_int_equal(st.unreadable, 1);
	assert_int_equal(t.events.nr, 3);
	assert_int_equal(t.events.v[1].ns, 0);
	assert_int_equal(t.events.v[1].flags & UNI_FTEXT_TIMED, 0);
	assert_int_equal(t.events.v[2].ns, 500);
	uni_ftext_deinit(&t);
}

static void no_text(void **state)
{
	struct uni_ftext_stats st;
	struct uni_err err = { 0 };
	struct uni_ftext t;

	assert_int_equal(uni_ftext_parse("", 0, &t, &st, &err), -UNI_EFORMAT);
	uni_ftext_deinit(&t);
	assert_int_equal(uni_ftext_parse("a;b 3\n", 6, &t, &st, NULL), -UNI_EFORMAT);
	uni_ftext_deinit(&t);
	assert_int_equal(uni_ftext_sniff("a;b 3\n", 6), 0);
	assert_int_equal(uni_ftext_sniff(HEAD, strlen(HEAD)), 100);
	assert_int_equal(uni_ftext_sniff(" 0)   0.071 us    |  leaf();", 28), 90);
}

/* "e" enter, "l" leave, "p" leaf, "r" return, "h" hit, "s" switch: one word an event. */
static struct uni_fcalls_stats calls(const char *text, const char *want)
{
	static const char types[] = { [UNI_CALL_ENTER] = 'e',
		[UNI_CALL_LEAVE] = 'l',
		[UNI_CALL_LEAF] = 'p',
		[UNI_CALL_ENTRY] = 'h',
		[UNI_CALL_RETURN] = 'r',
		[UNI_CALL_SWITCH] = 's' };
	const struct uni_call_event *e;
	struct uni_fcalls_stats st;
	struct uni_timeline tl;
	struct uni_fcalls *c;
	struct uni_strbuf b;
	struct uni_ftext t;
	uint64_t number;
	size_t nr;

	uni_strbuf_init(&b);
	(void)parse(text, &t);
	c = uni_fcalls_open(&t);
	assert_non_null(c);
	tl = uni_fcalls_timeline(c);
	while (tl.read(tl.ctx, &e, &nr) == 1) {
		for (size_t i = 0; i < nr; i++, e++) {
			uni_strbuf_addf(&b, "%c%s%s", types[e->type],
				(e->flags & UNI_CALL_CUT) != 0 ? "!" : "",
				(e->flags & UNI_CALL_BEGAN) != 0 ? "?" : "");
			(void)tl.thread(tl.ctx, e->thread, &number);
			uni_strbuf_addf(&b, " %s@%llu/%u.%llu", tl.func(tl.ctx, e->func),
				(unsigned long long)e->ns, e->depth, (unsigned long long)number);
			if (e->type == UNI_CALL_LEAVE)
				uni_strbuf_addf(&b, "=%llu,%llu", (unsigned long long)e->duration,
					(unsigned long long)e->self);
			uni_strbuf_addc(&b, '\n');
		}
	}
	assert_string_equal(b.s, want);
	st = *uni_fcalls_stats(c);
	uni_fcalls_close(c);
	uni_ftext_deinit(&t);
	uni_strbuf_deinit(&b);
	return st;
}

static void nesting(void **state)
{
	static const char want[] =
		"e a@0/0.0\ne a@0/1.0\nl a@71/1.0=71,71\nl a@208173/0.0=208173,208102\n"
		"e b@208173/0.0\nl b@209173/0.0=1000,1000\n";
	struct uni_fcalls_stats st = calls(" 0)               |  a() {\n"
					   " 0)   0.071 us    |    a();\n"
					   " 0) ! 208.173 us  |  }\n"
					   " 0)   1.000 us    |  b();\n",
		want);

	assert_int_equal(st.calls, 3);
	/* The same without indentation. */
	(void)calls("0) | a() {\n0) 0.071 us | a();\n0) ! 208.173 us | } /* a */\n0) 1 us | b();\n",
		want);
}

/* CPUs have stacks of their own. */
static void cpus(void **state)
{
	(void)calls(" 0)               |  a() {\n"
		    " 1)               |  b() {\n"
		    " 0)   1.000 us    |    c();\n"
		    " 1)   2.000 us    |    c();\n"
		    " 0)   3.000 us    |  }\n"
		    " 1)   4.000 us    |  }\n",
		"e a@0/0.0\ne b@0/0.0\ne c@0/1.0\nl c@1000/1.0=1000,1000\ne c@0/1.0\n"
		"l c@2000/1.0=2000,2000\nl a@3000/0.0=3000,2000\nl b@4000/0.0=4000,2000\n");
}

/* Threads, too; what ran first is what the first switch says, and a call may end elsewhere. */
static void threads(void **state)
{
	(void)calls(" 0)               |  a() {\n" RULER " 0) x-1  => y-2\n" RULER
		    " 0)   1.000 us    |  b();\n" RULER " 1) y-2  => x-1\n" RULER
		    " 1)   9.000 us    |  }\n",
		"e a@0/0.1\ns @0/0.1\ne b@0/0.2\nl b@1000/0.2=1000,1000\ns @0/0.2\n"
		"l a@9000/0.1=9000,9000\n");
}

/* Lines that are missing on either side. */
static void unbalanced(void **state)
{
	struct uni_fcalls_stats st = calls(" 0)   1.000 us    |    c();\n"
					   " 0)   3.000 us    |  } /* lost */\n"
					   " 0)   1.000 us    |  }\n"
					   " 0)               |  a() {\n"
					   " 0)               |    b() {\n"
					   " 0)   1.000 us    |      c();\n"
					   " 0)   5.000 us    |  } /* a */\n"
					   " 0)               |  d() {\n"
					   " 0)   2.000 us    |    e();\n"
					   " 0)   4.000 us    |  } /* f */\n"
					   " 0)               |  g() {\n"
					   " 0)               |    h();\n",
		"e c@0/1.0\nl c@1000/1.0=1000,1000\nl? lost@3000/0.0=3000,2000\nr @4000/0.0\n"
		"e a@4000/0.0\ne b@4000/1.0\ne c@4000/2.0\nl c@5000/2.0=1000,1000\n"
		"l! b@5000/1.0=1000,0\nl a@9000/0.0=5000,4000\n"
		"e d@9000/0.0\ne e@9000/1.0\nl e@11000/1.0=2000,2000\nl! d@11000/0.0=2000,0\n"
		"l? f@15000/0.0=4000,4000\n"
		"e g@15000/0.0\np h@15000/1.0\nl! g@15000/0.0=0,0\n");

	assert_int_equal(st.unopened, 3);
	assert_int_equal(st.unclosed, 3);
	assert_int_equal(st.untimed, 1);
}

/* Digits that Nanos cut off, as the calls inside show; a call cannot be shorter than these. */
static void damage(void **state)
{
	struct uni_fcalls_stats st = calls(" 0)               |  a() {\n"
					   " 0) @ 99999999 us |    b();\n"
					   " 0) @ 99999999 us |    b();\n"
					   " 0) @ 23456789 us |  }\n"
					   " 0)               |  c() {\n"
					   " 0)   2.000 us    |    d();\n"
					   " 0)   1.000 us    |  }\n",
		"e a@0/0.0\ne b@0/1.0\nl b@99999999000/1.0=99999999000,99999999000\n"
		"e b@99999999000/1.0\nl b@199999998000/1.0=99999999000,99999999000\n"
		"l a@234567890000/0.0=234567890000,34567892000\n"
		"e c@234567890000/0.0\ne d@234567890000/1.0\nl d@234567892000/1.0=2000,2000\n"
		"l c@234567892000/0.0=1000,0\n");

	assert_int_equal(st.repaired, 1);
	assert_int_equal(st.overfull, 1);
}

static void hits(void **state)
{
	(void)calls("  t-4 [001] 77: f <-g\n", "h f@77/0.4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_text),
		cmocka_unit_test(durations),
		cmocka_unit_test(other_text),
		cmocka_unit_test(absurd_numbers),
		cmocka_unit_test(no_text),
		cmocka_unit_test(nesting),
		cmocka_unit_test(cpus),
		cmocka_unit_test(threads),
		cmocka_unit_test(unbalanced),
		cmocka_unit_test(damage),
		cmocka_unit_test(hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
