/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/promises.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "app/cmd.h"
#include "app/input.h"
#include "app/term.h"
#include "app/trace_open.h"
#include "app/trace_values.h"
#include "format/mirage/mirage.h"
#include "promise/record.h"
#include "promise/text.h"
#include "recording/folder.h"
#include "recording/call_input.h"
#include "trace/timeline.h"

#define FILE_MAX (UINT64_C(4) << 30)

/* The receiver of the events. */
struct taker {
	uni_promise_event_fn fn;
	void *arg;
	struct uni_promise_builder *builder; /* also gets losses and names; NULL: nobody does */
};

static int add_to_builder(void *arg, const struct uni_promise_event *event)
{
	return uni_promise_builder_add(arg, event);
}

static const char *is_are(uint64_t nr)
{
	return nr == 1 ? " is" : "s are";
}

void uni_promises_say_damage(const char *path, const struct uni_mirage_stats *st)
{
	if (st->missing != 0)
		uni_note(
			"%s: %" PRIu64 " packet%s missing", path, st->missing, is_are(st->missing));
	if (st->damaged != 0)
		uni_note("%s: %" PRIu64 " packet%s damaged, the first at byte %zu: %" PRIu64
			 " byte%s not read",
			path, st->damaged, is_are(st->damaged), st->first_damage, st->damaged_bytes,
			st->damaged_bytes == 1 ? " was" : "s were");
}

static int tell_damage(
	const char *path, int rc, const struct uni_mirage_stats *st, struct uni_err *err)
{
	if (rc != 0)
		return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
	uni_promises_say_damage(path, st);
	return 0;
}

static int from_ring(
	const struct taker *to, const char *path, const struct uni_input *in, struct uni_err *err)
{
	struct uni_mirage_stats st;

	if (!uni_mirage_is(in->data, in->size))
		return uni_err_set(err, UNI_EFORMAT,
			"%s is neither a session (NAME.uniscope) nor a trace of MirageOS", path);
	return tell_damage(
		path, uni_mirage_read(in->data, in->size, to->fn, to->arg, &st, err), &st, err);
}

static int from_folder(const struct taker *to, const char *path, struct uni_err *err)
{
	struct uni_mirage_stats st;

	return tell_damage(path, uni_mirage_read_folder(path, to->fn, to->arg, &st, err), &st, err);
}

/* The kind for promises that were open at the beginning is our own. For other consumers it becomes
 * a creation. */
static bool is_others(struct uni_promise_event *e)
{
	if (e->kind == UNI_PE_OPEN_NOW)
		e->kind = UNI_PE_CREATE;
	return e->kind != UNI_PE_ALL_OPEN;
}

/* A call proves that the guest ran then. */
static int take_call_time(const struct taker *to, const struct uni_call_event *e)
{
	if (to->builder == NULL || (e->flags & UNI_CALL_CUT) != 0)
		return 0;
	return uni_promise_builder_heard(to->builder, e->cpu, e->ns);
}

static int from_timeline(const struct taker *to, const struct uni_timeline *tl, struct uni_err *err)
{
	const struct uni_call_event *e;
	struct uni_promise_event p;
	size_t nr;
	int rc;

	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		rc = 0;
		for (size_t i = 0; rc == 0 && i < nr; i++) {
			if (!uni_promise_of_call(tl, &e[i], &p))
				rc = take_call_time(to, &e[i]);
			else if (to->builder != NULL || is_others(&p))
				rc = to->fn(to->arg, &p);
		}
		if (rc != 0)
			break;
	}
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}

static int from_calls(const struct taker *to, const struct uni_trace_input *in, struct uni_err *err)
{
	const struct uni_funcs_naming nameless = { 0 };
	struct uni_trace_timeline *t = NULL;
	struct uni_timeline tl;
	int rc = uni_trace_timeline_open(in, NULL, &nameless, &t, err);

	if (rc != 0)
		return rc;
	tl = uni_trace_timeline_get(t);
	rc = from_timeline(to, &tl, err);
	/* If two threads have one address, the later one is the guest's last. */
	for (size_t i = in->nr_threads; rc == 0 && to->builder != NULL && i-- > 0;)
		rc = uni_promise_builder_name(to->builder, in->thread[i].id, in->thread[i].name);
	uni_trace_timeline_close(t);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}

#define CLOCKS_DIFFER 86400000000000u /* ns: those of two hosts, at most */

/* Why it cannot be true that the recording was stopped then; NULL: it can. */
static const char *no_end(
	const struct uni_recording *rec, const struct uni_recorded_guest *g, uint64_t end_ns)
{
	uint64_t real_ns, now_ns = (uint64_t)time(NULL) * 1000000000u;

	if (!uni_recording_was_closed(rec))
		return "the session was never closed";
	if (end_ns < g->stats->begin_ns)
		return "that is before it was begun";
	if (end_ns > g->stats->end_ns)
		return "that is after its end";
	if (__builtin_add_overflow(end_ns, g->meta->realtime_offset_ns, &real_ns) ||
		(real_ns > now_ns && real_ns - now_ns > CLOCKS_DIFFER))
		return "that is yet to come";
	return NULL;
}

/* Ignores a time that contradicts the rest of the session; then the last event ends the trace. */
uint64_t uni_promises_end_ns(const struct uni_recording *rec, uint32_t guest)
{
	const struct uni_recorded_guest g = uni_recording_guest(rec, guest);
	uint64_t end_ns = g.meta->trace.end_ns;
	const char *why = end_ns == 0 ? NULL : no_end(rec, &g, end_ns);

	if (why == NULL)
		return end_ns;
	uni_note("%s: the end of the trace is not used (trace.end_ns %" PRIu64
		 "): %s; the trace ends with its last event",
		uni_recording_path(rec), end_ns, why);
	return 0;
}

/* With several vCPUs it is not known which is which CPU of a trace: is there only one? */
static bool is_of_one_cpu(const struct uni_record_trace *t)
{
	for (uint32_t i = 1; i < t->nr_cpus; i++) {
		if (t->cpu[i].words != 0 || t->cpu[i].lost != 0 || t->cpu[i].lost_words != 0)
			return false;
	}
	return t->nr_cpus != 0 && t->cpu[0].clock.error_ns != UINT64_MAX;
}

static int add_on_cpu(struct uni_promise_builder *b, const struct uni_record_trace *t)
{
	const struct uni_record_on_cpu *h = &t->on_cpu;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && is_of_one_cpu(t) && i < h->nr; i++)
		rc = uni_promise_builder_on_cpu(b,
			&(struct uni_promise_on_cpu){ .ns = h->at[i].ns,
				.on_ns = h->at[i].on_ns,
				.stolen_ns = h->at[i].stolen_ns },
			t->cpu[0].clock.error_ns);
	return rc;
}

/* Adds facts that the events do not contain. */
static int add_facts(struct uni_promise_builder *b, const struct uni_recording *rec, uint32_t guest)
{
	const struct uni_record_trace *trace = &uni_recording_guest(rec, guest).meta->trace;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < trace->nr_cpus; i++)
		lost += uni_record_trace_lost(&trace->cpu[i]);
	uni_trace_note_rate(uni_recording_path(rec), trace);
	uni_promise_builder_end(b, uni_promises_end_ns(rec, guest));
	uni_promise_builder_lost(
		b, lost, uni_record_trace_lost_at_most(trace) || !uni_recording_was_closed(rec));
	return add_on_cpu(b, trace);
}

/* A thing that is waited for needs no name from the guest: as a rule its address is that of a
 * variable. */
static int name_things(
	struct uni_promise_builder *b, const struct uni_recording *rec, uint32_t guest)
{
	const struct uni_opt_list no_folders = { 0 };
	struct uni_trace_values values;
	int rc;

	uni_trace_values_init(&values, rec, guest, NULL, &no_folders);
	rc = uni_promise_builder_name_things(b, uni_trace_values_at, &values);
	uni_trace_values_deinit(&values);
	return rc;
}

static int tell_end(const struct taker *to, uint64_t end_ns)
{
	const struct uni_promise_event e = uni_mirage_end(end_ns);

	return end_ns != 0 ? to->fn(to->arg, &e) : 0;
}

static int from_session(const struct taker *to, const char *path,
	const struct uni_promises_args *args, struct uni_err *err)
{
	struct uni_recording *rec = NULL;
	struct uni_tinput *t = NULL;
	uint32_t guest = 0;
	int rc = uni_recording_open(path, &rec, err);

	if (rc == 0 && args->guest != NULL)
		rc = uni_recording_find_guest(rec, args->guest, &guest, err);
	else if (rc == 0)
		rc = uni_tinput_find(rec, &guest, err);
	if (rc == 0)
		rc = uni_tinput_open(rec, guest, &t, err);
	if (rc == 0)
		rc = from_calls(to, uni_tinput_get(t), err);
	if (rc == 0 && to->builder != NULL && !args->quick &&
		name_things(to->builder, rec, guest) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0 && to->builder != NULL)
		rc = add_facts(to->builder, rec, guest);
	else if (rc == 0)
		rc = tell_end(to, uni_promises_end_ns(rec, guest));
	uni_tinput_close(t);
	uni_recording_close(rec);
	return rc;
}

static int read_in(const struct taker *to, const char *path, const struct uni_input *in,
	const struct uni_promises_args *args, struct uni_err *err)
{
	if (in->folder == NULL)
		return from_ring(to, path, in, err);
	if (uni_mirage_is_folder(in->folder))
		return from_folder(to, in->folder, err);
	return from_session(to, in->folder, args, err);
}

int uni_promises_each(const char *path, const struct uni_promises_args *args,
	uni_promise_event_fn fn, void *arg, struct uni_err *err)
{
	struct uni_input in;
	int rc = uni_input_open(path, FILE_MAX, &in, err);

	if (rc != 0)
		return rc;
	rc = read_in(&(struct taker){ fn, arg, NULL }, path, &in, args, err);
	uni_input_close(&in);
	return rc;
}

int uni_promises_read(struct uni_promise_builder *b, const char *path, const struct uni_input *in,
	const struct uni_promises_args *args, struct uni_err *err)
{
	return read_in(&(struct taker){ add_to_builder, b, b }, path, in, args, err);
}

static int fill_builder(struct uni_promises *p, const char *path, const char *output,
	const struct uni_promises_args *args, struct uni_err *err)
{
	struct uni_input in;
	int rc = uni_input_open(path, FILE_MAX, &in, err);

	if (rc != 0)
		return rc;
	rc = uni_promises_read(p->builder, path, &in, args, err);
	uni_input_close(&in);
	if (rc != 0)
		return rc;
	p->m = uni_promise_builder_finish(p->builder);
	if (p->m->all.nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no events of waiting threads or promises: `trace record --threads` "
			"records them, if the guest tells any in that time",
			path);
	return uni_sink_open_file(output, &p->out, err);
}

int uni_promises_open_to(struct uni_promises *ret, const char *path, const char *output,
	const struct uni_promises_args *args, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_promises){ .builder = uni_promise_builder_create() };
	if (ret->builder == NULL)
		return uni_err_nomem(err);
	rc = fill_builder(ret, path, output, args, err);
	if (rc != 0)
		uni_promise_builder_destroy(ret->builder);
	return rc;
}

int uni_promises_open(struct uni_promises *ret, const char *path,
	const struct uni_promises_args *args, struct uni_err *err)
{
	return uni_promises_open_to(ret, path, "-", args, err);
}

/* Waits from before the trace are in the guest's list of threads, also if it tells of no others. */
static bool tells_waits(const struct uni_promise_model *m)
{
	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		if (w->listed)
			continue;
		if (m->begin_told || w->begin > m->begin || !m->all.v[w->waiter].told)
			return true;
	}
	return false;
}

static void say_quality(const struct uni_promise_model *m)
{
	static const char then[] = "the missing events may have woken threads that seem to wait";

	if (m->lost != 0)
		uni_note("%s%" PRIu64 " event%s missing in %" PRIu64 " place%s: %s",
			m->lost_at_most ? "at most " : "", m->lost, is_are(m->lost), m->gaps,
			uni_plural(m->gaps), then);
	else if (m->gaps != 0)
		uni_note("events are missing in %" PRIu64 " place%s, how many is not known: %s",
			m->gaps, uni_plural(m->gaps), then);
	if (!tells_waits(m) && m->runs.nr != 0)
		uni_note("this trace does not tell who waits for whom (no event try_read or "
			 "read_later): %s",
			m->waits.nr != 0 ? "it has waits of the guest's list of threads only, and "
					   "no wake-ups"
					 : "no wait, wake-up or lost wake-up can be seen in it");
	if (m->backwards != 0)
		uni_note("%" PRIu64 " event%s out of order", m->backwards,
			m->backwards == 1 ? " was" : "s were");
	if (m->not_kept != 0)
		uni_note("%" PRIu64 " waits of promises that had %d others were not kept",
			m->not_kept, UNI_PROMISE_WAITS);
}

int uni_promises_close(struct uni_promises *p, int rc, struct uni_err *err)
{
	if (rc == 0)
		rc = uni_sink_close(p->out, err);
	else
		uni_sink_abort(p->out);
	if (rc == 0)
		say_quality(p->m);
	if (rc == -UNI_ENOMEM && err->code == 0)
		(void)uni_err_nomem(err);
	uni_promise_builder_destroy(p->builder);
	return uni_exit_of(rc);
}

int uni_promises_find(
	const struct uni_promises *p, const char *text, uint32_t *ret, struct uni_err *err)
{
	uint32_t newest = UNI_PROMISE_NONE, nr = 0;
	char buf[96];
	uint64_t id;

	if (uni_parse_u64(text, &id)) {
		*ret = uni_promise_find(p->builder, id);
		if (*ret != UNI_PROMISE_NONE)
			return 0;
	}
	for (uint32_t i = (uint32_t)p->m->all.nr; i-- > 0;) {
		if (strcmp(uni_promise_name(p->m, i, buf, sizeof(buf)), text) != 0 &&
			strcmp(uni_strtab_get(p->m->text, p->m->all.v[i].label), text) != 0)
			continue;
		newest = nr++ == 0 ? i : newest;
	}
	if (nr > 1)
		uni_note("%" PRIu32 " are called '%s', and this is the newest, %#" PRIx64
			 ": `uniscope trace threads` has the numbers of the others",
			nr, text, p->m->all.v[newest].id);
	if (nr != 0) {
		*ret = newest;
		return 0;
	}
	return uni_err_set(err, UNI_ENOENT,
		"no thread or promise '%s': `uniscope trace threads` lists them", text);
}
