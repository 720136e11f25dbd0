/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/stream.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/frame.h"
#include "base/clock.h"
#include "backend/kvm/bpf/exits.h"

#define LOOK_NS UNI_NSEC_PER_SEC /* vCPUs that have never run, and clocks, are not announced */

static void look_at_clock(struct uni_kvm_stream *s)
{
	struct uni_kvm_clock_look look = { .offset = s->scan.clock_offset, .now_ns = uni_now_ns() };

	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		const struct uni_bpf_vcpu *m = &s->bpf->vcpu[s->vcpu[i].index];

		look.samples += m->samples[UNI_BPF_GUEST] + m->samples[UNI_BPF_KVM];
		look.halted |= m->out_clock != 0 && m->out_state == UNI_BPF_HALTED;
	}
	if (s->nr_back < UNI_KVM_BACKS &&
		uni_kvm_clock_look(&s->clock, &look, &s->back[s->nr_back]))
		s->nr_back++;
}

static int look_at_guest(struct uni_kvm_stream *s, struct uni_err *err)
{
	int rc = uni_kvm_scan(s->bpf, s->pid, &s->scan, err);

	if (rc == 0)
		look_at_clock(s);
	return rc;
}

bool uni_kvm_stream_back(struct uni_kvm_stream *s, struct uni_stream_back *ret)
{
	if (s->nr_back == 0)
		return false;
	*ret = s->back[0];
	memmove(s->back, s->back + 1, --s->nr_back * sizeof(s->back[0]));
	return true;
}

static int copy_functions(struct uni_kvm_stream *s, const struct uni_unwind_hints *h)
{
	for (size_t i = 0; h != NULL && i < h->nr_funcs; i++) {
		if (!uni_vec_push(&s->funcs, h->func[i]))
			return -UNI_ENOMEM;
		if ((h->func[i].flags & UNI_FUNC_ENTRY) != 0 &&
			!uni_vec_push(&s->entries, h->func[i]))
			return -UNI_ENOMEM;
	}
	if (h != NULL)
		s->hints = (struct uni_unwind_hints){ .func = s->funcs.v,
			.nr_funcs = s->funcs.nr,
			.text_start = h->text_start,
			.text_size = h->text_size };
	return 0;
}

static void tell_guest(const struct uni_kvm_stream *s, const struct uni_kvm_stream_opts *opts)
{
	struct uni_bpf_guest *g = &s->bpf->guest[s->guest];

	g->kvm = s->scan.kvm;
	g->tgid = s->scan.tgid;
	g->period_ns = s->period_ns;
	g->flags |= (s->cfg.ordered ? UNI_BPF_ORDERED : 0) | (opts->split ? UNI_BPF_SPLIT : 0);
	if (opts->hints != NULL) {
		g->text_start = opts->hints->text_start;
		g->text_size = opts->hints->text_size;
	}
	if (uni_regs_get_sys(&opts->sys, UNI_X86_CR0, (uint64_t *)&g->cr0))
		g->sys_have |= UNI_BPF_HAVE_CR0;
	if (uni_regs_get_sys(&opts->sys, UNI_X86_CR3, (uint64_t *)&g->cr3))
		g->sys_have |= UNI_BPF_HAVE_CR3;
	if (uni_regs_get_sys(&opts->sys, UNI_X86_CR4, (uint64_t *)&g->cr4))
		g->sys_have |= UNI_BPF_HAVE_CR4;
}

/*
 * All long work is done: counting begins here. The threads' states are read once more, as their
 * sleep counts from that moment on.
 */
static int start_counting(
	struct uni_kvm_stream *s, const struct uni_kvm_stream_opts *opts, struct uni_err *err)
{
	int rc;

	uni_kvm_bpf_cost(s->bpf, &s->cost0_ns, &s->cost0_runs);
	s->start_ns = s->looked_ns = uni_now_ns();
	rc = look_at_guest(s, err);
	if (rc != 0)
		return rc;
	tell_guest(s, opts);
	s->running = true;
	s->unwinder = &opts->unwinder;
	rc = uni_kvm_stream_follow(s, err);
	s->unwinder = NULL;
	return rc;
}

int uni_kvm_stream_start(const struct uni_kvm_stream_opts *opts, const struct uni_stream_cfg *cfg,
	struct uni_kvm_stream **ret, struct uni_err *err)
{
	struct uni_kvm_stream *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (s == NULL)
		return uni_err_nomem(err);
	s->bpf = opts->bpf;
	s->pid = opts->pid;
	s->cfg = *cfg;
	s->period_ns = cfg->frequency > 0 ? (uint64_t)(1e9 / cfg->frequency + 0.5) : UINT64_MAX;
	s->text_fd = s->cfi_fd = s->chains_fd = s->counts_fd = s->ring_fd = -1;
	s->flags[0] = UNI_FRAME_EXACT;
	s->guest = uni_kvm_bpf_take_guest(s->bpf);
	if (s->guest < 0)
		rc = uni_err_set(err, UNI_EBUSY, "more than %d guests at once", UNI_BPF_GUESTS);
	if (rc == 0 && copy_functions(s, opts->hints) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = uni_kvm_stream_make_maps(s, opts, err);
	if (rc == 0 && cfg->exits_every != 0)
		rc = uni_kvm_exits_start(s, err);
	if (rc == 0)
		rc = start_counting(s, opts, err);
	if (rc == 0)
		*ret = s;
	else
		uni_kvm_stream_destroy(s);
	return rc;
}

/* Memory or vCPUs may have been plugged in or out. */
static void look_for_plugged(struct uni_kvm_stream *s)
{
	uint64_t now = uni_now_ns();

	if (!s->running || (now - s->looked_ns < LOOK_NS && !s->bpf->guest[s->guest].changed))
		return;
	s->looked_ns = now;
	if (look_at_guest(s, NULL) == 0)
		(void)uni_kvm_stream_follow(s, NULL);
}

int uni_kvm_stream_read(struct uni_kvm_stream *s, const struct uni_stream_sink *sink)
{
	look_for_plugged(s);
	uni_kvm_ticks_turn(s);
	s->sink = sink;
	(void)ring_buffer__consume(s->ring);
	if (!s->cfg.ordered)
		uni_kvm_stream_counts(s);
	uni_kvm_exits_read(s);
	if (s->ends_due)
		uni_kvm_stream_open_ends(s);
	s->ends_due = false;
	s->sink = NULL;
	return 0;
}

void uni_kvm_stream_stop(struct uni_kvm_stream *s)
{
	if (!s->running)
		return;
	uni_kvm_exits_stop(s);
	s->gone = look_at_guest(s, NULL) != 0;
	uni_kvm_stream_close_times(s);
	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		uni_kvm_stream_leave(s, &s->vcpu[i]);
	s->stop_ns = uni_now_ns();
	s->running = false;
	s->ends_due = true;
}

/* The programs are shared: the cost is divided by runs. */
void uni_kvm_stream_stats(const struct uni_kvm_stream *s, struct uni_stream_stats *ret)
{
	const struct uni_bpf_guest *g = &s->bpf->guest[s->guest];
	uint64_t ns, runs;

	memset(ret, 0, sizeof(*ret));
	ret->begin_ns = s->start_ns;
	ret->samples = s->delivered;
	ret->lost = g->lost;
	ret->failed = g->failed;
	ret->turn_samples = s->cycles ? 0 : UNI_KVM_TURN_SAMPLES;
	uni_kvm_exits_stats(s, ret);
	uni_kvm_bpf_cost(s->bpf, &ns, &runs);
	ns -= s->cost0_ns;
	runs -= s->cost0_runs;
	if (runs == 0)
		return;
	ret->host_runs = g->runs < runs ? g->runs : runs;
	ret->host_ns = (uint64_t)((double)ns * (double)ret->host_runs / (double)runs);
}

void uni_kvm_stream_destroy(struct uni_kvm_stream *s)
{
	if (s == NULL)
		return;
	uni_kvm_exits_destroy(s);
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		uni_kvm_stream_leave(s, &s->vcpu[i]);
		uni_kvm_bpf_put_vcpu(s->bpf, s->vcpu[i].index);
	}
	if (s->guest >= 0) {
		uni_kvm_stream_free_maps(s);
		uni_kvm_bpf_put_guest(s->bpf, s->guest);
	}
	for (size_t i = 0; i < s->chains.nr; i++)
		free(s->chains.v[i].pc);
	uni_vec_free(&s->chains);
	uni_vec_free(&s->entries);
	uni_kvm_taken_free(&s->taken);
	uni_vec_free(&s->funcs);
	free(s);
}
