/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of a session by time and vCPU: the same options for all commands that show one. */
#ifndef UNI_APP_PART_H
#define UNI_APP_PART_H

#include "app/options.h"
#include "recording/recording.h"

/* Seconds since the session's first sample (or exit, if it has none); in commands of `trace`, since
 * the trace's first event. */
struct uni_part {
	double from, to;
	uint64_t vcpu;
	bool to_given, vcpu_given;
};

#define UNI_PART_OPTIONS(p)                                                                      \
	{ 0, "from", UNI_OPT_DOUBLE, &(p).from, "SECONDS",                                       \
		"only from this time on, counted from the first sample, or event of a trace",    \
		NULL, NULL },                                                                    \
		{ 0, "to", UNI_OPT_DOUBLE, &(p).to, "SECONDS",                                   \
			"only until here. It is an error if nothing was recorded in this time",  \
			NULL, &(p).to_given },                                                   \
	{                                                                                        \
		0, "vcpu", UNI_OPT_U64, &(p).vcpu, "N", "only this vCPU", NULL, &(p).vcpu_given, \
			.old_name = "cpu"                                                        \
	}

bool uni_part_has_time(const struct uni_part *p);
/* -UNI_EUSAGE: the times are none. */
int uni_part_check(const struct uni_part *p, struct uni_err *err);
/* The window in host time, *to_ret 0: without an end. begin_ns is 0 s. */
void uni_part_window(
	const struct uni_part *p, uint64_t begin_ns, uint64_t *from_ret, uint64_t *to_ret);
/* -UNI_ENOENT, in all commands: there is nothing in this time. `what` there is, such as "sample",
 * and when the last one is. */
int uni_part_empty(const struct uni_part *p, const char *path, const char *what, uint64_t begin_ns,
	uint64_t last_ns, struct uni_err *err);
/* The same of a session, into the filter; its samples or exits have times, or it fails. */
int uni_part_choose(const struct uni_part *p, struct uni_recording *rec,
	struct uni_sample_filter *filter, struct uni_err *err);

#define UNI_PART_TEXT 256

/* "2 s to 3.5 s, vCPU 1, threads worker* only": for headings. */
void uni_part_text(char ret[UNI_PART_TEXT], const struct uni_record_part *p);

#endif
