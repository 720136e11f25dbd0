/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row for each call that returned, in the order of their ends, as Nanos' parse-trace.py makes
 * from a function_graph text. Without calls, a row for each function of a profile, as the page
 * saves it. Lines end in CR LF and names are quoted if they need it (RFC 4180).
 */
#include "format/csv/csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "format/opts.h"

struct options {
	bool cpu;
};

static const struct uni_export_optdef optdefs[] = {
	{ "cpu", NULL, "the CPU's number instead of the thread's in the column tid (default no)",
		UNI_OPT_BOOL, offsetof(struct options, cpu) },
	{ 0 },
};

static int write_csv(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_csv = {
	.name = "csv",
	.ext = "csv",
	.mime = "text/csv",
	.summary = "a row a call: function, thread, time in all and by itself (Nanos' trace.csv); "
		   "of samples, a row a function: self and total",
	.lost = "who called whom, times, vCPUs, threads",
	.needs = UNI_NEEDS_TIMELINE | UNI_OR_PROFILE,
	.options = optdefs,
	.write = write_csv,
};

void uni_csv_text(struct uni_sink *out, const char *s)
{
	if (strpbrk(s, ",\"") == NULL) {
		uni_sink_puts(out, s);
		return;
	}
	uni_sink_putc(out, '"');
	for (; *s != '\0'; s++) {
		if (*s == '"')
			uni_sink_putc(out, '"');
		uni_sink_putc(out, *s);
	}
	uni_sink_putc(out, '"');
}

/* "12.0", "0.071": as many decimals as it takes, at least one. */
static void put_us(struct uni_sink *out, uint64_t ns)
{
	unsigned frac = (unsigned)(ns % UNI_NSEC_PER_USEC), digits = 3;

	while (digits > 1 && frac % 10 == 0) {
		frac /= 10;
		digits--;
	}
	uni_sink_printf(out, ",%llu.%0*u", ns / UNI_NSEC_PER_USEC, (int)digits, frac);
}

static void put_row(struct uni_sink *out, const struct uni_timeline *tl, const struct options *o,
	const struct uni_call_event *e)
{
	uint64_t number = e->cpu;

	if (!o->cpu)
		(void)tl->thread(tl->ctx, e->thread, &number);
	uni_csv_text(out, tl->func(tl->ctx, e->func));
	uni_sink_printf(out, ",%" PRIu64, number);
	put_us(out, e->duration);
	put_us(out, e->self);
	uni_sink_puts(out, "\r\n");
}

/* A spreadsheet would take some names for formulas. */
static void put_name(struct uni_sink *out, const char *s)
{
	if (strchr("=+-@\t", s[0]) == NULL || s[0] == '\0') {
		uni_csv_text(out, s);
		return;
	}
	uni_sink_puts(out, "\"'");
	for (; *s != '\0'; s++) {
		if (*s == '"')
			uni_sink_putc(out, '"');
		uni_sink_putc(out, *s);
	}
	uni_sink_putc(out, '"');
}

static int write_functions(const struct uni_profile *p, struct uni_sink *out, struct uni_err *err)
{
	_cleanup_free_ struct uni_func_row *rows = NULL;
	bool two = uni_profile_has_second(p);
	size_t nr = 0;

	if (uni_profile_functions(p, &rows, &nr) != 0)
		return uni_err_nomem(err);
	uni_sink_puts(
		out, two ? "function,image,self before,self after,total before,total after\r\n"
			 : "function,image,self,total\r\n");
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, rows[i].frame);

		put_name(out, uni_profile_str(p, f->name));
		uni_sink_putc(out, ',');
		put_name(out, uni_profile_str(p, f->image));
		uni_sink_printf(out, ",%.15g", rows[i].self);
		if (two)
			uni_sink_printf(out, ",%.15g", rows[i].self2);
		uni_sink_printf(out, ",%.15g", rows[i].total);
		if (two)
			uni_sink_printf(out, ",%.15g", rows[i].total2);
		uni_sink_puts(out, "\r\n");
	}
	return 0;
}

static int write_csv(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	const struct uni_timeline *tl = v->timeline;
	struct options o = { 0 };
	const struct uni_call_event *e;
	uint64_t untimed = 0, others = 0, rows = 0;
	size_t nr;
	int rc = uni_export_opts_parse(&uni_exporter_csv, opts, nr_opts, &o, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_csv, v, err);
	if (rc != 0)
		return rc;
	if (tl == NULL)
		return write_functions(v->profile, out, err);
	uni_sink_puts(out, "function,tid,latency_us,latency_us_self\r\n");
	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr; i++) {
			if (e[i].type == UNI_CALL_LEAVE && (e[i].flags & UNI_CALL_CUT) == 0)
				put_row(out, tl, &o, &e[i]);
			rows += e[i].type == UNI_CALL_LEAVE || e[i].type == UNI_CALL_ENTER;
			others += e[i].type == UNI_CALL_EXT || e[i].type == UNI_CALL_SWITCH;
			untimed += e[i].type == UNI_CALL_LEAF || e[i].type == UNI_CALL_ENTRY;
		}
	}
	if (rc == 0 && others != 0 && rows + untimed == 0)
		return uni_err_set(err, UNI_ENOENT,
			"the trace has no calls of functions, only what threads and promises did");
	if (untimed != 0 && v->lost != NULL)
		uni_strbuf_addf(
			v->lost, "%" PRIu64 " calls tell no time: they have no row\n", untimed);
	return rc == 0 ? 0 : uni_err_nomem(err);
}
