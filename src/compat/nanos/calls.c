/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/nanos/calls.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/clock.h"
#include "base/door.h"
#include "base/json.h"
#include "base/text.h"
#include "app/term.h"
#include "app/timeline.h"
#include "format/csv/csv.h"
#include "format/csv/calls.h"
#include "format/ftrace/ftext.h"

#define INPUT_MOST ((size_t)4 << 30)
#define DECIMALS   6

static int add_source(const char *path, bool by_cpu, struct uni_call_table *t, struct uni_err *err)
{
	struct uni_source_args args = { .path = path, .build = UNI_BUILD_DEFAULTS };
	struct uni_call_source *s;
	int rc = uni_call_source_open(&args, &s, err);

	if (rc != 0)
		return rc;
	rc = uni_call_table_read(t, uni_call_source_get(s), by_cpu);
	if (rc != 0)
		rc = uni_err_nomem(err);
	else
		uni_call_source_note(s);
	uni_call_source_close(s);
	return rc;
}

static int add_csv(const char *path, const char *data, size_t size, struct uni_call_table *t,
	struct uni_err *err)
{
	struct uni_callcsv_stats st;
	int rc = uni_callcsv_read(data, size, t, &st, err);

	if (rc != 0)
		return uni_err_prefix(err, "%s", path);
	if (st.bad_lines != 0)
		uni_note("%s: %" PRIu64
			 " lines are no rows of trace.csv and were passed over (the first "
			 "is line %" PRIu64 ")",
			path, st.bad_lines, st.first_bad_line);
	if (st.negative != 0)
		uni_note("%s: %" PRIu64 " calls took less than no time: they count as 0", path,
			st.negative);
	return 0;
}

/* A pipe cannot be read twice, so it is not tested. */
static bool is_trace(const char *path)
{
	_cleanup_close_ int fd = -1;
	char head[4096];
	struct stat st;
	ssize_t n;

	if (uni_door_fstatat(AT_FDCWD, path, &st, 0) != 0 ||
		(!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	if (S_ISDIR(st.st_mode))
		return true;
	n = uni_open_input(path, &fd, NULL) == 0 ? read(fd, head, sizeof(head)) : 0;
	return n > 0 && uni_ftext_sniff(head, (size_t)n) != 0;
}

int uni_compat_calls(const char *path, bool by_cpu, struct uni_call_table *t, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = uni_call_table_init(t);

	if (rc != 0)
		return uni_err_nomem(err);
	if (is_trace(path))
		return add_source(path, by_cpu, t, err);
	rc = uni_read_input(path, INPUT_MOST, &data, &size, err);
	return rc == 0 ? add_csv(path, data, size, t, err) : rc;
}

/* Milliseconds, exact, without zeros at the end. */
static const char *format_ms(uint64_t ns, char buf[40])
{
	int n = snprintf(buf, 40, "%llu.%06llu", ns / UNI_NSEC_PER_MSEC, ns % UNI_NSEC_PER_MSEC);

	for (unsigned i = 0; i < DECIMALS && buf[n - 1] == '0'; i++)
		n--;
	if (buf[n - 1] == '.')
		n--;
	buf[n] = '\0';
	return buf;
}

void uni_compat_summary(const struct uni_call_table *merged, bool table, struct uni_sink *out)
{
	char total[40], self[40];

	if (table)
		uni_sink_printf(
			out, "%-30s\t%s\t%13s\t%13s\n", "function", "count", "tot lat", "self lat");
	else
		uni_sink_puts(out, "function,count,tot lat,self lat\n");
	for (size_t i = 0; i < merged->cells.nr; i++) {
		const struct uni_call_cell *c = &merged->cells.v[i];
		const char *name = uni_call_table_name(merged, c);

		if (table) {
			uni_sink_printf(out, "%-30s\t%" PRIu64 "\t%13s\t%13s\n", name, c->calls,
				format_ms(c->ns, total), format_ms(c->self_ns, self));
			continue;
		}
		uni_csv_text(out, name);
		uni_sink_printf(out, ",%" PRIu64 ",%s,%s\n", c->calls, format_ms(c->ns, total),
			format_ms(c->self_ns, self));
	}
}

/* Cells of the thread that begins at i: up to here, and their sum. */
static size_t thread_end(const struct uni_call_table *t, size_t i, struct uni_call_cell *sum)
{
	*sum = (struct uni_call_cell){ .where = t->cells.v[i].where };
	for (; i < t->cells.nr && t->cells.v[i].where == sum->where; i++) {
		sum->calls += t->cells.v[i].calls;
		sum->self_ns += t->cells.v[i].self_ns;
	}
	return i;
}

void uni_compat_breakdown(const struct uni_call_table *t, const char *where, struct uni_sink *out)
{
	struct uni_call_cell sum;
	char buf[40];

	uni_sink_puts(out, "Sum of Per-Function Self Latencies\n");
	for (size_t i = 0, end; i < t->cells.nr; i = end) {
		end = thread_end(t, i, &sum);
		uni_sink_printf(out, "\n%s %" PRIu64 ": %s ms, %" PRIu64 " call%s\n", where,
			sum.where, format_ms(sum.self_ns, buf), sum.calls, uni_plural(sum.calls));
		uni_sink_printf(
			out, "  %13s  %6s  %10s  %s\n", "self ms", "%", "calls", "function");
		for (; i < end; i++) {
			const struct uni_call_cell *c = &t->cells.v[i];

			uni_sink_printf(out, "  %13s  %6.2f  %10" PRIu64 "  %s\n",
				format_ms(c->self_ns, buf),
				sum.self_ns != 0 ? 100.0 * (double)c->self_ns / (double)sum.self_ns
						 : 0.0,
				c->calls, uni_call_table_name(t, c));
		}
	}
}

void uni_compat_breakdown_json(
	const struct uni_call_table *t, const char *where, struct uni_sink *out)
{
	struct uni_call_cell sum;
	struct uni_json j;

	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-breakdown");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(str, &j, "unit", "ns");
	uni_json_kv(str, &j, "by", where);
	uni_json_key(&j, "parts");
	uni_json_array(&j);
	for (size_t i = 0, end; i < t->cells.nr; i = end) {
		end = thread_end(t, i, &sum);
		uni_json_object(&j);
		uni_json_kv(u64, &j, where, sum.where);
		uni_json_kv(u64, &j, "self", sum.self_ns);
		uni_json_kv(u64, &j, "calls", sum.calls);
		uni_json_key(&j, "functions");
		uni_json_array(&j);
		for (; i < end; i++) {
			const struct uni_call_cell *c = &t->cells.v[i];

			uni_json_object(&j);
			uni_json_kv(str, &j, "name", uni_call_table_name(t, c));
			uni_json_kv(u64, &j, "self", c->self_ns);
			uni_json_kv(u64, &j, "total", c->ns);
			uni_json_kv(u64, &j, "calls", c->calls);
			uni_json_object_end(&j);
		}
		uni_json_array_end(&j);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
}
