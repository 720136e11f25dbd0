/* SPDX-License-Identifier: BSD-2-Clause */
/* Each reason why a choice of functions is refused: all that is as it should be, but for one thing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/checked.h"
#include "obj/image_priv.h"
#include "tracing/plan.h"

static char path[] = "web.elf";
static struct uni_image image = { .path = path };
static struct uni_site_function functions[] = { { .addr = 0x1000, .name = "tcp_input" },
	{ .addr = 0x2000, .name = "tcp_output" } };
static struct uni_sites sites = { .function = functions, .nr_functions = 2 };
static struct uni_ring_info able = { .text_rules = 1, .conditions = 1, .reads = 1 };
static const struct uni_trace_hooks all_hooks = { .entry = 1,
	.entry_any = 2,
	.exit = 3,
	.entry_args = 4,
	.entry_start = 5,
	.entry_stop = 6,
	.entry_freeze = 7,
	.exit_lite = 8,
	.exit_min = 9,
	.entry_caller = 10 };

static struct uni_trace_guest any_guest(void)
{
	return (struct uni_trace_guest){ .image = &image,
		.sites = &sites,
		.info = &able,
		.hooks = all_hooks,
		.tsc_hz = 1000000000 };
}

static void expect_ok(const struct uni_trace_guest *g, const struct uni_trace_choice *c)
{
	struct uni_err err = { 0 };

	assert_int_equal(uni_trace_plan_check(g, c, &err), 0);
	assert_string_equal(err.msg, "");
}

static void expect_no(const struct uni_trace_guest *g, const struct uni_trace_choice *c, int rc,
	const char *words)
{
	struct uni_err err = { 0 };

	assert_int_equal(uni_trace_plan_check(g, c, &err), rc);
	assert_int_equal(err.code, -rc);
	if (strstr(err.msg, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, err.msg);
}

/* Without entries of calls alone there are no ends, so no depth and no length. */
static void ends_are_needed(void **state)
{
	const struct uni_trace_guest g = any_guest();
	struct uni_trace_choice c = { .mode = UNI_TRACE_FUNCTION };

	expect_ok(&g, &c);
	c.max_depth = 1;
	expect_no(&g, &c, -UNI_EUSAGE, "--depth needs the ends of calls, and --mode function");
	c.max_depth = 0;
	c.min_ns = 1;
	expect_no(&g, &c, -UNI_EUSAGE, "--min-duration needs the ends of calls");
	c.mode = UNI_TRACE_CALLERS;
	expect_no(&g, &c, -UNI_EUSAGE, "--mode callers records none");
	c.mode = UNI_TRACE_GRAPH;
	c.max_depth = 1;
	expect_ok(&g, &c);
	c.mode = UNI_TRACE_LITE;
	expect_ok(&g, &c);
}

/* A guest that lacks this hook traces all the same, if nothing that is asked needs it. */
static void expect_needed(size_t offset, const struct uni_trace_choice *needs,
	const struct uni_trace_choice *other, const char *words)
{
	struct uni_trace_guest g = any_guest();

	expect_ok(&g, needs);
	memset((char *)&g.hooks + offset, 0, sizeof(uint64_t));
	expect_no(&g, needs, -UNI_ENOTSUP, words);
	if (other != NULL)
		expect_ok(&g, other);
}

static void hooks_are_needed(void **state)
{
	const struct uni_trace_want args = { .function = "tcp_*" };
	const struct uni_trace_trigger trigger = { "tcp_input", UNI_TRIGGER_STOP };
	const struct uni_trace_choice graph = { .mode = UNI_TRACE_GRAPH },
				      entries = { .mode = UNI_TRACE_FUNCTION },
				      callers = { .mode = UNI_TRACE_CALLERS },
				      with_args = { .mode = UNI_TRACE_GRAPH,
					      .args = &args,
					      .nr_args = 1 },
				      triggered = { .mode = UNI_TRACE_GRAPH,
					      .trigger = &trigger,
					      .nr_triggers = 1 };
	const char *none = "has no hook for what is asked";

	expect_needed(offsetof(struct uni_trace_hooks, entry), &entries, NULL, none);
	expect_needed(offsetof(struct uni_trace_hooks, entry_any), &entries, NULL, none);
	expect_needed(offsetof(struct uni_trace_hooks, exit), &graph, &entries, none);
	expect_needed(offsetof(struct uni_trace_hooks, exit_lite), &graph, &entries, none);
	expect_needed(offsetof(struct uni_trace_hooks, exit_min), &graph, &entries, none);
	expect_needed(offsetof(struct uni_trace_hooks, entry_args), &with_args, &graph, none);
	expect_needed(offsetof(struct uni_trace_hooks, entry_start), &triggered, &graph, none);
	expect_needed(offsetof(struct uni_trace_hooks, entry_freeze), &triggered, &graph, none);
	expect_needed(offsetof(struct uni_trace_hooks, entry_caller), &callers, &entries,
		"tells no callers");
}

/* As --args has it. */
static struct uni_trace_want want(const char *words)
{
	struct uni_trace_want w;
	struct uni_err err = { 0 };

	assert_int_equal(uni_trace_want_parse(words, &w, &err), 0);
	return w;
}

static void expect_able(const char *words, size_t offset, const char *lacks)
{
	const struct uni_trace_want args = want(words), plain = want("tcp_*");
	const struct uni_trace_choice c = { .mode = UNI_TRACE_GRAPH, .args = &args, .nr_args = 1 },
				      p = { .mode = UNI_TRACE_GRAPH, .args = &plain, .nr_args = 1 };
	struct uni_trace_guest g = any_guest();
	struct uni_ring_info info = able;

	g.info = &info;
	expect_ok(&g, &c);
	memset((char *)&info + offset, 0, sizeof(uint64_t));
	expect_no(&g, &c, -UNI_ENOTSUP, lacks);
	expect_ok(&g, &p);
}

static void guests_differ_in_what_they_can(void **state)
{
	const struct uni_trace_want reads = want("tcp_*(@ticks)");
	const struct uni_trace_choice c = { .mode = UNI_TRACE_GRAPH, .args = &reads, .nr_args = 1 },
				      shortest = { .mode = UNI_TRACE_GRAPH, .min_ns = 1 };
	struct uni_trace_guest g = any_guest();

	expect_able("tcp_*(1:s)", offsetof(struct uni_ring_info, text_rules), "copies no text");
	expect_able(
		"tcp_*(1>5)", offsetof(struct uni_ring_info, conditions), "heeds no conditions");
	expect_able("tcp_*(@ticks)", offsetof(struct uni_ring_info, reads), "reads no variables");
	g.inside = true;
	expect_no(&g, &c, -UNI_ENOTSUP, "over its port the guest lets nobody read its variables");
	g.inside = false;
	expect_ok(&g, &shortest);
	g.tsc_hz = 0;
	expect_no(&g, &shortest, -UNI_ENOTSUP, "the frequency of its counter");
}

/* Functions that call the tracer by themselves are all traced, or none. */
static void all_or_none(void **state)
{
	static const char *const glob[] = { "tcp_*" };
	static const struct uni_sites no_sites;
	const struct uni_trace_choice all = { .mode = UNI_TRACE_GRAPH },
				      some = { .mode = UNI_TRACE_GRAPH,
					      .glob = glob,
					      .nr_globs = 1 },
				      not = {
					      .mode = UNI_TRACE_GRAPH, .not_glob = glob, .nr_not = 1
				      };
	const struct uni_trace_plan nothing = { 0 };
	struct uni_trace_guest g = any_guest();
	struct uni_err err = { 0 };

	g.calls_itself = true;
	expect_ok(&g, &some); /* it has others, that can be chosen */
	g.sites = &no_sites;
	expect_ok(&g, &all);
	expect_no(&g, &some, -UNI_ENOTSUP, "web.elf call the tracer by themselves");
	expect_no(&g, &not, -UNI_ENOTSUP, "All of them are traced or none");
	assert_int_equal(uni_trace_plan_check_found(&g, &all, &nothing, &err), 0);
}

static void names_are_there(void **state)
{
	const struct uni_trace_want args = want("udp_*"), some = want("*_output");
	const struct uni_trace_trigger trigger = { "tcp_*", UNI_TRIGGER_START },
				       exact = { "tcp_output", UNI_TRIGGER_START };
	const struct uni_trace_guest g = any_guest();
	struct uni_trace_choice c = { .mode = UNI_TRACE_GRAPH, .args = &args, .nr_args = 1 };

	expect_no(&g, &c, -UNI_ENOENT, "--args udp_*: no function of that name");
	c.args = &some;
	c.trigger = &trigger;
	c.nr_triggers = 1;
	expect_no(&g, &c, -UNI_ENOENT, "--trigger tcp_*: no function of that name");
	c.trigger = &exact;
	expect_ok(&g, &c);
	c.args = &args; /* the trigger is found; the arguments' is not */
	expect_no(&g, &c, -UNI_ENOENT, "(nm web.elf lists names)");
	expect_ok(&g, NULL);
}

static void nothing_was_found(void **state)
{
	const struct uni_trace_choice c = { .mode = UNI_TRACE_GRAPH },
				      threads = { .promises = true };
	const struct {
		struct uni_trace_plan plan;
		int rc;
		const char *words;
	} cases[] = {
		{ { .nr_no_exits = 3, .nr_pieces = 2, .nr_unlike = 1 }, -UNI_ENOENT,
			"returns of the 3 functions" },
		{ { .nr_pieces = 2, .nr_unlike = 1 }, -UNI_ENOENT,
			"the 2 functions that match begin with several" },
		{ { .nr_unlike = 1 }, -UNI_EMISMATCH,
			"hold other code in the guest than in web.elf" },
		{ { .nr_sites = 0 }, -UNI_ENOENT,
			"no function matches, of the 2 that can be traced" },
		{ { .nr_functions = 1, .nr_unlike = 1 }, 0, "" },
	};
	const struct uni_trace_guest g = any_guest();

	for (size_t i = 0; i < uni_array_len(cases); i++) {
		struct uni_err err = { 0 };

		assert_int_equal(
			uni_trace_plan_check_found(&g, &c, &cases[i].plan, &err), cases[i].rc);
		assert_non_null(strstr(err.msg, cases[i].words));
		assert_int_equal(uni_trace_plan_check_found(&g, &threads, &cases[i].plan, NULL), 0);
		assert_int_equal(uni_trace_plan_check_found(&g, NULL, &cases[i].plan, NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_needed),
		cmocka_unit_test(hooks_are_needed),
		cmocka_unit_test(guests_differ_in_what_they_can),
		cmocka_unit_test(all_or_none),
		cmocka_unit_test(names_are_there),
		cmocka_unit_test(nothing_was_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
