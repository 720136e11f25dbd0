/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of record on stderr at the end, and of export about a recording. */
#ifndef UNI_APP_SUMMARY_H
#define UNI_APP_SUMMARY_H

#include "profile/profile.h"
#include "sampling/sampler.h"

#define UNI_SUMMARY_KEPT "; what was collected until then is kept"

/* of: the guest's name, when there is more than one; else "". how it ended, "" unknown. */
void uni_summary_guest(const char *of, const struct uni_record_meta *m,
	const struct uni_record_stats *st, enum uni_sampler_end end, const char *how);
/* In one line for each guest whose samples are no profile of its image: what they are. */
void uni_summary_doubts(const struct uni_recording *rec, const struct uni_sample_filter *shown);
/* For formats that cannot mark them: which functions are unsure. Nothing, if none is. */
void uni_summary_unsure(const struct uni_profile *p);

#endif
