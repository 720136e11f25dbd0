/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/exits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arch/stop.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/observer.h"
#include "backend/exit_kind.h"
#include "backend/kvm/bpf/exit_progs.h"

#define MAX_SUMS  32768u /* for a guest: exits that would need more are counted as lost */
#define MAX_LASTS 16384u /* kinds of exits, for guests in which not every exit is examined */
#define BATCH	  512u
#define SETTLE_NS                                                                      \
	UNI_NSEC_PER_MSEC /* programs that run when they are told to stop, end by then \
			   */

/* The part of one kind that was delivered. */
struct seen {
	struct uni_bpf_exit_key key;
	struct uni_bpf_exit_sum sum; /* exits 0: a free slot */
};

struct uni_kvm_exits {
	struct uni_kvm_exit_progs *progs; /* borrowed from the loaded sampler */
	int sums_fd, lasts_fd;
	bool stopped, ended; /* ended: exits in progress were delivered */
	uint64_t delivered;
	struct seen *seen; /* a hash of 2 * MAX_SUMS */
	struct uni_bpf_exit_key key[BATCH];
	struct uni_bpf_exit_sum sum[BATCH];
};

static struct uni_bpf_exit *exit_of(const struct uni_kvm_stream *s, uint32_t vcpu)
{
	return &s->exits->progs->exit[s->vcpu[vcpu].index];
}

static int make_map(const char *name, uint32_t key, uint32_t value, uint32_t nr, int outer,
	uint32_t guest, int *ret, struct uni_err *err)
{
	struct uni_observer_map map = {
		.type = BPF_MAP_TYPE_HASH, .key = key, .value = value, .nr = nr
	};
	uint32_t fd;

	(void)snprintf(map.name, sizeof(map.name), "%s", name);
	*ret = uni_observer_map_create(&map);
	fd = (uint32_t)*ret;
	if (*ret < 0 || bpf_map_update_elem(outer, &guest, &fd, 0) != 0)
		return uni_err_set(err, errno == EPERM ? UNI_EPERM : UNI_ENOMEM,
			"cannot make room for VM exits in the kernel: %s", strerror(errno));
	return 0;
}

static int make_maps(struct uni_kvm_stream *s, struct uni_err *err)
{
	struct uni_kvm_exits *x = s->exits;
	int rc = make_map("uni_exit_sums", sizeof(struct uni_bpf_exit_key),
		sizeof(struct uni_bpf_exit_sum), MAX_SUMS, x->progs->sums_fd, (uint32_t)s->guest,
		&x->sums_fd, err);

	if (rc == 0 && s->cfg.exits_every > 1)
		rc = make_map("uni_exit_lasts", sizeof(struct uni_bpf_exit_kind),
			sizeof(struct uni_bpf_exit_last), MAX_LASTS, x->progs->lasts_fd,
			(uint32_t)s->guest, &x->lasts_fd, err);
	return rc;
}

static void drop_map(int outer, uint32_t guest, int fd)
{
	if (fd < 0)
		return;
	(void)bpf_map_delete_elem(outer, &guest);
	(void)close(fd);
}

int uni_kvm_exits_start(struct uni_kvm_stream *s, struct uni_err *err)
{
	struct uni_kvm_exits *x = calloc(1, sizeof(*x));
	int rc;

	if (x == NULL)
		return uni_err_nomem(err);
	x->sums_fd = x->lasts_fd = -1;
	x->seen = calloc(2ul * MAX_SUMS, sizeof(*x->seen));
	rc = x->seen != NULL ? uni_kvm_exit_progs_get(s->bpf, err) : uni_err_nomem(err);
	if (rc != 0) {
		free(x->seen);
		free(x);
		return rc;
	}
	x->progs = s->bpf->exits;
	s->exits = x;
	rc = make_maps(s, err);
	if (rc == 0)
		uni_kvm_exits_follow(s);
	return rc;
}

void uni_kvm_exits_follow(struct uni_kvm_stream *s)
{
	struct uni_kvm_exits *x = s->exits;

	for (uint32_t i = 0; x != NULL && !x->stopped && i < s->nr_vcpus; i++) {
		struct uni_kvm_stream_vcpu *v = &s->vcpu[i];
		uint32_t index = (uint32_t)v->index;

		if (v->host_tid == v->exit_tid)
			continue;
		if (v->exit_tid != 0)
			(void)bpf_map_delete_elem(x->progs->by_thread_fd, &v->exit_tid);
		v->exit_tid = 0;
		if (v->host_tid == 0 ||
			bpf_map_update_elem(x->progs->by_thread_fd, &v->host_tid, &index, 0) != 0)
			continue;
		v->exit_tid = v->host_tid;
		exit_of(s, i)->every = s->cfg.exits_every;
	}
}

/* The slot of that kind; there is room for all of them. */
static struct seen *find_exit_kind(struct uni_kvm_exits *x, const struct uni_bpf_exit_key *key)
{
	size_t mask = 2ul * MAX_SUMS - 1, i = (size_t)uni_hash_bytes(key, sizeof(*key), 0) & mask;

	while (x->seen[i].sum.exits != 0 && memcmp(&x->seen[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) & mask;
	return &x->seen[i];
}

/* False: its chain is not known yet, but will be. */
static bool hand_over(struct uni_kvm_stream *s, const struct uni_bpf_exit_key *k,
	const struct uni_bpf_exit_sum *sum, uint64_t t_ns)
{
	const struct uni_kvm_chain *c = uni_kvm_stream_chain(s, k->chain);
	const struct uni_stream_exit e = { .t_ns = t_ns,
		.weight = sum->exits,
		.host_ns = sum->host_ns,
		.asleep_ns = sum->asleep_ns,
		.stolen_ns = sum->stolen_ns,
		.info = k->info,
		.vcpu = k->number,
		.reason = k->reason,
		.isa = k->isa,
		.info_kind = k->what & 0xf,
		.access = k->what >> 4,
		.size = k->how & UNI_BPF_EXIT_SIZE_MASK,
		.userspace = (k->how & UNI_BPF_EXIT_USERSPACE) != 0,
		.stop = c != NULL ? c->stop : UNI_STOP_NOREGS,
		.nr = c != NULL ? c->nr : 0,
		.pc = c != NULL ? c->pc : NULL,
		.flags = s->flags };

	if (c == NULL && k->chain != UNI_BPF_NONE && !s->exits->stopped)
		return false;
	s->exits->delivered += e.weight;
	uni_kvm_stream_mark(s, c, true);
	if (s->sink->exit != NULL)
		s->sink->exit(s->sink->ctx, &e);
	uni_kvm_stream_mark(s, c, false);
	return true;
}

/* The kernel's sums only grow: the difference to the last time is new. */
static void take_exit_sum(struct uni_kvm_stream *s, const struct uni_bpf_exit_key *key,
	const struct uni_bpf_exit_sum *sum, uint64_t now)
{
	struct seen *seen = find_exit_kind(s->exits, key);
	const struct uni_bpf_exit_sum more = { .exits = sum->exits - seen->sum.exits,
		.host_ns = sum->host_ns - seen->sum.host_ns,
		.asleep_ns = sum->asleep_ns - seen->sum.asleep_ns,
		.stolen_ns = sum->stolen_ns - seen->sum.stolen_ns };

	if (more.exits == 0 || !hand_over(s, key, &more, now))
		return;
	seen->key = *key;
	seen->sum = *sum;
}

static void read_sums(struct uni_kvm_stream *s, uint64_t now)
{
	struct uni_kvm_exits *x = s->exits;
	uint32_t at = 0, next = 0;
	bool first = true;
	int r = 0;

	while (r == 0) {
		uint32_t n = BATCH;

		r = bpf_map_lookup_batch(
			x->sums_fd, first ? NULL : &at, &next, x->key, x->sum, &n, NULL);
		/* ENOENT is the end; the entries that came with it are valid. */
		for (uint32_t i = 0; (r == 0 || errno == ENOENT) && i < n; i++)
			take_exit_sum(s, &x->key[i], &x->sum[i], now);
		at = next;
		first = false;
	}
}

/* Delivers the exits after the last examined exit of each kind. */
static void read_lasts(struct uni_kvm_stream *s)
{
	struct uni_bpf_exit_kind kind, next;
	struct uni_bpf_exit_last last;
	int fd = s->exits->lasts_fd, r = fd >= 0 ? bpf_map_get_next_key(fd, NULL, &next) : -1;

	while (r == 0) {
		kind = next;
		r = bpf_map_get_next_key(fd, &kind, &next);
		if (bpf_map_lookup_elem(fd, &kind, &last) != 0 || last.sum.exits == 0)
			continue;
		last.sum.host_ns *= last.sum.exits;
		last.sum.asleep_ns *= last.sum.exits;
		last.sum.stolen_ns *= last.sum.exits;
		(void)hand_over(s, &last.key, &last.sum, s->stop_ns);
	}
}

/*
 * Delivers exits after which the guest was not entered again. They lasted to the end, unless the
 * guest ended with them: then nobody waited.
 */
static void read_open(struct uni_kvm_stream *s)
{
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		const struct uni_kvm_stream_vcpu *v = &s->vcpu[i];
		const struct uni_bpf_exit *x = exit_of(s, i);
		const struct uni_bpf_vcpu *m = &s->bpf->vcpu[v->index];
		struct uni_bpf_exit_sum sum = { .exits = 1,
			.host_ns = s->stop_ns - x->begin_ns,
			.asleep_ns = m->idle_ns + v->end_idle - x->asleep_ns,
			.stolen_ns = m->stolen_ns + v->end_stolen - x->stolen_ns };

		if (s->gone)
			sum = (struct uni_bpf_exit_sum){ .exits = 1 };
		if (x->begin_ns != 0 && x->looked != 0 && s->stop_ns > x->begin_ns)
			(void)hand_over(s, &x->key, &sum, s->stop_ns);
	}
}

void uni_kvm_exits_read(struct uni_kvm_stream *s)
{
	if (s->exits == NULL || s->exits->ended)
		return;
	read_sums(s, s->stop_ns != 0 ? s->stop_ns : uni_now_ns());
	if (!s->exits->stopped)
		return;
	read_lasts(s);
	read_open(s);
	s->exits->ended = true;
}

void uni_kvm_exits_stop(struct uni_kvm_stream *s)
{
	struct timespec settle = uni_ns_timespec(SETTLE_NS);

	if (s->exits == NULL || s->exits->stopped)
		return;
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		uint32_t tid = s->vcpu[i].exit_tid;

		exit_of(s, i)->every = 0;
		if (tid != 0)
			(void)bpf_map_delete_elem(s->exits->progs->by_thread_fd, &tid);
	}
	(void)nanosleep(&settle, NULL);
	s->exits->stopped = true;
}

void uni_kvm_exits_stats(const struct uni_kvm_stream *s, struct uni_stream_stats *ret)
{
	if (s->exits == NULL)
		return;
	ret->exits = s->exits->delivered;
	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		ret->exits_lost += exit_of(s, i)->lost;
}

uint64_t uni_kvm_exits_of(const struct uni_kvm_stream *s, uint32_t vcpu)
{
	return s->exits != NULL ? exit_of(s, vcpu)->seq : 0;
}

void uni_kvm_exits_destroy(struct uni_kvm_stream *s)
{
	struct uni_kvm_exits *x = s->exits;

	if (x == NULL)
		return;
	uni_kvm_exits_stop(s);
	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		memset(exit_of(s, i), 0, sizeof(struct uni_bpf_exit));
	drop_map(x->progs->sums_fd, (uint32_t)s->guest, x->sums_fd);
	drop_map(x->progs->lasts_fd, (uint32_t)s->guest, x->lasts_fd);
	uni_kvm_exit_progs_put(s->bpf);
	free(x->seen);
	free(x);
	s->exits = NULL;
}
