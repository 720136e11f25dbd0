/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row for each call that returned, in the order of their ends: what Nanos' parse-trace.py makes
 * of a function_graph text. Lines end in CR LF and names are quoted where they need it (RFC 4180).
 */
#include "export/csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "export/opts.h"

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
	.summary = "a row a call: function, thread, time in all and by itself (Nanos' trace.csv)",
	.needs = UNI_NEEDS_TIMELINE,
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

static int write_csv(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	const struct uni_timeline *tl = v->timeline;
	struct options o = { 0 };
	const struct uni_call_event *e;
	size_t nr;
	int rc = uni_export_opts_parse(&uni_exporter_csv, opts, nr_opts, &o, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_csv, v, err);
	if (rc != 0)
		return rc;
	uni_sink_puts(out, "function,tid,latency_us,latency_us_self\r\n");
	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr; i++) {
			if (e[i].type == UNI_CALL_LEAVE && (e[i].flags & UNI_CALL_CUT) == 0)
				put_row(out, tl, &o, &e[i]);
		}
	}
	return rc == 0 ? 0 : uni_err_set(err, UNI_ENOMEM, "out of memory");
}
