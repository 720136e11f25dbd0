/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "root;caller;leaf 42", one a line; with opts.diff two numbers, before and after.
 * A leaf may itself end in a number ("lambda 3"), so a second number counts only when asked for.
 */
#include <string.h>

#include "import/stack.h"

#define SNIFF_LINES 32

static int sniff(const char *data, size_t size)
{
	size_t pos = 0, good = 0, all = 0;
	struct uni_line l;
	double v;

	while (all < SNIFF_LINES && uni_line_next(data, size, &pos, &l)) {
		if (l.len == 0)
			continue;
		all++;
		if (l.s[0] != '#' && uni_line_take_count(&l, &v) && l.len != 0)
			good++;
	}
	if (good == 0 || good * 2 < all)
		return 0;
	return good == all ? 70 : 40;
}

#define AT_ONCE 64

static void push_frames(struct uni_stack *s, const struct uni_line *l)
{
	struct uni_str names[AT_ONCE];
	size_t pos = 0, nr = 0;

	/* One over the limit is enough for uni_stack_flush() to see that it is too deep. */
	while (pos < l->len && s->frames.nr + nr <= UNI_IMPORT_DEPTH) {
		const char *semi = memchr(l->s + pos, ';', l->len - pos);
		size_t len = semi != NULL ? (size_t)(semi - (l->s + pos)) : l->len - pos;

		names[nr++] = (struct uni_str){ l->s + pos, len };
		pos += len + 1;
		if (nr == AT_ONCE) {
			uni_stack_push_names(s, names, nr);
			nr = 0;
		}
	}
	uni_stack_push_names(s, names, nr);
}

static int read_line(struct uni_stack *s, struct uni_line l, const struct uni_import_opts *opts,
	uint64_t line, struct uni_import_stats *stats)
{
	double value, value2 = 0.0;

	if (l.len == 0)
		return 0;
	if (!uni_line_take_count(&l, &value)) {
		uni_stats_bad_line(stats, line);
		return 0;
	}
	if (opts->diff) {
		value2 = value;
		if (!uni_line_take_count(&l, &value)) {
			uni_stats_bad_line(stats, line);
			return 0;
		}
	}
	push_frames(s, &l);
	if (opts->reverse)
		uni_stack_reverse(s);
	return uni_stack_flush(s, false, value, value2, stats);
}

static int read_folded(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_import_stats stats = { 0 };
	struct uni_stack s;
	struct uni_line l;
	uint64_t line = 0;
	size_t pos = 0;
	int rc = 0;

	if (!uni_stack_init(&s, p) || (opts->diff && uni_profile_enable_second(p) != 0))
		rc = -UNI_ENOMEM;
	while (rc == 0 && uni_line_next(data, size, &pos, &l))
		rc = read_line(&s, l, opts, ++line, &stats);
	uni_stack_deinit(&s);
	if (rc != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory after %llu stacks",
			(unsigned long long)stats.stacks);
	if (stats.stacks == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"not one line of the form \"frame;frame;frame %s\"%s",
			opts->diff ? "BEFORE AFTER" : "COUNT",
			size == 0 ? ": the input is empty" : "");
	*stats_ret = stats;
	return 0;
}

const struct uni_importer uni_importer_folded = {
	.name = "folded",
	.summary = "folded stacks: one \"root;caller;leaf COUNT\" a line",
	.sniff = sniff,
	.read = read_folded,
};
