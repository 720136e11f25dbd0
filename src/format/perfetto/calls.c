/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls for Perfetto: a machine of their own, with a track for each thread and each CPU. Variables
 * that the guest read with calls are counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/counters.h"
#include "format/perfetto/perfetto.h"

#define MACHINE	     UINT32_C(1000) /* beyond the guests of a session */
#define FIRST_TID    100000
#define THREAD_UUID  (UINT64_C(2) << 48)
#define CPU_UUID     (UINT64_C(3) << 48)
#define COUNTER_UUID (UINT64_C(9) << 48) /* up to 8: promises.c */
#define I_EVENT_NAME 2			 /* of InternedData */

enum type { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 }; /* of TrackEvent */

struct cpu {
	bool known, running;
};

struct calls {
	struct uni_perfetto *w;
	const struct uni_timeline *tl;
	UNI_VEC(bool) thread_known;
	UNI_VEC(bool) func_known;
	UNI_VEC(struct cpu) cpus;
	struct uni_counters counters;
	struct uni_strbuf interned;
	uint64_t last_ns;
};

/* At least i + 1 of them, the new ones zero. */
#define reach(vec, i)                                                                         \
	({                                                                                    \
		size_t more_ = (size_t)(i) + 1 > (vec)->nr ? (size_t)(i) + 1 - (vec)->nr : 0; \
		bool ok_ = uni_vec_grow((vec), more_);                                        \
		if (ok_ && more_ != 0) {                                                      \
			memset((vec)->v + (vec)->nr, 0, more_ * sizeof((vec)->v[0]));         \
			(vec)->nr += more_;                                                   \
		}                                                                             \
		ok_;                                                                          \
	})

static int name_thread(struct calls *c, uint32_t thread)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	const char *name;
	uint64_t number;

	uni_strbuf_init(&b);
	if (!reach(&c->thread_known, thread))
		return -UNI_ENOMEM;
	if (c->thread_known.v[thread])
		return 0;
	c->thread_known.v[thread] = true;
	name = c->tl->thread(c->tl->ctx, thread, &number);
	uni_strbuf_addf(&b, "%s-%" PRIu64, name, number);
	uni_perfetto_thread(c->w, MACHINE, THREAD_UUID + thread, FIRST_TID + thread, b.s);
	return 0;
}

/* Function 0 has the number 1; those without a name have it too. */
static int put_name(struct calls *c, uint32_t func)
{
	struct uni_perfetto *w = c->w;
	const char *name;

	if (func == UNI_FUNC_NONE) {
		uni_pb_put_str(&w->part, 23, "[unknown]");
		return 0;
	}
	if (!reach(&c->func_known, func))
		return -UNI_ENOMEM;
	uni_pb_put_u64(&w->part, 10, (uint64_t)func + 1);
	if (c->func_known.v[func])
		return 0;
	c->func_known.v[func] = true;
	name = c->tl->func(c->tl->ctx, func);
	uni_pb_put_u64(&w->sub, 1, (uint64_t)func + 1);
	uni_pb_put_str(&w->sub, 2, name[0] != '\0' ? name : "[unknown]");
	uni_pb_put_part(&c->interned, I_EVENT_NAME, &w->sub);
	uni_pb_put_part(&w->packet, UNI_PF_INTERNED, &c->interned);
	return 0;
}

static void put_event(struct calls *c, enum type type, uint64_t track, uint64_t ns)
{
	struct uni_perfetto *w = c->w;

	uni_pb_put_u64(&w->part, 9, type);
	uni_pb_put_u64(&w->part, 11, track);
	uni_pb_put_part(&w->packet, UNI_PF_TRACK_EVENT, &w->part);
	uni_perfetto_packet(w, MACHINE, ns, true);
}

static int put_switch(struct calls *c, const struct uni_call_event *e)
{
	struct uni_perfetto *w = c->w;
	char name[32];
	uint64_t number;

	if (!reach(&c->cpus, e->cpu))
		return -UNI_ENOMEM;
	if (!c->cpus.v[e->cpu].known) {
		c->cpus.v[e->cpu].known = true;
		(void)snprintf(name, sizeof(name), "CPU %u", e->cpu);
		uni_pb_put_u64(&w->part, 1, CPU_UUID + e->cpu);
		uni_pb_put_str(&w->part, 2, name);
		uni_pb_put_u64(&w->part, 5, uni_perfetto_process_uuid(MACHINE));
		uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
		uni_perfetto_packet(w, MACHINE, 0, false);
	}
	if (c->cpus.v[e->cpu].running)
		put_event(c, END, CPU_UUID + e->cpu, e->ns);
	c->cpus.v[e->cpu].running = true;
	uni_pb_put_str(&w->part, 23, c->tl->thread(c->tl->ctx, e->next, &number));
	put_event(c, BEGIN, CPU_UUID + e->cpu, e->ns);
	return 0;
}

static void put_double(struct uni_strbuf *out, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	uni_pb_put_fixed64(out, field, bits);
}

static int put_counters(struct calls *c, const struct uni_call_event *e)
{
	struct uni_counted got[UNI_TRACE_READS_OF];
	int nr = uni_counters_take(&c->counters, c->tl, e, got);
	struct uni_perfetto *w = c->w;

	for (int i = 0; i < nr; i++) {
		if (got[i].is_new) {
			uni_pb_put_u64(&w->part, 1, COUNTER_UUID + got[i].nr);
			uni_pb_put_str(&w->part, 2, got[i].name);
			uni_pb_put_u64(&w->part, 5, uni_perfetto_process_uuid(MACHINE));
			uni_pb_put_bytes(&w->part, 8, "", 0);
			uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
			uni_perfetto_packet(w, MACHINE, 0, false);
		}
		/* Its numbers have a sign: greater ones are doubles. */
		if (got[i].is_signed || got[i].value <= INT64_MAX)
			uni_pb_put_u64(&w->part, 30, got[i].value);
		else
			put_double(&w->part, 44, (double)got[i].value);
		put_event(c, COUNTER, COUNTER_UUID + got[i].nr, e->ns);
	}
	return nr < 0 ? nr : 0;
}

static int put_track_event(struct calls *c, const struct uni_call_event *e)
{
	uint64_t track = THREAD_UUID + e->thread;
	int rc = name_thread(c, e->thread);

	c->last_ns = uni_max(c->last_ns, e->ns);
	if (rc != 0)
		return rc;
	switch (e->type) {
	case UNI_CALL_ENTER:
		rc = put_name(c, e->func);
		put_event(c, BEGIN, track, e->ns);
		return rc;
	case UNI_CALL_LEAVE:
		put_event(c, END, track, e->ns);
		return 0;
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		rc = put_name(c, e->func);
		put_event(c, INSTANT, track, e->ns);
		return rc;
	case UNI_CALL_LOST:
		uni_pb_put_str(&c->w->part, 23, "[events lost]");
		put_event(c, INSTANT, track, e->ns);
		return 0;
	case UNI_CALL_SWITCH:
		return put_switch(c, e);
	case UNI_CALL_EXT:
		return put_counters(c, e);
	default:
		return 0;
	}
}

int uni_perfetto_calls(struct uni_perfetto *w, const struct uni_timeline *tl)
{
	struct calls c = { .w = w, .tl = tl };
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	uni_strbuf_init(&c.interned);
	w->begun = false;
	uni_perfetto_process(w, MACHINE, "calls");
	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr && rc == 1; i++)
			rc = put_track_event(&c, &e[i]) == 0 && !w->oom ? 1 : -UNI_ENOMEM;
		if (rc < 0)
			break;
	}
	/* A thread that runs at the end runs until the last event. */
	for (size_t i = 0; rc == 0 && i < c.cpus.nr; i++) {
		if (c.cpus.v[i].running)
			put_event(&c, END, CPU_UUID + i, c.last_ns);
	}
	uni_vec_free(&c.thread_known);
	uni_vec_free(&c.func_known);
	uni_vec_free(&c.cpus);
	uni_counters_deinit(&c.counters);
	uni_strbuf_deinit(&c.interned);
	return rc;
}
