/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hurry.h"
#include "tracing/last_packets.h"
#include "tracing/open_packets.h"
#include "backend/guard.h"

#define BUSY_NAP_NS  (500 * UNI_NSEC_PER_USEC)
#define IDLE_NAP_NS  (10 * UNI_NSEC_PER_MSEC)
#define LOOK_NS	     (1 * UNI_NSEC_PER_MSEC)
#define LOOK_EACH_NS (250 * UNI_NSEC_PER_MSEC)
#define FIRST_NS     (20 * UNI_NSEC_PER_MSEC) /* between looks until one saw something */
#define OURS_NS	     (50 * UNI_NSEC_PER_MSEC)
#define PROGRESS_NS  (150 * UNI_NSEC_PER_MSEC)
#define HOLD_NS	     (2 * UNI_NSEC_PER_SEC)
#define WHOLE_TRIES  20
#define WHOLE_NAP_NS UNI_NSEC_PER_MSEC
#define CATCH_UP     8 /* polls at the end, at most */
#define KEEP	     4 /* sub-buffers of a CPU that are kept while the guest is stopped */
/* Times for the rest at the end behind a slow line: until something comes, and at most. */
#define LINE_NS	    (5 * UNI_NSEC_PER_SEC)
#define LINE_MAX_NS (20 * UNI_NSEC_PER_SEC)
/* At the end of any other one, after a request to stop: to catch up; and while the guest is
 * stopped. */
#define GRACE_NS (500 * UNI_NSEC_PER_MSEC)
#define STAND_NS UNI_NSEC_PER_SEC

/* A guest behind a slow line takes as long as the line does. A guest with false data about its
 * rings may take forever. So every step has a limit that a user would accept. */
struct patience {
	const struct uni_trecord_cfg *cfg;
	uint64_t until_ns;   /* 0: as long as it likes */
	uint64_t more_ns;    /* added to until_ns as long as nothing came through a line */
	uint64_t stopped_ns; /* when cfg->stop was seen first; 0: not yet */
	uint64_t grace_ns;   /* how much longer it may take then */
};

static bool nothing_came(const struct uni_trecord_cfg *cfg)
{
	const struct uni_ring *ring = uni_tracer_ring(cfg->tracer);

	for (uint32_t i = 0; i < uni_ring_info(ring)->nr_cpus; i++) {
		if (uni_ring_stats(ring, i)->packets != 0)
			return false;
	}
	return true;
}

static bool is_line(const struct uni_trecord_cfg *cfg)
{
	return (cfg->t->ops->caps(cfg->t) & UNI_CAP_INSIDE) != 0;
}

static bool is_late(void *ctx)
{
	struct patience *p = ctx;
	uint64_t now = uni_now_ns();

	if (p->stopped_ns == 0 && p->cfg->stop != NULL && atomic_load(p->cfg->stop))
		p->stopped_ns = now;
	if (p->stopped_ns != 0 && now - p->stopped_ns >= p->grace_ns)
		return true;
	return p->until_ns != 0 && now >= p->until_ns &&
	       (now >= p->until_ns + p->more_ns || !is_line(p->cfg) || !nothing_came(p->cfg));
}

static void be_patient(const struct uni_trecord_cfg *cfg, struct patience *p)
{
	uni_ring_until(uni_tracer_ring(cfg->tracer), is_line(cfg), p != NULL ? is_late : NULL, p);
}

/* Data for which there was no time is left. */
static int unless_late(int rc)
{
	return rc == -UNI_EBUDGET ? 0 : rc;
}

static uint32_t nr_cpus(const struct uni_trecord_cfg *cfg)
{
	return uni_ring_info(uni_tracer_ring(cfg->tracer))->nr_cpus;
}

static int ring_failed(const struct uni_trecord_cfg *cfg, int rc, struct uni_err *err)
{
	bool is_file = (cfg->t->ops->caps(cfg->t) & UNI_CAP_DEAD) != 0;

	return uni_err_set(err, (enum uni_errcode) - rc,
		"the guest's trace ring cannot be read: %s%s", uni_strerror(rc),
		is_file ? "; is the file cut off, or without a part of the guest's memory?" : "");
}

static int hold_guest(struct uni_target *t, struct uni_pause *p, struct uni_regs *regs)
{
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)t->ops->nr_vcpus(t));
	uint64_t until = uni_now_ns() + HOLD_NS;
	const struct timespec nap = uni_ns_timespec(5 * UNI_NSEC_PER_MSEC);
	int rc;

	do {
		rc = uni_pause_begin_brief(p, t, &all, regs);
		if (rc == -UNI_EAGAIN)
			(void)nanosleep(&nap, NULL);
	} while (rc == -UNI_EAGAIN && uni_now_ns() < until);
	return rc;
}

/* A guest that cannot be held for it has threads without names. */
static void take_names(const struct uni_trecord_cfg *cfg)
{
	uint32_t nr = (uint32_t)cfg->t->ops->nr_vcpus(cfg->t);
	_cleanup_free_ struct uni_regs *regs = NULL;
	struct uni_pause pause = { 0 };

	if (cfg->names == NULL)
		return;
	regs = calloc(nr, sizeof(*regs));
	if (regs != NULL && hold_guest(cfg->t, &pause, regs) == 0)
		uni_tnames_take(cfg->names, regs, nr);
	(void)uni_pause_end(&pause);
	if (cfg->on_names != NULL)
		cfg->on_names(cfg->ctx);
}

/* A vCPU may have stopped while it changes the table: then this is tried again. Without a table,
 * the guest's list of threads has been read just before. */
static int take_open(const struct uni_trecord_cfg *cfg)
{
	uint32_t nr = (uint32_t)cfg->t->ops->nr_vcpus(cfg->t);
	_cleanup_free_ struct uni_regs *regs = calloc(nr, sizeof(*regs));
	const struct timespec nap = uni_ns_timespec(WHOLE_NAP_NS);
	struct uni_topen *open = NULL;
	uint64_t head;
	const struct uni_ring_source *source = uni_tracer_source(cfg->tracer, &head);
	int rc = uni_topen_create(source, head, uni_ring_info(uni_tracer_ring(cfg->tracer)), &open);
	bool taken = false;

	for (int i = 0; rc == 0 && open != NULL && regs != NULL && !taken && i < WHOLE_TRIES; i++) {
		struct uni_pause pause = { 0 };

		if (i != 0)
			(void)nanosleep(&nap, NULL);
		if (hold_guest(cfg->t, &pause, regs) == 0)
			taken = uni_topen_read(open);
		(void)uni_pause_end(&pause);
	}
	if (taken)
		rc = uni_topen_put(open, cfg->out);
	else if (rc == 0 && cfg->names != NULL)
		rc = uni_topen_put_threads(uni_tnames_list(cfg->names),
			uni_ring_info(uni_tracer_ring(cfg->tracer)), &cfg->namer, cfg->out);
	uni_topen_destroy(open);
	return rc;
}

int uni_trecord_begin(const struct uni_trecord_cfg *cfg, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	uint64_t words[UNI_RING_CPUS_MAX] = { 0 };

	for (uint32_t i = 0; !cfg->held && i < nr_cpus(cfg); i++) {
		struct uni_ring_now now;
		int rc = uni_ring_skip(ring, i, &now);

		if (rc != 0)
			return ring_failed(cfg, rc, err);
		uni_tstream_begin(cfg->out, i, now.time, now.words, now.extra, now.lost);
		words[i] = now.words;
	}
	take_names(cfg);
	if (cfg->promises && take_open(cfg) != 0)
		return uni_err_nomem(err);
	if (cfg->watcher == NULL)
		return 0;
	if (cfg->watcher->begin(cfg->watcher->ctx, cfg, words) != 0)
		return uni_err_nomem(err);
	return 0;
}

static void tell_trace_progress(
	const struct uni_trecord_cfg *cfg, uint64_t begin_ns, uint64_t *last_ns)
{
	struct uni_trecord_state st = { .elapsed_ns = uni_now_ns() - begin_ns };

	if (cfg->on_progress == NULL || uni_now_ns() - *last_ns < PROGRESS_NS)
		return;
	*last_ns = uni_now_ns();
	for (uint32_t i = 0; i < nr_cpus(cfg); i++) {
		struct uni_record_trace_cpu c = { 0 };

		uni_tstream_stats(cfg->out, i, &c);
		st.events += c.events + c.others;
		st.lost += uni_record_trace_lost(&c);
	}
	cfg->on_progress(cfg->ctx, &st);
}

/* Passes a packet to the stream and the watcher. */
static int put_packet(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	const struct uni_trecord_cfg *cfg = arg;
	const struct uni_ring_from *from = uni_ring_from(uni_tracer_ring(cfg->tracer), cpu);

	if (from->found && from->seq == packet->begin_seq)
		uni_tstream_begin(cfg->out, cpu, from->time, from->words, from->extra, from->lost);
	(void)uni_tstream_put(cfg->out, cpu, packet, content);
	if (cfg->watcher != NULL &&
		cfg->watcher->packet(cfg->watcher->ctx, cpu, packet, content) != 0)
		return -UNI_ENOMEM;
	return 0;
}

/* Polls one CPU; *words_ret: its number of words before that. */
static int poll_one(const struct uni_trecord_cfg *cfg, uint32_t cpu, uint64_t *words_ret)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	struct uni_ring_now now = { 0 };
	int rc = 0;

	if (cfg->watcher != NULL)
		rc = uni_ring_now(ring, cpu, &now);
	if (rc == 0)
		rc = uni_ring_poll(ring, cpu, put_packet, (void *)(uintptr_t)cfg);
	if (rc == 0 && cfg->watcher != NULL)
		rc = uni_ring_peek(ring, cpu, false, cfg->watcher->packet, cfg->watcher->ctx);
	*words_ret = now.words;
	return rc;
}

/* All CPUs once; *packets_ret: how many came. */
static int poll_all(const struct uni_trecord_cfg *cfg, uint64_t *packets_ret, bool *enough_ret)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	uint64_t words[UNI_RING_CPUS_MAX];
	int rc = 0;

	*packets_ret = 0;
	for (uint32_t i = 0; rc == 0 && i < nr_cpus(cfg); i++) {
		uint64_t before = uni_ring_stats(ring, i)->packets;

		rc = unless_late(poll_one(cfg, i, &words[i]));
		*packets_ret += uni_ring_stats(ring, i)->packets - before;
	}
	if (rc == 0 && cfg->watcher != NULL)
		*enough_ret = cfg->watcher->looked(cfg->watcher->ctx, words) != 0;
	return rc;
}

/* For a target that can read the counter. */
static uint64_t ask_for_clock(const struct uni_trecord_cfg *cfg)
{
	struct uni_tclock_point p;

	if (cfg->t->ops->tsc(cfg->t, &p.cycles, &p.from_ns, &p.to_ns) == 0) {
		for (uint32_t i = 0; i < nr_cpus(cfg); i++)
			uni_tclock_add(cfg->clock, i, &p);
	}
	return uni_now_ns() + LOOK_EACH_NS;
}

/* Returns when to look again. */
static uint64_t look_at_clocks(const struct uni_trecord_cfg *cfg)
{
	bool any = false;

	if (cfg->t->ops->tsc != NULL)
		return ask_for_clock(cfg);
	for (uint32_t i = 0; i < nr_cpus(cfg); i++)
		any |= uni_tclock_look(cfg->clock, uni_tracer_ring(cfg->tracer), i, LOOK_NS);
	return uni_now_ns() + (any ? LOOK_EACH_NS : FIRST_NS);
}

/* A snapshot of a guest that records nothing ends with its last event: each one is the same. */
void uni_trecord_look(const struct uni_trecord_cfg *cfg)
{
	if ((cfg->t->ops->caps(cfg->t) & UNI_CAP_DEAD) == 0)
		(void)look_at_clocks(cfg);
	for (uint32_t i = 0; i < nr_cpus(cfg); i++)
		cfg->clock->cpu[i].seen_cycles = cfg->clock->cpu[i].seen_ns = 0;
}

static bool is_gone(const struct uni_trecord_cfg *cfg, int rc)
{
	return rc == -UNI_EGONE || (cfg->t->ops->alive != NULL && !cfg->t->ops->alive(cfg->t));
}

/* Does it end here? */
static bool is_over(const struct uni_trecord_cfg *cfg, uint64_t elapsed_ns, uint64_t *ours_ns,
	enum uni_trecord_end *ret)
{
	bool over = true;

	if (cfg->stop != NULL && atomic_load(cfg->stop))
		*ret = UNI_TRECORD_STOP;
	else if (cfg->duration_ns != 0 && elapsed_ns >= cfg->duration_ns)
		*ret = UNI_TRECORD_TIME;
	else
		over = false;
	if (!over && elapsed_ns < *ours_ns)
		return false;
	*ours_ns = elapsed_ns + OURS_NS;
	if (uni_tracer_is_ours(cfg->tracer))
		return over;
	*ret = UNI_TRECORD_LOST;
	return true;
}

struct looks {
	struct uni_tlast *last;
	struct uni_tparts *parts;
};

/* All CPUs once, and those that are slow to fill a sub-buffer. */
static int look_at_rings(const struct uni_trecord_cfg *cfg, const struct looks *l, uint64_t now_ns,
	uint64_t *packets_ret, bool *enough_ret)
{
	int rc = poll_all(cfg, packets_ret, enough_ret), given = 0;

	/* A watcher sees open sub-buffers as it is. */
	if (rc == 0 && cfg->watcher == NULL)
		given = uni_tparts_look(l->parts, now_ns, put_packet, (void *)(uintptr_t)cfg);
	if (rc == 0 && given < 0)
		rc = unless_late(given);
	if (rc == 0)
		uni_tlast_look(l->last, given > 0);
	return rc;
}

static int record_until_end(const struct uni_trecord_cfg *cfg, const struct looks *l,
	uint64_t begin_ns, enum uni_trecord_end *ret, struct uni_err *err)
{
	uint64_t shown_ns = begin_ns, look_ns = 0, ours_ns = 0, named_ns = begin_ns;

	for (;;) {
		uint64_t packets, now_ns = uni_now_ns();
		struct timespec nap;
		bool enough = false;
		int rc;

		if (now_ns >= look_ns)
			look_ns = look_at_clocks(cfg);
		if (cfg->host != NULL)
			uni_thost_look(cfg->host, cfg->t);
		rc = look_at_rings(cfg, l, now_ns, &packets, &enough);
		/* Memory of a destroyed domain can be read for as long as it is mapped. */
		if (is_gone(cfg, rc)) {
			*ret = UNI_TRECORD_GONE;
			return 0;
		}
		if (rc != 0)
			return ring_failed(cfg, rc, err);
		tell_trace_progress(cfg, begin_ns, &shown_ns);
		if (cfg->names_each_ns != 0 && now_ns - named_ns >= cfg->names_each_ns) {
			take_names(cfg);
			named_ns = now_ns;
		}
		*ret = UNI_TRECORD_STOP;
		if (enough || is_over(cfg, now_ns - begin_ns, &ours_ns, ret))
			return 0;
		nap = uni_ns_timespec(packets != 0 ? BUSY_NAP_NS : IDLE_NAP_NS);
		(void)nanosleep(&nap, NULL);
	}
}

int uni_trecord_run(const struct uni_trecord_cfg *cfg, enum uni_trecord_end *ret,
	uint64_t *unseen_ns_ret, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	struct looks l = { uni_tlast_create(ring), uni_tparts_create(ring) };
	uint64_t begin_ns = uni_now_ns();
	struct patience p = { .cfg = cfg };
	int rc = 0;

	*unseen_ns_ret = 0;
	if (l.last == NULL || l.parts == NULL)
		rc = uni_err_nomem(err);
	if (cfg->duration_ns != 0)
		p.until_ns = begin_ns + cfg->duration_ns;
	be_patient(cfg, &p);
	if (rc == 0)
		rc = record_until_end(cfg, &l, begin_ns, ret, err);
	be_patient(cfg, NULL);
	if (rc == 0 && *ret == UNI_TRECORD_GONE)
		(void)uni_tlast_put(l.last, put_packet, (void *)(uintptr_t)cfg, unseen_ns_ret);
	uni_tlast_destroy(l.last);
	uni_tparts_destroy(l.parts);
	return rc;
}

/* Copies made while the guest is stopped. */
struct kept {
	size_t nr, cap;
	struct uni_regs *regs;	  /* of the target's vCPUs */
	struct uni_ring_now *now; /* what each CPU wrote and lost in all */
	uint64_t stood_ns;	  /* the longest of the stops */
	struct {
		unsigned cpu;
		size_t content;
		uint8_t bytes[UNI_TRACE_SUB_SIZE];
	} packet[];
};

static int keep_last(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct kept *k = arg;

	/* The next packet that fits, or the end, counts packets that do not fit. */
	if (k->nr == k->cap)
		return 0;
	k->packet[k->nr].cpu = cpu;
	k->packet[k->nr].content = content;
	memcpy(k->packet[k->nr].bytes, packet, content);
	k->nr++;
	return 0;
}

static void let_go(struct kept *k, struct uni_pause *p)
{
	bool stood = p->t != NULL;

	(void)uni_pause_end(p);
	k->stood_ns = uni_max(k->stood_ns, p->tried_ns);
	if (stood && p->end_ns > p->begin_ns)
		k->stood_ns = uni_max(k->stood_ns, p->end_ns - p->begin_ns);
}

/* With the guest standing: is a CPU in the middle of writing a record? */
static int look_at_all(const struct uni_trecord_cfg *cfg, struct kept *k, bool *whole_ret)
{
	int rc = 0;

	*whole_ret = true;
	for (uint32_t i = 0; rc == 0 && i < nr_cpus(cfg); i++) {
		rc = unless_late(uni_ring_now(uni_tracer_ring(cfg->tracer), i, &k->now[i]));
		*whole_ret = *whole_ret && k->now[i].whole;
	}
	return rc;
}

/* Holds the guest, preferably where every record is whole. */
static int hold_whole(const struct uni_trecord_cfg *cfg, struct kept *k, struct uni_pause *p)
{
	const struct timespec nap = uni_ns_timespec(WHOLE_NAP_NS);
	bool whole = false;

	for (int i = 0;; i++) {
		int rc = hold_guest(cfg->t, p, k->regs);

		if (rc == 0)
			rc = look_at_all(cfg, k, &whole);
		if (rc != 0 || whole || i == WHOLE_TRIES)
			return rc;
		let_go(k, p);
		(void)nanosleep(&nap, NULL);
	}
}

/* While packets were written, the guest went on. Reads the new packets again, until few enough are
 * left to copy while it is stopped. */
static int catch_up(const struct uni_trecord_cfg *cfg, struct patience *p)
{
	uint64_t packets = UINT64_MAX;
	bool enough;
	int rc = 0;

	uni_ring_hurry(uni_tracer_ring(cfg->tracer));
	for (int i = 0; rc == 0 && i < CATCH_UP && packets > nr_cpus(cfg) && !is_late(p); i++)
		rc = poll_all(cfg, &packets, &enough);
	return rc;
}

/* Tells who waits now, without an event that told so. A guest with a table tells of each wait. */
static int put_waits(const struct uni_trecord_cfg *cfg)
{
	const struct uni_ring_info *info = uni_ring_info(uni_tracer_ring(cfg->tracer));
	int rc;

	if (!cfg->promises || cfg->names == NULL || info->keeps_promises)
		return 0;
	rc = uni_topen_put_waits(uni_tnames_list(cfg->names), info, &cfg->namer, cfg->out);
	uni_tstream_last(cfg->out);
	return rc;
}

int uni_trecord_end(const struct uni_trecord_cfg *cfg, uint64_t *pause_ns_ret, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	size_t cap = (size_t)nr_cpus(cfg) * KEEP;
	_cleanup_free_ struct kept *k = calloc(1, sizeof(*k) + cap * sizeof(k->packet[0]));
	_cleanup_free_ struct uni_ring_now *now = calloc(nr_cpus(cfg), sizeof(*now));
	uint32_t nr_vcpus = (uint32_t)cfg->t->ops->nr_vcpus(cfg->t);
	_cleanup_free_ struct uni_regs *regs = calloc(nr_vcpus, sizeof(*regs));
	struct uni_pause pause = { 0 };
	bool dead = (cfg->t->ops->caps(cfg->t) & UNI_CAP_DEAD) != 0, frozen = false;
	struct patience p = { .cfg = cfg,
		.until_ns = cfg->whole ? 0 : uni_now_ns() + LINE_NS,
		.grace_ns = is_line(cfg) ? 2 * GRACE_NS : GRACE_NS };
	struct uni_hurry hurry;
	int rc;

	*pause_ns_ret = 0;
	if (k == NULL || now == NULL || regs == NULL)
		return uni_err_nomem(err);
	k->now = now;
	k->regs = regs;
	if (cfg->t->ops->tsc != NULL)
		(void)ask_for_clock(cfg);
	memset(k->packet, 0, cap * sizeof(k->packet[0])); /* no page faults while it is stopped */
	k->cap = cap;
	be_patient(cfg, &p);
	rc = catch_up(cfg, &p);
	/* The guest is stopped now: limits the time, because its data may be false. */
	p.until_ns = cfg->whole ? 0 : uni_now_ns() + (is_line(cfg) ? LINE_NS : STAND_NS);
	p.more_ns = LINE_MAX_NS - LINE_NS;
	p.stopped_ns = 0;
	uni_hurry_begin(&hurry);
	if (rc == 0)
		rc = hold_whole(cfg, k, &pause);
	for (uint32_t i = 0; rc == 0 && i < nr_cpus(cfg); i++)
		rc = unless_late(dead ? uni_ring_drain(ring, i, put_packet, (void *)(uintptr_t)cfg)
				      : uni_ring_drain(ring, i, keep_last, k));
	be_patient(cfg, NULL);
	if (rc == 0 && cfg->names != NULL)
		uni_tnames_take(cfg->names, k->regs, nr_vcpus);
	let_go(k, &pause);
	uni_hurry_end(&hurry);
	if (!dead)
		*pause_ns_ret = k->stood_ns;
	for (size_t i = 0; i < k->nr; i++)
		(void)put_packet((void *)(uintptr_t)cfg, k->packet[i].cpu,
			(const struct uni_trace_sub *)(const void *)k->packet[i].bytes,
			k->packet[i].content);
	if (rc != 0)
		return is_gone(cfg, rc) ? 0 : ring_failed(cfg, rc, err);
	/* So that nothing that is missing goes untold. A CPU that recorded nothing in this session
	 * misses nothing of it. */
	for (uint32_t i = 0; i < nr_cpus(cfg); i++) {
		if (!uni_ring_has(ring, i))
			uni_tstream_begin(cfg->out, i, k->now[i].time, k->now[i].words,
				k->now[i].extra, k->now[i].lost);
		uni_tstream_end(cfg->out, i, k->now[i].lost, k->now[i].words, k->now[i].extra);
		frozen = frozen || uni_ring_stats(ring, i)->after_freeze != 0;
	}
	return frozen || put_waits(cfg) == 0 ? 0 : uni_err_nomem(err);
}
