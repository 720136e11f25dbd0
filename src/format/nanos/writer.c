/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of Nanos' and Linux' tracers, function_graph or function. */
#include <string.h>

#include "format/opts.h"

struct options {
	const char *tracer;
};

static const struct uni_export_optdef optdefs[] = {
	{ "tracer", "NAME", "function_graph (default), or function: a line for each entry",
		UNI_OPT_STR, offsetof(struct options, tracer) },
	{ 0 },
};

static int write_nanos(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_nanos = {
	.name = "nanos",
	.ext = "ftrace",
	.mime = "text/plain",
	.summary = "text as the tracers function_graph and function of Nanos print it",
	.needs = UNI_NEEDS_TIMELINE,
	.options = optdefs,
	.write = write_nanos,
};

static int write_nanos(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct options o = { .tracer = "function_graph" };
	int rc = uni_export_opts_parse(&uni_exporter_nanos, opts, nr_opts, &o, err);
	bool function = strcmp(o.tracer, "function") == 0;

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_nanos, v, err);
	if (rc == 0 && !function && strcmp(o.tracer, "function_graph") != 0)
		rc = uni_err_set(err, UNI_EUSAGE,
			"format nanos: tracer is function_graph or function, not \"%s\"", o.tracer);
	return rc != 0 ? rc : v->timeline->text(v->timeline->ctx, function, out, err);
}
