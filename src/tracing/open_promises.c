/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/open_promises.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "uniscope/promise.h"

#define ROOM_MAX   65536
#define WORDS	   24	/* of one promise, at most */
#define PART	   4096 /* words that are given to the stream at a time */
#define NAME_BYTES 64	/* of what a thread waits for, with the NUL */
#define NO_TYPE	   99	/* no kind of promise: docs/formats/promises.md */
#define GONE	   98	/* it has ended before */

struct uni_topen {
	struct uni_ring_source source;
	uint64_t table;
	unsigned ext; /* the record id of extended records */
	bool taken;
	struct uni_trace_promises head;
	uint32_t room;
	struct uni_trace_promise at[];
};

static int read_at(const struct uni_ring_source *s, uint64_t va, void *buf, size_t len)
{
	return s->read(s->ctx, va, buf, len);
}

static unsigned ext_id(const struct uni_ring_info *info)
{
	unsigned id = 0;

	while (id < 16 && info->kinds[id] != UNI_TRACE_KIND_EXT)
		id++;
	return id;
}

int uni_topen_create(const struct uni_ring_source *source, uint64_t head,
	const struct uni_ring_info *info, struct uni_topen **ret)
{
	struct uni_trace_promises t;
	struct uni_topen *o;
	uint64_t table;

	*ret = NULL;
	if (!info->keeps_promises || ext_id(info) == 16 ||
		read_at(source, head + offsetof(struct uni_trace_head, promises), &table,
			sizeof(table)) != 0 ||
		read_at(source, table, &t, sizeof(t)) != 0 || t.room == 0 || t.room > ROOM_MAX ||
		!uni_range_ok(table, sizeof(t) + t.room * sizeof(o->at[0])))
		return 0;
	o = calloc(1, sizeof(*o) + t.room * sizeof(o->at[0]));
	if (o == NULL)
		return -UNI_ENOMEM;
	o->source = *source;
	o->table = table;
	o->room = t.room;
	o->ext = ext_id(info);
	*ret = o;
	return 0;
}

void uni_topen_destroy(struct uni_topen *o)
{
	free(o);
}

bool uni_topen_read(struct uni_topen *o)
{
	o->taken = read_at(&o->source, o->table, &o->head, sizeof(o->head)) == 0 &&
		   o->head.busy == 0 &&
		   read_at(&o->source, o->table + sizeof(o->head), o->at,
			   o->room * sizeof(o->at[0])) == 0;
	return o->taken;
}

/* Records as the guest would write them, but for their time. */
struct part {
	uint64_t words[PART];
	size_t nr;
	unsigned ext;
	struct uni_tstream *out;
};

static void put_promise(struct part *p, unsigned kind, const uint64_t *words, unsigned nr)
{
	p->words[p->nr++] = (uint64_t)(p->ext | nr << 4 | (UNI_TRACE_CLASS_USER + kind) << 16)
			    << 32;
	memcpy(p->words + p->nr, words, nr * sizeof(*words));
	p->nr += nr;
}

static void put_name(struct part *p, const struct uni_trace_promise *one)
{
	uint64_t words[1 + sizeof(one->name) / 8 + 1] = { one->id };

	if (one->name[0] == '\0')
		return;
	memcpy(words + 1, one->name, sizeof(one->name));
	put_promise(p, UNI_PROMISE_LABEL, words, sizeof(words) / sizeof(words[0]));
}

static int flush_words(struct part *p, size_t room)
{
	int rc = 0;

	if (p->nr + room > PART || room == 0) {
		rc = uni_tstream_state(p->out, p->words, p->nr);
		p->nr = 0;
	}
	return rc;
}

static int each_open(const struct uni_topen *o, struct part *p,
	void (*fn)(struct part *p, const struct uni_trace_promise *one))
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < o->room; i++) {
		if (o->at[i].id == UNI_PROMISE_NOBODY)
			continue;
		rc = flush_words(p, WORDS);
		fn(p, &o->at[i]);
	}
	return rc;
}

static void put_one(struct part *p, const struct uni_trace_promise *one)
{
	const uint64_t made[3] = { one->creator, one->id, one->type }, end[2] = { one->id, 0 };
	const uint64_t lonely[3] = { UNI_PROMISE_NOBODY, one->id, 0 };
	const uint64_t owner[3] = { UNI_PROMISE_NOBODY, one->waits_for, GONE };

	put_promise(p, UNI_PROMISE_OPEN_NOW, made, 3);
	put_name(p, one);
	if (one->type == UNI_PROMISE_LOCK && (one->flags & UNI_TRACE_PROMISE_ORPHAN) != 0)
		put_promise(p, UNI_PROMISE_OPEN_NOW, owner, 3);
	if ((one->flags & UNI_TRACE_PROMISE_MUST_END) != 0)
		put_promise(p, UNI_PROMISE_SHOULD_RESOLVE, end, 2);
	if ((one->flags & UNI_TRACE_PROMISE_LONELY) != 0)
		put_promise(p, UNI_PROMISE_NOTIFY, lonely, 3);
}

/* All promises are known by then. If one waits for several, the table has the newest: it would be
 * wrong to say that it waits for this one alone. */
static void put_wait(struct part *p, const struct uni_trace_promise *one)
{
	const uint64_t wait[3] = { one->id, one->waits_for, 0 };

	if (one->waits_for != UNI_PROMISE_NOBODY && (one->flags & UNI_TRACE_PROMISE_MORE) == 0)
		put_promise(p, UNI_PROMISE_READ_LATER, wait, 3);
}

int uni_topen_put(const struct uni_topen *o, struct uni_tstream *out)
{
	uint64_t all[2] = { 0 };
	struct part *p;
	int rc;

	if (!o->taken)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -UNI_ENOMEM;
	p->ext = o->ext;
	p->out = out;
	rc = each_open(o, p, put_one);
	if (rc == 0)
		rc = each_open(o, p, put_wait);
	for (uint32_t i = 0; i < o->room; i++)
		all[0] += o->at[i].id != UNI_PROMISE_NOBODY &&
			  (o->at[i].flags & UNI_TRACE_PROMISE_MORE) != 0;
	all[0] += o->head.missed;
	if (rc == 0)
		rc = flush_words(p, WORDS);
	put_promise(p, UNI_PROMISE_ALL_OPEN, all, 2);
	if (rc == 0)
		rc = flush_words(p, 0);
	free(p);
	return rc;
}

static bool is_waiting(const struct uni_guest_thread *t)
{
	return t->state == UNI_THREAD_BLOCKED || t->state == UNI_THREAD_WAITING;
}

/* The list does not tell the type of an object that a thread waits for. It is known before the wait
 * begins. */
static void put_thread(
	struct part *p, const struct uni_guest_thread *t, const struct uni_topen_namer *namer)
{
	const uint64_t made[3] = { UNI_PROMISE_NOBODY, t->object, UNI_PROMISE_THREAD };
	const uint64_t on[3] = { UNI_PROMISE_NOBODY, t->wait_on, NO_TYPE };
	const uint64_t wait[3] = { t->object, t->wait_on, 0 };
	uint64_t label[1 + NAME_BYTES / 8] = { t->wait_on };
	char name[NAME_BYTES] = "";

	put_promise(p, UNI_PROMISE_OPEN_NOW, made, 3);
	if (t->wait_on == 0 || !is_waiting(t))
		return;
	put_promise(p, UNI_PROMISE_OPEN_NOW, on, 3);
	namer->waits_for(namer->ctx, t, name, sizeof(name));
	memcpy(label + 1, name, sizeof(name));
	if (name[0] != '\0')
		put_promise(p, UNI_PROMISE_LABEL, label, sizeof(label) / sizeof(label[0]));
	put_promise(p, UNI_PROMISE_READ_LATER, wait, 3);
}

static void put_wait_now(
	struct part *p, const struct uni_guest_thread *t, const struct uni_topen_namer *namer)
{
	uint64_t words[2 + NAME_BYTES / 8] = { t->object, t->wait_on };
	char name[NAME_BYTES] = "";

	if (t->wait_on == 0 || !is_waiting(t))
		return;
	namer->waits_for(namer->ctx, t, name, sizeof(name));
	memcpy(words + 2, name, sizeof(name));
	put_promise(p, UNI_PROMISE_WAITS_NOW, words, sizeof(words) / sizeof(words[0]));
}

static int put_each_thread(const struct uni_thread_list *list, const struct uni_ring_info *info,
	const struct uni_topen_namer *namer, struct uni_tstream *out,
	void (*put)(struct part *p, const struct uni_guest_thread *t,
		const struct uni_topen_namer *namer),
	bool end)
{
	/* A list that lacks threads lacks one whose wait is not known, too. */
	uint64_t unnamed[2] = { list->cut != UNI_THREADS_WHOLE };
	struct part *p;
	int rc = 0;

	if (list->nr == 0 || ext_id(info) == 16)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -UNI_ENOMEM;
	p->ext = ext_id(info);
	p->out = out;
	for (uint32_t i = 0; rc == 0 && i < list->nr; i++) {
		rc = flush_words(p, WORDS);
		if (rc == 0)
			put(p, &list->v[i], namer);
		unnamed[0] += list->v[i].wait_on == 0 && is_waiting(&list->v[i]);
	}
	if (rc == 0 && end) {
		rc = flush_words(p, WORDS);
		put_promise(p, UNI_PROMISE_ALL_WAIT, unnamed, 2);
	}
	if (rc == 0)
		rc = flush_words(p, 0);
	free(p);
	return rc;
}

int uni_topen_put_threads(const struct uni_thread_list *list, const struct uni_ring_info *info,
	const struct uni_topen_namer *namer, struct uni_tstream *out)
{
	return put_each_thread(list, info, namer, out, put_thread, false);
}

int uni_topen_put_waits(const struct uni_thread_list *list, const struct uni_ring_info *info,
	const struct uni_topen_namer *namer, struct uni_tstream *out)
{
	return put_each_thread(list, info, namer, out, put_wait_now, true);
}
