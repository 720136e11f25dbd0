/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/trecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "target/guard.h"

#define BUSY_NAP_NS  (500 * UNI_NSEC_PER_USEC)
#define IDLE_NAP_NS  (10 * UNI_NSEC_PER_MSEC)
#define LOOK_NS	     (1 * UNI_NSEC_PER_MSEC)
#define LOOK_EACH_NS (250 * UNI_NSEC_PER_MSEC)
#define FIRST_NS                                                                         \
	(20 * UNI_NSEC_PER_MSEC) /* between looks until there was one that saw something \
				  */
#define PROGRESS_NS  (150 * UNI_NSEC_PER_MSEC)
#define HOLD_NS	     (2 * UNI_NSEC_PER_SEC)
#define WHOLE_TRIES  20
#define WHOLE_NAP_NS UNI_NSEC_PER_MSEC
#define KEEP	     4 /* sub-buffers of a CPU that are kept while the guest stands */

static uint32_t nr_cpus(const struct uni_trecord_cfg *cfg)
{
	return uni_ring_info(uni_tracer_ring(cfg->tracer))->nr_cpus;
}

static int ring_failed(int rc, struct uni_err *err)
{
	return uni_err_set(err, (enum uni_errcode) - rc,
		"the guest's trace ring cannot be read: %s", uni_strerror(rc));
}

int uni_trecord_begin(const struct uni_trecord_cfg *cfg, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);

	for (uint32_t i = 0; i < nr_cpus(cfg); i++) {
		struct uni_ring_now now;
		int rc = uni_ring_skip(ring, i, &now);

		if (rc != 0)
			return ring_failed(rc, err);
		uni_tstream_begin(cfg->out, i, now.time, now.words, now.lost);
	}
	return 0;
}

static void progress(const struct uni_trecord_cfg *cfg, uint64_t begin_ns, uint64_t *last_ns)
{
	struct uni_trecord_state st = { .elapsed_ns = uni_now_ns() - begin_ns };

	if (cfg->on_progress == NULL || uni_now_ns() - *last_ns < PROGRESS_NS)
		return;
	*last_ns = uni_now_ns();
	for (uint32_t i = 0; i < nr_cpus(cfg); i++) {
		struct uni_record_trace_cpu c = { 0 };

		uni_tstream_stats(cfg->out, i, &c);
		st.words += c.words;
		st.lost += uni_record_trace_lost(&c);
	}
	cfg->on_progress(cfg->ctx, &st);
}

/* All CPUs once; *packets_ret: how many came. */
static int poll_all(const struct uni_trecord_cfg *cfg, uint64_t *packets_ret)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	int rc = 0;

	*packets_ret = 0;
	for (uint32_t i = 0; rc == 0 && i < nr_cpus(cfg); i++) {
		uint64_t before = uni_ring_stats(ring, i)->packets;

		rc = uni_ring_poll(ring, i, uni_tstream_put, cfg->out);
		*packets_ret += uni_ring_stats(ring, i)->packets - before;
	}
	return rc;
}

/* Returns when to look again. */
static uint64_t look_at_clocks(const struct uni_trecord_cfg *cfg)
{
	bool any = false;

	for (uint32_t i = 0; i < uni_min(nr_cpus(cfg), (uint32_t)UNI_VCPU_MAX); i++)
		any |= uni_tclock_look(cfg->clock, uni_tracer_ring(cfg->tracer), i, LOOK_NS);
	return uni_now_ns() + (any ? LOOK_EACH_NS : FIRST_NS);
}

static bool is_gone(const struct uni_trecord_cfg *cfg, int rc)
{
	return rc == -UNI_EGONE || (cfg->t->ops->alive != NULL && !cfg->t->ops->alive(cfg->t));
}

int uni_trecord_run(
	const struct uni_trecord_cfg *cfg, enum uni_trecord_end *ret, struct uni_err *err)
{
	uint64_t begin_ns = uni_now_ns(), shown_ns = begin_ns, look_ns = 0;

	for (;;) {
		uint64_t packets, now_ns = uni_now_ns();
		struct timespec nap;
		int rc;

		if (now_ns >= look_ns)
			look_ns = look_at_clocks(cfg);
		rc = poll_all(cfg, &packets);
		/* Memory of a destroyed domain can be read for as long as it is mapped. */
		if (is_gone(cfg, rc)) {
			*ret = UNI_TRECORD_GONE;
			return 0;
		}
		if (rc != 0)
			return ring_failed(rc, err);
		progress(cfg, begin_ns, &shown_ns);
		if (cfg->stop != NULL && atomic_load(cfg->stop)) {
			*ret = UNI_TRECORD_STOP;
			return 0;
		}
		if (cfg->duration_ns != 0 && now_ns - begin_ns >= cfg->duration_ns) {
			*ret = UNI_TRECORD_TIME;
			return 0;
		}
		nap = uni_ns_timespec(packets != 0 ? BUSY_NAP_NS : IDLE_NAP_NS);
		(void)nanosleep(&nap, NULL);
	}
}

/* Copies made while the guest stands. */
struct kept {
	size_t nr, cap;
	struct uni_regs regs[UNI_VCPU_MAX];
	struct uni_ring_now now[UNI_VCPU_MAX]; /* what each CPU wrote and lost in all */
	struct {
		unsigned cpu;
		size_t content;
		uint8_t bytes[UNI_TRACE_SUB_SIZE];
	} packet[];
};

static int keep(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct kept *k = arg;

	/* What does not fit is counted with the next one that does, or at the end. */
	if (k->nr == k->cap)
		return 0;
	k->packet[k->nr].cpu = cpu;
	k->packet[k->nr].content = content;
	memcpy(k->packet[k->nr].bytes, packet, content);
	k->nr++;
	return 0;
}

static int hold(struct uni_target *t, struct uni_pause *p, struct uni_regs *regs)
{
	uint64_t until = uni_now_ns() + HOLD_NS, all;
	const struct timespec nap = uni_ns_timespec(5 * UNI_NSEC_PER_MSEC);
	int rc;

	all = UINT64_MAX >> (UNI_VCPU_MAX - t->ops->nr_vcpus(t));
	do {
		rc = uni_pause_begin(p, t, all, regs);
		if (rc == -UNI_EAGAIN)
			(void)nanosleep(&nap, NULL);
	} while (rc == -UNI_EAGAIN && uni_now_ns() < until);
	return rc;
}

/* With the guest standing: is a CPU in the middle of writing a record? */
static int look_at_all(const struct uni_trecord_cfg *cfg, struct kept *k, bool *whole_ret)
{
	int rc = 0;

	*whole_ret = true;
	for (uint32_t i = 0; rc == 0 && i < nr_cpus(cfg); i++) {
		rc = uni_ring_now(uni_tracer_ring(cfg->tracer), i, &k->now[i]);
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
		int rc = hold(cfg->t, p, k->regs);

		if (rc == 0)
			rc = look_at_all(cfg, k, &whole);
		if (rc != 0 || whole || i == WHOLE_TRIES)
			return rc;
		(void)uni_pause_end(p);
		(void)nanosleep(&nap, NULL);
	}
}

int uni_trecord_end(const struct uni_trecord_cfg *cfg, uint64_t *pause_ns_ret, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	size_t cap = (size_t)nr_cpus(cfg) * KEEP;
	_cleanup_free_ struct kept *k = calloc(1, sizeof(*k) + cap * sizeof(k->packet[0]));
	struct uni_pause pause = { 0 };
	uint64_t packets;
	int rc;

	*pause_ns_ret = 0;
	if (k == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	memset(k->packet, 0, cap * sizeof(k->packet[0])); /* no page faults while it stands */
	k->cap = cap;
	rc = poll_all(cfg, &packets);
	if (rc == 0)
		rc = hold_whole(cfg, k, &pause);
	for (uint32_t i = 0; rc == 0 && i < nr_cpus(cfg); i++)
		rc = uni_ring_drain(ring, i, keep, k);
	if (rc == 0 && cfg->names != NULL)
		uni_tnames_take(cfg->names, k->regs, (uint32_t)cfg->t->ops->nr_vcpus(cfg->t));
	(void)uni_pause_end(&pause);
	if (pause.end_ns > pause.begin_ns)
		*pause_ns_ret = pause.end_ns - pause.begin_ns;
	for (size_t i = 0; i < k->nr; i++)
		(void)uni_tstream_put(cfg->out, k->packet[i].cpu,
			(const struct uni_trace_sub *)(const void *)k->packet[i].bytes,
			k->packet[i].content);
	if (rc != 0)
		return is_gone(cfg, rc) ? 0 : ring_failed(rc, err);
	/* So that nothing that is missing goes untold. */
	for (uint32_t i = 0; i < nr_cpus(cfg); i++)
		uni_tstream_end(cfg->out, i, k->now[i].lost, k->now[i].words);
	return 0;
}

void uni_trecord_describe(const struct uni_trecord_cfg *cfg, struct uni_record_trace *ret)
{
	const struct uni_ring *ring = uni_tracer_ring(cfg->tracer);

	uint32_t nr = uni_min(nr_cpus(cfg), (uint32_t)UNI_VCPU_MAX);
	const struct uni_record_clock *known = NULL;

	for (uint32_t i = 0; i < nr; i++) {
		struct uni_record_trace_cpu *c = &ret->cpu[i];
		const struct uni_ring_stats *st = uni_ring_stats(ring, i);

		uni_tstream_stats(cfg->out, i, c);
		c->lapped = st->lapped;
		c->torn = st->torn;
		uni_tclock_result(cfg->clock, uni_ring_info(ring), i, &c->clock);
		if (known == NULL && c->clock.error_ns != UINT64_MAX)
			known = &c->clock;
	}
	/* Counters of one machine are one counter, as a rule: better than nothing for those CPUs
	 * that recorded too little to tell. */
	for (uint32_t i = 0; i < nr; i++) {
		struct uni_record_clock *c = &ret->cpu[i].clock;

		if (known != NULL && c->error_ns == UINT64_MAX) {
			*c = *known;
			c->error_ns = UINT64_MAX;
			(void)snprintf(c->source, sizeof(c->source), "other-cpu");
		}
	}
}
