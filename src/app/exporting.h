/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of `export` for exporters: profiles, samples and calls, opened as each needs them. */
#ifndef UNI_APP_EXPORTING_H
#define UNI_APP_EXPORTING_H

#include "app/input.h"
#include "app/source.h"
#include "app/timeline.h"
#include "format/export.h"

struct uni_exporting {
	struct uni_source_args src;
	const char *calls;  /* "", "time", "count": the functions of a trace; NULL: no */
	const char *before; /* the file to compare with, or NULL */
	/* before's values to the total of src's: always; never; neither: unless they are exact
	 * counts */
	bool normalize, raw;
	bool keep_log;	    /* the order of stacks is wanted */
	bool walked, piled; /* only formats of UNI_WALKS_TREE, of UNI_TAKES_PILE are written */
	/* Private */
	struct uni_input in; /* read once: it may be a pipe */
	struct uni_source s;
	struct uni_profile *diff;
	char *sides; /* "AFTER, compared with BEFORE"; NULL: not yet, or not compared */
	struct uni_promise_builder *promises;
	const struct uni_promise_model *model; /* promises', or NULL: there are none */
	/* told: the trace's losses were reported, once for all formats */
	/* doubted: and so was that the samples are no profile */
	bool has_input, opened, told, doubted;
	bool looked, no_calls; /* the trace was looked at: it has no call of a function */
};

/* Reads the source; the others do that by themselves. */
int uni_exporting_open(struct uni_exporting *x, struct uni_err *err);
/* Writes one format to path ("-" is standard output; a folder must not exist yet). Data that the
 * format cannot hold, and losses in the trace, are reported on stderr. */
int uni_exporting_write(struct uni_exporting *x, const struct uni_exporter *e,
	const struct uni_export_opt *opts, size_t nr_opts, const char *path, struct uni_err *err);
void uni_exporting_close(struct uni_exporting *x);

/* Private, of exporting_before.c: into x->diff what changed, of samples; of calls, if not yet. */
int uni_exporting_open_before(struct uni_exporting *x, struct uni_err *err);
int uni_exporting_compare_calls(struct uni_exporting *x, const char *by, struct uni_err *err);

#endif
