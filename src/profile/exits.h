/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VM exits of a recording as a table: what made the guest leave, in which function, how often, and
 * how long the host took.
 */
#ifndef UNI_PROFILE_EXITS_H
#define UNI_PROFILE_EXITS_H

#include "base/sink.h"
#include "profile/build.h"
#include "profile/text.h"

/* Exits with the same label, in the same function. */
struct uni_exit_row {
	const char *label;    /* "io out 0x3f8"; borrowed from the table */
	const char *isa;      /* "VMX" */
	const char *function; /* in which the guest left; borrowed; cleaned */
	const char *guest;    /* its name, "" if there is only one; borrowed; cleaned */
	bool halt;	      /* asleep is idle time */
	double exits;
	double userspace;      /* of these the VMM had to handle */
	double host_ns;	       /* until the guest was entered again, without stolen time */
	double asleep_ns;      /* of that: the thread slept */
	double stolen_ns;      /* besides: it was ready, and the host ran something else */
	double p50_ns, p99_ns; /* of host_ns of single exits, within an eighth */
};

struct uni_exit_table;

/* opts as for uni_profile_build(). Sorted by number with UNI_BUILD_EXITS, else by host time without
 * idle time. */
int uni_exit_table_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_exit_table **ret, struct uni_build_read *read_ret, struct uni_err *err);
void uni_exit_table_destroy(struct uni_exit_table *t); /* NULL-safe */
size_t uni_exit_table_rows(const struct uni_exit_table *t, const struct uni_exit_row **ret);
/* All rows together; label, function and percentiles mean nothing. */
const struct uni_exit_row *uni_exit_table_sum(const struct uni_exit_table *t);
/* The host's cost of them: excludes the time in which a halted guest's thread slept. */
double uni_exit_row_cost_ns(const struct uni_exit_row *row);

void uni_text_exits(
	const struct uni_exit_table *t, const struct uni_text_opts *opts, struct uni_sink *out);
/* docs/formats/json.md */
/* part NULL: of all the recording. */
void uni_json_exits(
	const struct uni_exit_table *t, const struct uni_record_part *part, struct uni_sink *out);

#endif
