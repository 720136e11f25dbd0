/* SPDX-License-Identifier: BSD-2-Clause */
/* The file that Unikraft's uk-trace fetches: tracepoints with their _ret or _err are calls,
 * weighted by the nanoseconds that each took itself. */
#include "format/uktrace/timeline.h"
#include "format/import.h"
#include "profile/calls.h"

static int sniff_uktrace(const char *data, size_t size)
{
	return uni_ukt_file_is(data, size) ? 100 : 0;
}

static int add_calls(struct uni_ukt_trace *t, struct uni_profile *p, struct uni_import_stats *st,
	struct uni_err *err)
{
	struct uni_ukt_timeline *tl = uni_ukt_timeline_open(t);
	struct uni_profile_calls added = { 0 };
	struct uni_timeline calls;
	int rc = -UNI_ENOMEM;

	if (tl != NULL) {
		calls = uni_ukt_timeline_get(tl);
		rc = uni_profile_add_calls(p, &calls, false, NULL, &added);
	}
	uni_ukt_timeline_close(tl);
	st->stacks = added.calls;
	st->truncated = added.cut;
	st->bad_lines = t->stats.gaps;
	if (rc != 0)
		return uni_err_nomem(err);
	return 0;
}

static int read_uktrace(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_import_stats st = { 0 };
	struct uni_ukt_trace t = { 0 };
	struct uni_ukt_file f;
	int rc = uni_ukt_file_read(data, size, &f, err);

	if (rc != 0)
		return rc;
	rc = uni_ukt_trace_open(&f, &t, err);
	if (rc == 0)
		rc = add_calls(&t, p, &st, err);
	if (rc == 0)
		*stats_ret = st;
	uni_ukt_trace_close(&t);
	uni_ukt_file_free(&f);
	return rc;
}

const struct uni_importer uni_importer_uktrace = {
	.name = "uktrace",
	.summary = "tracepoints of Unikraft, as `uniscope compat uk-trace fetch` or Unikraft's own "
		   "uk-trace saved them",
	.gives = UNI_GIVES_CALLS,
	.sniff = sniff_uktrace,
	.read = read_uktrace,
};
