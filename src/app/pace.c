/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/pace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/quality.h"

#define DEFAULT_DUTY 0.10
#define MISSED_SHARE 1.0 /* in %: fewer are not worth a line */

/* The share of the time; 1: no limit. Nothing: not understood. */
static bool parse_max_pause(const char *text, double *ret)
{
	double percent;

	*ret = text == NULL ? DEFAULT_DUTY : 1.0;
	if (text == NULL || strcmp(text, "off") == 0)
		return true;
	if (!uni_parse_double(text, &percent) || !(percent > 0) || percent > 100)
		return false;
	*ret = percent / 100;
	return true;
}

int uni_pace_check(const struct uni_pace *p, struct uni_err *err)
{
	double duty;

	if (!parse_max_pause(p->max_pause, &duty))
		return uni_err_set(err, UNI_EUSAGE,
			"--max-pause %s: give a percentage above 0 and up to 100, or off",
			p->max_pause);
	if (p->sched != NULL && strcmp(p->sched, "fifo") != 0 && strcmp(p->sched, "other") != 0)
		return uni_err_set(err, UNI_EUSAGE, "--sched is fifo or other, not '%s'", p->sched);
	return 0;
}

void uni_pace_apply(const struct uni_pace *p, struct uni_sampler_cfg *cfg)
{
	if (!parse_max_pause(p->max_pause, &cfg->max_duty))
		cfg->max_duty = DEFAULT_DUTY;
	cfg->skip_late = p->skip_late;
	cfg->hurry = p->sched == NULL || strcmp(p->sched, "fifo") == 0;
}

/* Why more than half of the missed deadlines were missed. */
static void find_limit(char *ret, size_t cap, const struct uni_record_stats *st, double period_us)
{
	uint64_t served = st->ticks + st->failed;
	double each_us = served != 0 ? (double)st->busy_ns / 1e3 / (double)served : 0;

	if (st->throttled > st->skipped / 2)
		(void)snprintf(ret, cap,
			"more would pause the guest for more than %g %% of the time: lower "
			"--frequency, or see --max-pause",
			st->max_duty > 0 ? 100 * st->max_duty : 100 * DEFAULT_DUTY);
	else if (each_us > period_us / 2)
		(void)snprintf(ret, cap,
			"each took %.0f us, with waits for the host: lower --frequency", each_us);
	else
		(void)snprintf(ret, cap, "the sampler got no CPU of the host in time");
}

bool uni_pace_limited(
	char *ret, size_t cap, const struct uni_record_meta *m, const struct uni_record_stats *st)
{
	uint64_t due = st->ticks + st->skipped;
	double wall = uni_quality_seconds(st);
	char why[160];

	if (uni_quality_streamed(m) || uni_quality_inside(m) || !(m->frequency > 0) || wall <= 0 ||
		st->skipped < 2 || uni_quality_share(st->skipped, due) < MISSED_SHARE)
		return false;
	find_limit(why, sizeof(why), st, 1e6 / m->frequency);
	(void)snprintf(ret, cap, "asked for %g samples a second, got %.4g: %s", m->frequency,
		(double)st->ticks / wall, why);
	return true;
}

/* Do samples stand for unequal times? The host's kernel puts equal chains together. */
static bool is_unequal(const struct uni_record_meta *m, const struct uni_record_stats *st)
{
	return st->ticks != 0 ||
	       (m != NULL && uni_quality_is_unseen(m) && st->pause.nr != 0 && st->callers == 0);
}

/*
 * So many samples of weight 1 would tell shares as well (Kish, "Survey Sampling", 1965, 11.7):
 * by stops, one that stands for many deadlines is one look.
 */
uint64_t uni_pace_taken(const struct uni_record_meta *m, const struct uni_record_stats *st,
	const struct uni_sample_filter *shown)
{
	double nr = (double)uni_quality_count(st, shown),
	       squares = (double)uni_quality_sum(st->squares, shown);

	if (nr == 0 || st->samples == 0 || st->samples >= st->weight)
		return (uint64_t)nr;
	if (!is_unequal(m, st) || squares == 0)
		nr *= (double)st->samples / (double)st->weight;
	else
		nr *= nr / squares;
	return uni_max((uint64_t)nr, UINT64_C(1));
}

bool uni_pace_looks(char ret[UNI_QUALITY_METHOD], const struct uni_record_meta *m,
	const struct uni_record_stats *st, const struct uni_sample_filter *shown)
{
	uint64_t nr = uni_pace_taken(m, st, shown);

	if (st->ticks != 0 || !is_unequal(m, st) || nr > uni_quality_count(st, shown) / 2)
		return false;
	(void)snprintf(ret, UNI_QUALITY_METHOD,
		"shares are as sure as those of %" PRIu64
		" samples: a thread with deep stacks is stopped up to 100 times a second. Each "
		"stop stands for the time before it",
		nr);
	return true;
}

const char *uni_pace_class(bool realtime)
{
	return realtime ? "real-time (SCHED_FIFO)" : "normal";
}
