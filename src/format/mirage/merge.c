/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/vec.h"
#include "format/mirage/mirage.h"

struct stream {
	UNI_VEC(struct uni_promise_event) all;
	size_t at;
	uint32_t cpu;
};

static int keep_event(void *arg, const struct uni_promise_event *event)
{
	struct uni_promise_event e = *event;
	struct stream *s = arg;

	e.cpu = s->cpu;
	return uni_vec_push(&s->all, e) ? 0 : -UNI_ENOMEM;
}

static void add_stats(struct uni_mirage_stats *sum, const struct uni_mirage_stats *st)
{
	sum->first_damage = sum->damaged == 0 ? st->first_damage : sum->first_damage;
	sum->packets += st->packets;
	sum->events += st->events;
	sum->unused += st->unused;
	sum->missing += st->missing;
	sum->damaged += st->damaged;
	sum->damaged_bytes += st->damaged_bytes;
}

/* The stream with the oldest next event; NULL at the end of all. */
static struct stream *oldest_stream(struct stream *s, size_t nr)
{
	struct stream *best = NULL;

	for (size_t i = 0; i < nr; i++) {
		if (s[i].at == s[i].all.nr)
			continue;
		if (best == NULL || s[i].all.v[s[i].at].time < best->all.v[best->at].time)
			best = &s[i];
	}
	return best;
}

static int give_out(struct stream *s, size_t nr, uni_promise_event_fn fn, void *arg)
{
	struct stream *next;
	int rc = 0;

	while (rc >= 0 && (next = oldest_stream(s, nr)) != NULL)
		rc = fn(arg, &next->all.v[next->at++]);
	return rc < 0 ? rc : 0;
}

int uni_mirage_merge(const struct uni_mirage_file *files, size_t nr, uni_promise_event_fn fn,
	void *arg, struct uni_mirage_stats *stats_ret, struct uni_err *err)
{
	struct stream *s = calloc(nr + 1, sizeof(*s));
	int rc = 0;

	*stats_ret = (struct uni_mirage_stats){ 0 };
	if (s == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		struct uni_mirage_stats st;

		s[i].cpu = files[i].cpu;
		rc = uni_mirage_read(files[i].data, files[i].size, keep_event, &s[i], &st, err);
		if (rc == 0)
			add_stats(stats_ret, &st);
	}
	if (rc == 0)
		rc = give_out(s, nr, fn, arg);
	for (size_t i = 0; i < nr; i++)
		uni_vec_free(&s[i].all);
	free(s);
	return rc;
}
