/* SPDX-License-Identifier: BSD-2-Clause */
/* The gaps of a recording stay in the order of time, and none overlaps another. */
#include "recording/recording.h"

#include "base/checked.h"

#define PARTS_LEAST 16 /* room that is kept for gaps behind which a part begins */

/* Both are of the same VMM: one gap says it. A restore says more. */
static void join_gaps(const struct uni_record_gap *before, struct uni_record_gap *gap)
{
	gap->begin_ns = uni_min(gap->begin_ns, before->begin_ns);
	gap->end_ns = uni_max(gap->end_ns, before->end_ns);
	if (gap->back_ns != 0 || before->back_ns != 0)
		gap->held = UNI_HELD_NOT;
	gap->back_ns = uni_max(gap->back_ns, before->back_ns);
}

bool uni_record_add_gap(struct uni_record_meta *m, const struct uni_record_gap *gap)
{
	const bool part = uni_record_gap_is_part(gap);
	struct uni_record_gap add = *gap;

	while (!part && m->nr_gap != 0 && m->gap[m->nr_gap - 1].end_ns > add.begin_ns &&
		!uni_record_gap_is_part(&m->gap[m->nr_gap - 1]))
		join_gaps(&m->gap[--m->nr_gap], &add);
	if (m->nr_gap >= (part ? UNI_GAPS_MAX : UNI_GAPS_MAX - PARTS_LEAST))
		return false;
	if (m->nr_gap != 0)
		add.begin_ns = uni_max(add.begin_ns, m->gap[m->nr_gap - 1].end_ns);
	add.end_ns = uni_max(add.end_ns, add.begin_ns);
	m->gap[m->nr_gap++] = add;
	return true;
}
