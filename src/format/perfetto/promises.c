/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads and promises for Perfetto: a machine of their own. Lives and waits overlap, so each has a
 * track, and Perfetto shows tracks of one name as one. Runs and pauses have a track for each CPU.
 * Flows lead from the waker to the thread that ran.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/perfetto/perfetto.h"
#include "format/promises.h"

#define MACHINE UINT32_C(1001) /* that of calls is 1000 */

/* Track numbers: the kind above the number. */
#define LIVES	 (UINT64_C(4) << 48)
#define WAITS	 (UINT64_C(5) << 48)
#define RUNS	 (UINT64_C(6) << 48)
#define PAUSES	 (UINT64_C(7) << 48)
#define COUNTERS (UINT64_C(8) << 48)

enum type { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 }; /* of TrackEvent */
enum { FLOW = 47, END_OF_FLOW = 48 };			    /* fields of it */

struct writer {
	struct uni_perfetto *w;
	UNI_VEC(uint32_t) counters; /* that have a track */
	bool run_of[UNI_PROMISE_CPUS], pause_of[UNI_PROMISE_CPUS];
};

static void put_track(
	struct uni_perfetto *w, uint64_t uuid, uint64_t parent, const char *name, bool counter)
{
	uni_pb_put_u64(&w->part, 1, uuid);
	uni_pb_put_str(&w->part, 2, name);
	uni_pb_put_u64(&w->part, 5, parent);
	if (counter)
		uni_pb_put_bytes(&w->part, 8, "", 0);
	uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
	uni_perfetto_packet(w, MACHINE, 0, false);
}

/* The caller has put the event's other fields into w->part. */
static void put_event(struct uni_perfetto *w, enum type type, uint64_t track, uint64_t ns)
{
	uni_pb_put_u64(&w->part, 9, type);
	uni_pb_put_u64(&w->part, 11, track);
	uni_pb_put_part(&w->packet, UNI_PF_TRACK_EVENT, &w->part);
	uni_perfetto_packet(w, MACHINE, ns, true);
}

static void put_slice(struct uni_perfetto *w, uint64_t track, const struct uni_promise_part *p)
{
	if (p->fate != NULL && p->fate[0] != '\0') {
		uni_pb_put_str(&w->sub, 6, p->fate);
		uni_pb_put_str(&w->sub, 10, "fate");
		uni_pb_put_part(&w->part, 4, &w->sub);
	}
	uni_pb_put_str(&w->part, 23, p->name);
	put_event(w, BEGIN, track, p->begin);
	put_event(w, END, track, p->end);
}

static void put_of_cpu(struct writer *x, bool *named, uint64_t kind, const char *of,
	const struct uni_promise_part *p)
{
	char name[48];

	if (!*named) {
		(void)snprintf(name, sizeof(name), "%s CPU %" PRIu32, of, p->cpu);
		put_track(x->w, kind + p->cpu, uni_perfetto_process_uuid(MACHINE), name, false);
	}
	*named = true;
	put_slice(x->w, kind + p->cpu, p);
}

static void put_wake(struct uni_perfetto *w, const struct uni_promise_part *p)
{
	uni_pb_put_str(&w->part, 23, "wakes");
	uni_pb_put_fixed64(&w->part, FLOW, p->nr + UINT64_C(1));
	put_event(w, INSTANT, RUNS + p->from, p->begin);
	uni_pb_put_str(&w->part, 23, "woken");
	uni_pb_put_fixed64(&w->part, END_OF_FLOW, p->nr + UINT64_C(1));
	put_event(w, INSTANT, RUNS + p->cpu, p->end);
}

static int put_count(struct writer *x, const struct uni_promise_part *p)
{
	bool known = false;

	for (size_t i = 0; i < x->counters.nr && !known; i++)
		known = x->counters.v[i] == p->nr;
	if (!known && !uni_vec_push(&x->counters, p->nr))
		return -UNI_ENOMEM;
	if (!known)
		put_track(
			x->w, COUNTERS + p->nr, uni_perfetto_process_uuid(MACHINE), p->name, true);
	uni_pb_put_u64(&x->w->part, 30, (uint64_t)p->value);
	put_event(x->w, COUNTER, COUNTERS + p->nr, p->begin);
	return 0;
}

static int put_promise_part(void *arg, const struct uni_promise_part *p)
{
	struct writer *x = arg;
	struct uni_perfetto *w = x->w;
	uint32_t cpu = p->cpu % UNI_PROMISE_CPUS;

	switch ((enum uni_promise_part_kind)p->kind) {
	case UNI_PART_LIFE:
		put_track(w, LIVES + p->nr, uni_perfetto_process_uuid(MACHINE), "promises", false);
		put_slice(w, LIVES + p->nr, p);
		break;
	case UNI_PART_WAIT:
		put_track(w, WAITS + p->nr, LIVES + p->promise, "waits", false);
		put_slice(w, WAITS + p->nr, p);
		break;
	case UNI_PART_LABEL:
		uni_pb_put_str(&w->part, 23, p->name);
		put_event(w, INSTANT, LIVES + p->nr, p->begin);
		break;
	case UNI_PART_RUN:
		put_of_cpu(x, &x->run_of[cpu], RUNS, "run by", p);
		break;
	case UNI_PART_PAUSE:
		put_of_cpu(x, &x->pause_of[cpu], PAUSES, "pauses of", p);
		break;
	case UNI_PART_WAKE:
		put_wake(w, p);
		break;
	case UNI_PART_COUNT:
		return put_count(x, p);
	}
	return w->oom ? -UNI_ENOMEM : 0;
}

int uni_perfetto_promises(struct uni_perfetto *w, const struct uni_promise_model *m)
{
	struct writer x = { .w = w };
	int rc;

	w->begun = false;
	uni_perfetto_process(w, MACHINE, "threads and promises");
	rc = uni_promise_parts(m, put_promise_part, &x);
	uni_vec_free(&x.counters);
	return rc;
}
