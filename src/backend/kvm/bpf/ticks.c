/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ticks of a vCPU thread's CPU time; each one runs the sampler.
 *
 * If a guest does the same every millisecond, ticks that are as regular would always see it at the
 * same place. The CPU's own counter is never so regular, as the kernel corrects its period all the
 * time. The kernel's clock gets a new random period now and then. The clock starts anew with each,
 * so the time since the latest tick is lost. The next periods make up for that loss, and for
 * periods that were drawn too long. So a sample stands for the wanted period on average.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/observer.h"
#include "backend/kvm/bpf/stream.h"

#define SPREAD 0.25 /* maximum change of a period, as a part of it */

int uni_kvm_event_open(uint32_t tid, struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->disabled = 1;
	/* The sample's address makes perf ask KVM for the guest's pc; then VMX has a copy of it. */
	attr->sample_type = PERF_SAMPLE_IP;
	return uni_observer_perf_event(attr, (int)tid);
}

/* splitmix64; from -1 to 1. */
static double draw_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-52 - 1.0;
}

static uint64_t samples_of(const struct uni_bpf_vcpu *m)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < UNI_BPF_STATES; i++)
		sum += __atomic_load_n(&m->samples[i], __ATOMIC_RELAXED);
	return sum;
}

/*
 * The CPU's own counter sends NMIs, which also see code that runs with interrupts off. Hybrid CPUs
 * have a counter for each kind of core, so there the clock is better.
 */
int uni_kvm_ticks_open(struct uni_kvm_stream *s, struct uni_kvm_stream_vcpu *v)
{
	struct perf_event_attr cycles = { .type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.freq = 1,
		.sample_freq = (uint64_t)llround(s->cfg.frequency) };
	struct perf_event_attr clock = { .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK };
	struct uni_kvm_ticks *t = &v->ticks;
	int fd = -1;

	if (access("/sys/bus/event_source/devices/cpu", F_OK) == 0 && cycles.sample_freq != 0)
		fd = uni_kvm_event_open(v->tid, &cycles);
	s->cycles = fd >= 0;
	*t = (struct uni_kvm_ticks){ .fd = -1 };
	if (fd >= 0)
		return fd;
	t->seed = uni_now_ns() ^ (uint64_t)v->tid << 32;
	t->first = t->turned = samples_of(&s->bpf->vcpu[v->index]);
	clock.sample_period =
		(uint64_t)((double)s->period_ns * (1.0 + SPREAD * draw_next(&t->seed)));
	return t->fd = uni_kvm_event_open(v->tid, &clock);
}

/* The debt, in samples: how many more samples the wanted period would have made. */
static void turn_period(const struct uni_kvm_stream *s, struct uni_kvm_stream_vcpu *v)
{
	struct uni_kvm_ticks *t = &v->ticks;
	uint64_t samples, period_ns, count_ns;
	double nr, debt, most, longer;

	samples = samples_of(&s->bpf->vcpu[v->index]);
	if (samples - t->turned < UNI_KVM_TURN_SAMPLES ||
		read(t->fd, &count_ns, sizeof(count_ns)) != sizeof(count_ns))
		return;
	nr = (double)(samples - t->turned);
	debt = (double)count_ns / (double)s->period_ns - (double)(samples - t->first);
	/*
	 * A host that is too slow for its ticks never pays the debt: drops what exceeds one turn.
	 */
	most = nr * SPREAD + 2.0;
	if (debt > most) {
		t->first -= (uint64_t)(debt - most);
		debt = most;
	}
	/* Half a sample will be lost at the next turn, on average. */
	longer = SPREAD * draw_next(&t->seed) - (debt + 0.5) / nr;
	longer = uni_min(uni_max(longer, -0.6), 1.0);
	period_ns = (uint64_t)((double)s->period_ns * (1.0 + longer));
	if (ioctl(t->fd, PERF_EVENT_IOC_PERIOD, &period_ns) == 0)
		t->turned = samples;
}

void uni_kvm_ticks_turn(struct uni_kvm_stream *s)
{
	for (uint32_t i = 0; s->running && i < s->nr_vcpus; i++) {
		if (s->vcpu[i].sample != NULL && s->vcpu[i].ticks.fd >= 0)
			turn_period(s, &s->vcpu[i]);
	}
}
