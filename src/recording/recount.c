/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/checked.h"
#include "obj/usym.h"
#include "recording/recording_priv.h"
#include "recording/stats.h"

struct recount {
	struct uni_hist pause;
	uint64_t last_ns;
	uint64_t of_vcpu[UNI_VCPU_MAX]; /* samples */
	struct uni_recorded_guest guest;
	struct uni_record_stats *stats;
};

struct uni_recounts {
	struct uni_recording *rec;
	struct recount of_guest[];
};

/* By the names that were recorded, which is all that is left of the image. */
static void place_sample(
	struct uni_record_stats *st, const struct uni_recorded_guest *g, const struct uni_sample *s)
{
	bool inside = false;
	uint64_t offset;
	const char *name;

	if (g->symtab == NULL || uni_symtab_nr(g->symtab) == 0 || s->nr == 0)
		return;
	for (uint16_t i = 0; i < s->nr && !inside; i++)
		inside = (s->flags[i] & UNI_FRAME_KERNEL) != 0 ||
			 uni_symtab_lookup(
				 g->symtab, s->pc[i] - (i != 0) - g->meta->bias, &name, &offset);
	uni_record_stats_lies(st, s, inside);
}

int uni_recount_sample(void *recounts, const struct uni_sample *s)
{
	struct uni_recounts *all = recounts;
	struct recount *c = &all->of_guest[s->guest];
	struct uni_record_stats *st = c->stats;

	/* vCPUs that were held together share their time, and one pause. */
	if ((st->samples++ == 0 || s->t_ns != c->last_ns) && s->pause_ns != 0)
		uni_hist_add(&c->pause, s->pause_ns);
	c->last_ns = s->t_ns;
	/* In each tick a vCPU is sampled once at most. */
	c->of_vcpu[s->vcpu] += !uni_state_is_off_cpu(s->state);
	st->ticks = uni_max(st->ticks, c->of_vcpu[s->vcpu]);
	uni_record_stats_count(st, s);
	place_sample(st, &all->of_guest[s->guest].guest, s);
	if (st->samples == 1)
		st->begin_ns = s->t_ns;
	st->end_ns = s->t_ns;
	return 0;
}

int uni_recount_exit(void *recounts, const struct uni_stream_exit *e)
{
	struct uni_recounts *all = recounts;
	uint64_t *sum = &all->of_guest[e->guest].stats->exits;

	if (__builtin_add_overflow(*sum, e->weight, sum))
		*sum = UINT64_MAX;
	return 0;
}

struct uni_recounts *uni_recounts_create(struct uni_recording *r, struct uni_record_stats *into)
{
	struct uni_recounts *c =
		calloc(1, sizeof(*c) + r->session.nr_guests * sizeof(c->of_guest[0]));

	if (c == NULL)
		return NULL;
	c->rec = r;
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		c->of_guest[i].guest = uni_recording_guest(r, i);
		c->of_guest[i].stats = into != NULL ? &into[i] : &r->session.guest[i]->stats;
	}
	return c;
}

void uni_recounts_destroy(struct uni_recounts *c)
{
	free(c);
}

void uni_recount_lost(struct uni_recounts *c, const struct uni_rmerge *m)
{
	for (uint32_t i = 0; i < c->rec->session.nr_guests; i++) {
		struct uni_record_stats *st = c->of_guest[i].stats;

		*(m->kind == UNI_CTF_EXITS ? &st->exits_lost : &st->lost) =
			uni_rmerge_discarded(m, i);
	}
}

void uni_recounts_sum(struct uni_recounts *c, struct uni_record_stats *ret)
{
	*ret = (struct uni_record_stats){ 0 };
	for (uint32_t i = 0; i < c->rec->session.nr_guests; i++) {
		uni_hist_summary(&c->of_guest[i].pause, &c->of_guest[i].stats->pause);
		uni_record_stats_add(ret, c->of_guest[i].stats);
	}
}
