/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of vCPU threads that the programs run on. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "arch/stop.h"
#include "base/clock.h"
#include "backend/kvm/bpf/exits.h"

/* The link owns the event. */
static int attach_event(
	const struct bpf_program *prog, int event, uint32_t cookie, struct bpf_link **ret)
{
	struct bpf_perf_event_opts opts;

	if (event < 0)
		return -errno;
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.bpf_cookie = cookie;
	*ret = bpf_program__attach_perf_event_opts(prog, event, &opts);
	if (*ret != NULL)
		return 0;
	(void)close(event);
	return -errno;
}

void uni_kvm_stream_leave(struct uni_kvm_stream *s, struct uni_kvm_stream_vcpu *v)
{
	(void)bpf_link__destroy(v->sample);
	(void)bpf_link__destroy(v->leave);
	v->sample = v->leave = NULL;
	v->ticks.fd = -1;
	v->tid = v->host_tid = 0;
}

/* Reads the thread's state at the begin of sampling: its sleep and its waits count from now on. */
static void begin_times(
	struct uni_kvm_stream *s, struct uni_bpf_vcpu *m, const struct uni_bpf_item *item)
{
	uint64_t pc[UNI_BPF_FRAMES];
	uint8_t stop = UNI_STOP_NOREGS;
	uint16_t nr = 0;

	m->out_clock = 0;
	if (item->vcpu.on_cpu != 0)
		return;
	if (s->unwinder != NULL)
		nr = s->unwinder->chain(s->unwinder->ctx, &item->vcpu.regs, pc, &stop);
	m->out_state = item->vcpu.on_rq != 0 ? UNI_BPF_STOLEN : UNI_BPF_HALTED;
	m->out_chain = uni_kvm_stream_define(s, m->number, pc, nr, stop);
	m->out_delay = item->vcpu.delay;
	m->out_ns = item->vcpu.now_ns;
	m->out_clock = 1;
}

static int enter_vcpu(struct uni_kvm_stream *s, struct uni_kvm_stream_vcpu *v,
	const struct uni_bpf_item *item, struct uni_err *err)
{
	struct perf_event_attr out = { .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1 };
	struct uni_bpf_vcpu *m = &s->bpf->vcpu[v->index];
	uint32_t index = (uint32_t)v->index;
	int r;

	begin_times(s, m, item);
	if (v->since_ns == 0)
		v->since_ns = item->vcpu.now_ns;
	v->tid = item->vcpu.tid;
	v->host_tid = item->vcpu.host_tid;
	r = attach_event(
		s->bpf->event, uni_kvm_event_open(v->tid, &out), index | UNI_BPF_LEAVES, &v->leave);
	if (r == 0 && s->cfg.frequency > 0)
		r = attach_event(s->bpf->event, uni_kvm_ticks_open(s, v), index, &v->sample);
	if (r == 0)
		return 0;
	uni_kvm_stream_leave(s, v);
	if (r == -ESRCH)
		return -UNI_EGONE;
	if (r == -EPERM || r == -EACCES)
		return uni_err_set(err, UNI_EPERM,
			"not permitted to sample thread %u of pid %d: it needs CAP_PERFMON", v->tid,
			s->pid);
	return uni_err_set(
		err, UNI_EIO, "cannot sample a thread of pid %d: %s", s->pid, strerror(-r));
}

static struct uni_kvm_stream_vcpu *find_vcpu(
	struct uni_kvm_stream *s, const struct uni_bpf_item *item)
{
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		if (s->bpf->vcpu[s->vcpu[i].index].id == item->id)
			return &s->vcpu[i];
	}
	return NULL;
}

static struct uni_kvm_stream_vcpu *add_vcpu(
	struct uni_kvm_stream *s, const struct uni_bpf_item *item)
{
	struct uni_kvm_stream_vcpu *v;
	int index = s->nr_vcpus < UNI_VCPU_MAX ? uni_kvm_bpf_take_vcpu(s->bpf) : -1;

	if (index < 0)
		return NULL;
	v = &s->vcpu[s->nr_vcpus];
	*v = (struct uni_kvm_stream_vcpu){ .index = index };
	s->bpf->vcpu[index].guest = (uint32_t)s->guest;
	s->bpf->vcpu[index].id = item->id;
	s->bpf->vcpu[index].number = s->nr_vcpus++;
	return v;
}

/* Writes the slots to the copy that is not in use, then switches the programs to it. */
static void tell_memory(const struct uni_kvm_stream *s)
{
	struct uni_bpf_guest *g = &s->bpf->guest[s->guest];
	uint32_t next = 1 - (g->cur_slots & 1);

	for (uint32_t i = 0; i < UNI_BPF_SLOTS; i++)
		g->slot[next][i] =
			i < s->scan.nr_slots ? s->scan.slot[i] : (struct uni_bpf_slot){ 0 };
	g->nr_slots[next] = s->scan.nr_slots;
	__atomic_store_n(&g->cur_slots, next, __ATOMIC_RELEASE);
	g->generation = s->scan.generation;
	g->online = s->scan.online;
	g->changed = 0;
}

int uni_kvm_stream_follow(struct uni_kvm_stream *s, struct uni_err *err)
{
	int rc = 0;

	tell_memory(s);
	for (uint32_t i = 0; i < s->scan.nr_vcpus; i++) {
		const struct uni_bpf_item *item = &s->scan.vcpu[i];
		struct uni_kvm_stream_vcpu *v = find_vcpu(s, item);
		int r;

		if (v == NULL)
			v = add_vcpu(s, item);
		if (v == NULL) {
			rc = uni_err_set(err, UNI_EBUSY,
				"the host's kernel samples at most %d vCPUs at once, %d of a "
				"guest",
				UNI_BPF_VCPUS, UNI_VCPU_MAX);
			continue;
		}
		if (v->ptr != item->vcpu.vcpu) {
			v->ptr = item->vcpu.vcpu;
			s->bpf->vcpu[v->index].vcpu = v->ptr;
		}
		if (item->vcpu.tid == v->tid || item->vcpu.tid == 0)
			continue;
		uni_kvm_stream_leave(s, v);
		r = enter_vcpu(s, v, item, err);
		rc = r != 0 && r != -UNI_EGONE ? r : rc;
	}
	uni_kvm_exits_follow(s);
	return rc;
}
