/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/speedscope/calls.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/vec.h"

struct thread {
	UNI_VEC(uint32_t) open; /* frames of calls that have not returned, the outermost first */
	struct uni_strbuf events;
	uint64_t first_ns, last_ns;
	bool known;
};

struct writer {
	const struct uni_timeline *tl;
	UNI_VEC(struct thread) threads;
	uint32_t nr_frames; /* 0: the frame without a name; a function has its number + 1 */
	uint64_t halves;    /* calls without their beginning */
	uint64_t off_ns;    /* that threads waited in calls */
};

static struct thread *thread_of(struct writer *w, uint32_t nr)
{
	if (nr >= w->threads.nr) {
		size_t old = w->threads.nr, more = (size_t)nr + 1 - old;

		if (!uni_vec_grow(&w->threads, more))
			return NULL;
		memset(w->threads.v + old, 0, more * sizeof(w->threads.v[0]));
		w->threads.nr += more;
		for (size_t i = old; i < w->threads.nr; i++)
			uni_strbuf_init(&w->threads.v[i].events);
	}
	return &w->threads.v[nr];
}

static uint32_t frame_of(struct writer *w, uint32_t func)
{
	uint32_t frame = func == UNI_FUNC_NONE ? 0 : func + 1;

	w->nr_frames = uni_max(w->nr_frames, frame + 1);
	return frame;
}

/* Times of a thread never decrease here: of several CPUs they may, by as much as clocks differ. */
static void put_open_close(struct thread *t, char type, uint32_t frame, uint64_t ns)
{
	t->first_ns = t->known ? t->first_ns : ns;
	t->last_ns = t->known ? uni_max(t->last_ns, ns) : ns;
	uni_strbuf_addf(&t->events, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		t->known ? "," : "", type, frame, t->last_ns);
	t->known = true;
}

static int put_speedscope_call(struct writer *w, const struct uni_call_event *e)
{
	struct thread *t = thread_of(w, e->thread);
	uint32_t frame;

	if (t == NULL)
		return -UNI_ENOMEM;
	switch (e->type) {
	case UNI_CALL_ENTER:
		frame = frame_of(w, e->func);
		put_open_close(t, 'O', frame, e->ns);
		return uni_vec_push(&t->open, frame) ? 0 : -UNI_ENOMEM;
	case UNI_CALL_LEAVE:
		w->off_ns += e->off;
		if (t->open.nr == 0 || ((e->flags & UNI_CALL_BEGAN) != 0 && t->open.nr <= e->depth))
			w->halves++;
		else
			put_open_close(t, 'C', t->open.v[--t->open.nr], e->ns);
		return 0;
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		frame = frame_of(w, e->func);
		put_open_close(t, 'O', frame, e->ns);
		put_open_close(t, 'C', frame, e->ns);
		return 0;
	default:
		return 0;
	}
}

static int read_all(struct writer *w)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	while ((rc = w->tl->read(w->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr; i++) {
			if (put_speedscope_call(w, &e[i]) != 0)
				return -UNI_ENOMEM;
		}
	}
	for (size_t i = 0; rc == 0 && i < w->threads.nr; i++) {
		struct thread *t = &w->threads.v[i];

		while (t->open.nr != 0)
			put_open_close(t, 'C', t->open.v[--t->open.nr], t->last_ns);
		rc = uni_strbuf_failed(&t->events) ? -UNI_ENOMEM : 0;
	}
	return rc;
}

static void put_profile(struct writer *w, struct uni_json *j, uint32_t nr)
{
	const struct thread *t = &w->threads.v[nr];
	struct uni_strbuf name;
	const char *thread;
	uint64_t number;

	uni_strbuf_init(&name);
	thread = w->tl->thread(w->tl->ctx, nr, &number);
	uni_strbuf_addf(&name, "%s-%" PRIu64, thread, number);
	uni_json_object(j);
	uni_json_kv(str, j, "type", "evented");
	uni_json_kv(str, j, "name", uni_strbuf_failed(&name) ? "thread" : name.s);
	uni_json_kv(str, j, "unit", "nanoseconds");
	uni_json_kv(u64, j, "startValue", t->first_ns);
	uni_json_kv(u64, j, "endValue", t->last_ns);
	uni_json_key(j, "events");
	uni_json_array(j);
	uni_sink_write(j->out, t->events.s, t->events.len);
	uni_json_array_end(j);
	uni_json_object_end(j);
	uni_strbuf_deinit(&name);
}

static void put_document(struct writer *w, const struct uni_view *v, struct uni_sink *out)
{
	struct uni_json j;

	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(str, &j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	if (v->title != NULL)
		uni_json_kv(str, &j, "name", v->title);
	uni_json_kv(str, &j, "exporter", "uniscope");
	uni_json_key(&j, "shared");
	uni_json_object(&j);
	uni_json_key(&j, "frames");
	uni_json_array(&j);
	for (uint32_t i = 0; i < w->nr_frames; i++) {
		const char *name = i == 0 ? "" : w->tl->func(w->tl->ctx, i - 1);

		uni_json_object(&j);
		uni_json_kv(str, &j, "name", name[0] != '\0' ? name : "[unknown]");
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_json_key(&j, "profiles");
	uni_json_array(&j);
	for (size_t i = 0; i < w->threads.nr; i++) {
		if (w->threads.v[i].known)
			put_profile(w, &j, (uint32_t)i);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}

int uni_speedscope_calls(const struct uni_view *v, struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { .tl = v->timeline };
	int rc = read_all(&w);

	if (rc == 0)
		put_document(&w, v, out);
	else
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory writing for speedscope");
	if (w.halves != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost,
			"%" PRIu64 " calls whose beginning is not in the trace are left out\n",
			w.halves);
	if (w.off_ns != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost,
			"that threads waited, %" PRIu64 " ns in all, is part of the calls in which "
			"they did\n",
			w.off_ns);
	for (size_t i = 0; i < w.threads.nr; i++) {
		uni_vec_free(&w.threads.v[i].open);
		uni_strbuf_deinit(&w.threads.v[i].events);
	}
	uni_vec_free(&w.threads);
	return rc;
}
