/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/sjson.h"

#include <stdlib.h>

#include "base/checked.h"
#include "recording/stats.h"

struct uni_session_guest *uni_session_add_guest(struct uni_session *s)
{
	struct uni_session_guest *g = s->nr_guests < UNI_GUEST_MAX ? calloc(1, sizeof(*g)) : NULL;

	if (g != NULL)
		s->guest[s->nr_guests++] = g;
	return g;
}

void uni_session_deinit(struct uni_session *s)
{
	while (s->nr_guests != 0) {
		struct uni_session_guest *g = s->guest[--s->nr_guests];

		free(g->thread);
		uni_record_trace_deinit(&g->meta.trace);
		free(g);
	}
}

void uni_session_free_parsed(struct uni_session *s)
{
	for (uint32_t i = 0; i < s->nr_guests; i++) {
		for (size_t k = 0; k < s->guest[i]->nr_watch; k++) {
			free(s->guest[i]->watch[k].first);
			free(s->guest[i]->watch[k].last);
		}
		free(s->guest[i]->watch);
		uni_record_stats_deinit(&s->guest[i]->stats);
	}
	uni_session_deinit(s);
}

void uni_session_sum(const struct uni_session *s, struct uni_record_stats *ret)
{
	*ret = (struct uni_record_stats){ 0 };
	for (uint32_t i = 0; i < s->nr_guests; i++)
		uni_record_stats_add(ret, &s->guest[i]->stats);
}
