/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of exporters: one table binds names to members, so help and parsing cannot drift. */
#ifndef UNI_FORMAT_OPTS_H
#define UNI_FORMAT_OPTS_H

#include "format/export.h"

enum uni_export_opt_type {
	UNI_OPT_STR,	  /* const char *, borrowed */
	UNI_OPT_MAYBE,	  /* the same; "" without a value */
	UNI_OPT_BOOL,	  /* bool */
	UNI_OPT_DOUBLE,	  /* double, at least 0 */
	UNI_OPT_POSITIVE, /* double, above 0 */
	UNI_OPT_U64,	  /* uint64_t */
};

/*
 * Puts values into the members of `base` that the table names. Names may be shortened as long as
 * one option fits. -UNI_EUSAGE names the options there are.
 */
int uni_export_opts_parse(const struct uni_exporter *e, const struct uni_export_opt *opts,
	size_t nr_opts, void *base, struct uni_err *err);

/* -UNI_EUSAGE if the view lacks something that e->needs. */
int uni_export_check_view(
	const struct uni_exporter *e, const struct uni_view *v, struct uni_err *err);

#endif
