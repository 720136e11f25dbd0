/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of a recording, counted by itself: a heading with the numbers of the whole would be wrong
 * for it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "recording/recording_priv.h"

struct choosing {
	struct uni_recounts *counts;
	struct uni_sample_filter part, time;
	struct uni_record_choice found;
};

static void look_at_time(struct choosing *c, const struct uni_sample *s)
{
	if (!uni_only_passes(c->time.guest, s->guest))
		return;
	if (c->found.all++ == 0)
		c->found.first_ns = s->t_ns;
	c->found.first_ns = uni_min(c->found.first_ns, s->t_ns);
	c->found.last_ns = uni_max(c->found.last_ns, s->t_ns);
	c->found.in_time += uni_sample_passes(&c->time, s);
}

static int choose_sample(void *ctx, const struct uni_sample *s)
{
	struct choosing *c = ctx;

	look_at_time(c, s);
	return uni_sample_passes(&c->part, s) ? uni_recount_sample(c->counts, s) : 0;
}

static int choose_exit(void *ctx, const struct uni_stream_exit *e)
{
	const struct uni_sample s = { .t_ns = e->t_ns, .guest = e->guest, .vcpu = e->vcpu };
	struct choosing *c = ctx;

	look_at_time(c, &s);
	return uni_sample_passes(&c->part, &s) ? uni_recount_exit(c->counts, e) : 0;
}

/* The time that is shown, as far as the guest was recorded then. A time counts from the first
 * sample. */
static void set_time(
	struct uni_record_stats *st, const struct uni_record_stats *whole, const struct choosing *c)
{
	const struct uni_sample_filter *f = &c->part;
	uint64_t from = f->from_ns == 0 && f->to_ns != 0 ? c->found.first_ns : f->from_ns;

	st->begin_ns = uni_max(from, whole->begin_ns);
	st->end_ns = f->to_ns != 0 ? uni_min(f->to_ns, whole->end_ns) : whole->end_ns;
	st->end_ns = uni_max(st->end_ns, st->begin_ns);
}

static int count_part(struct uni_recording *r, struct uni_recorded_part *p, struct choosing *c,
	struct uni_err *err)
{
	int rc = uni_recording_each(r, choose_sample, c, NULL, err);

	if (rc == 0)
		rc = uni_recording_each_exit(r, choose_exit, c, NULL, err);
	for (uint32_t i = 0; i < r->session.nr_guests; i++)
		set_time(&p->stats[i], &r->session.guest[i]->stats, c);
	uni_recounts_sum(c->counts, &p->sum);
	return rc;
}

int uni_recording_choose(struct uni_recording *r, const struct uni_record_part *part,
	const struct uni_sample_filter *filter, struct uni_record_choice *ret, struct uni_err *err)
{
	struct uni_recorded_part *p =
		calloc(1, sizeof(*p) + r->session.nr_guests * sizeof(p->stats[0]));
	struct choosing c = { .part = *filter,
		.time = { .guest = filter->guest,
			.from_ns = filter->from_ns,
			.to_ns = filter->to_ns } };
	char *thread = part->thread != NULL ? strdup(part->thread) : NULL;
	int rc;

	c.part.on_cpu = c.part.off_cpu = false;
	c.counts = p != NULL ? uni_recounts_create(r, p->stats) : NULL;
	if (c.counts == NULL || (part->thread != NULL && thread == NULL))
		rc = uni_err_nomem(err);
	else
		rc = count_part(r, p, &c, err);
	uni_recounts_destroy(c.counts);
	if (rc != 0) {
		free(thread);
		free(p);
		return rc;
	}
	p->what = *part;
	p->what.thread = thread;
	uni_recorded_part_destroy(r->part);
	r->part = p;
	*ret = c.found;
	return 0;
}

void uni_recorded_part_destroy(struct uni_recorded_part *p)
{
	if (p == NULL)
		return;
	free((char *)(uintptr_t)p->what.thread);
	free(p);
}

void uni_record_part_json(struct uni_json *j, const struct uni_record_part *part)
{
	char clean[UNI_TEXT_MAX + 1];

	if (part == NULL)
		return;
	uni_json_key(j, "part");
	uni_json_object(j);
	uni_json_kv(double, j, "from", part->from);
	if (part->to != 0)
		uni_json_kv(double, j, "to", part->to);
	if (part->vcpu.chosen)
		uni_json_kv(u64, j, "vcpu", part->vcpu.nr);
	if (part->thread != NULL) {
		(void)uni_text_clean(clean, sizeof(clean), part->thread, strlen(part->thread));
		uni_json_kv(str, j, "thread", clean);
	}
	uni_json_object_end(j);
}

const struct uni_record_part *uni_recording_part(const struct uni_recording *r)
{
	return r->part != NULL ? &r->part->what : NULL;
}

const struct uni_record_stats *uni_recording_shown(const struct uni_recording *r)
{
	return r->part != NULL ? &r->part->sum : &r->sum;
}
