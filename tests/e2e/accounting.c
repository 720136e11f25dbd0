/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the times of a vCPU that the sampler in the kernel records with the host's counters
 * (schedstat) and the VMM's own books. The cases are a VMM that works itself, a guest that halts,
 * and a process that competes for the CPU. TAP.
 */
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "backend/target.h"
#include "tap.h"
#include "tinyvmm.h"

#define NR_VCPUS  2
#define HZ	  997
#define TOLERANCE 0.02

/* Shares of the wall time. Guest and KVM are one here: a KVM in software does not tell them apart.
 */
struct shares {
	double inside, vmm, idle, stolen;
};

/* The host's counters of a thread at one moment. */
struct counters {
	uint64_t t_ns, run_ns, wait_ns;	   /* schedstat */
	uint64_t book_run_ns, book_vmm_ns; /* the VMM's own */
	uint64_t rounds;
};

static struct counters look_once(const struct tiny *t, unsigned i)
{
	struct tiny_books *b = &t->shared->books[i];
	struct counters c = { .book_run_ns = atomic_load(&b->run_ns),
		.book_vmm_ns = atomic_load(&b->vmm_ns),
		.rounds = atomic_load(&b->rounds) };
	char path[96], text[128];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)t->pid,
		atomic_load(&b->tid));
	c.t_ns = uni_now_ns();
	if (uni_read_small(path, text, sizeof(text)) <= 0 ||
		sscanf(text, "%" SCNu64 " %" SCNu64, &c.run_ns, &c.wait_ns) != 2)
		(void)printf("# cannot read %s\n", path);
	return c;
}

static bool is_asleep(const struct tiny *t, unsigned i)
{
	char path[96], text[512];
	const char *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)t->pid,
		atomic_load(&t->shared->books[i].tid));
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return true;
	end = strrchr(text, ')');
	return end != NULL && strncmp(end, ") R", 3) != 0;
}

/* The host counts a wait for a CPU when it is over: not in the middle of one. */
static struct counters look(const struct tiny *t, unsigned i)
{
	struct counters before, c = look_once(t, i);

	for (unsigned n = 0; n < 2000; n++) {
		before = c;
		(void)usleep(500);
		c = look_once(t, i);
		if (c.run_ns != before.run_ns || is_asleep(t, i))
			break;
	}
	return c;
}

static struct shares truth(const struct counters *a, const struct counters *b)
{
	double wall = (double)(b->t_ns - a->t_ns), run = (double)(b->run_ns - a->run_ns);
	double book_run = (double)(b->book_run_ns - a->book_run_ns);
	double book_vmm = (double)(b->book_vmm_ns - a->book_vmm_ns);
	struct shares s = { .stolen = (double)(b->wait_ns - a->wait_ns) / wall };

	s.vmm = run / wall * book_vmm / (book_vmm + book_run);
	s.inside = run / wall - s.vmm;
	s.idle = fmax(0, 1 - run / wall - s.stolen);
	return s;
}

static struct shares of_times(const struct uni_vcpu_times *t)
{
	double wall = (double)(t->guest_ns + t->kvm_ns + t->vmm_ns + t->unsampled_ns + t->idle_ns +
			       t->stolen_ns);

	return (struct shares){ .inside = (double)(t->guest_ns + t->kvm_ns) / wall,
		.vmm = (double)t->vmm_ns / wall,
		.idle = (double)t->idle_ns / wall,
		.stolen = (double)t->stolen_ns / wall };
}

/*
 * The part of the time of which the truth is unsure. Only one of the two measured it, or it is the
 * VMM's share of unfinished rounds. A KVM in software makes few rounds in all this time.
 */
static double unsure(
	const struct counters *a, const struct counters *b, uint64_t begin_ns, uint64_t stop_ns)
{
	double wall = (double)(b->t_ns - a->t_ns);
	double worked = (double)(b->book_run_ns + b->book_vmm_ns - a->book_run_ns - a->book_vmm_ns);
	double round = worked / (double)uni_max(b->rounds - a->rounds, 1u);
	/* 0: it does not say. Then when it was asked, about. */
	double apart = begin_ns != 0 ? (double)(a->t_ns - begin_ns + b->t_ns - stop_ns) : 0;

	return (apart + round / 2) / wall;
}

/* Samples of each vCPU by state, by weight. */
struct seen {
	uint64_t weight[NR_VCPUS][UNI_VCPU_STATE_NR];
};

static void on_sample(void *ctx, const struct uni_stream_sample *s)
{
	struct seen *seen = ctx;

	if (s->vcpu < NR_VCPUS && s->state < UNI_VCPU_STATE_NR)
		seen->weight[s->vcpu][s->state] += s->weight;
}

static struct shares of_samples(const uint64_t *w)
{
	double all = 0;

	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++)
		all += (double)w[i];
	return (struct shares){
		.inside = (double)(w[UNI_VCPU_RUNNING] + w[UNI_VCPU_KVM]) / all,
		.vmm = (double)w[UNI_VCPU_VMM] / all,
		.idle = (double)w[UNI_VCPU_HALTED] / all,
		.stolen = (double)w[UNI_VCPU_STOLEN] / all,
	};
}

static bool near(double a, double b, double samples, double apart)
{
	double error = samples > 0 ? 4 * sqrt(a * (1 - a) / samples) : 0;

	return fabs(a - b) <= TOLERANCE + apart + error;
}

static void compare(
	unsigned vcpu, const char *what, struct shares t, struct shares s, double n, double apart)
{
	bool ok = near(t.inside, s.inside, n, apart) && near(t.vmm, s.vmm, n, apart) &&
		  near(t.idle, s.idle, n, apart) && near(t.stolen, s.stolen, n, apart);

	check(ok,
		"vCPU %u, %s: guest and KVM %.1f (%.1f), VMM %.1f (%.1f), idle %.1f (%.1f), "
		"stolen %.1f (%.1f) %%",
		vcpu, what, 100 * s.inside, 100 * t.inside, 100 * s.vmm, 100 * t.vmm, 100 * s.idle,
		100 * t.idle, 100 * s.stolen, 100 * t.stolen);
}

/* By default a shorter time, with wider bounds for samples. */
static unsigned seconds(void)
{
	return getenv("UNISCOPE_ALL") != NULL ? 5 : 3;
}

static void record(struct tiny *t, struct uni_target *target, bool ordered)
{
	const struct uni_stream_cfg cfg = { .frequency = HZ, .ordered = ordered };
	const struct uni_unwind_hints hints = { 0 };
	struct counters before[NR_VCPUS], after[NR_VCPUS];
	struct uni_stream_stats stats = { 0 };
	struct seen seen = { 0 };
	const struct uni_stream_sink sink = { .ctx = &seen, .sample = on_sample };
	struct uni_err err = { 0 };
	const char *kind = ordered ? "samples in order" : "samples counted";
	uint64_t stop_ns;

	if (target->ops->stream_start(target, &cfg, &hints, &err) != 0) {
		check(false, "%s: %s", kind, err.msg);
		return;
	}
	for (unsigned i = 0; i < NR_VCPUS; i++)
		before[i] = look(t, i);
	for (unsigned n = 0; n < seconds() * 20; n++) {
		(void)usleep(50000);
		(void)target->ops->stream_read(target, &sink);
	}
	stop_ns = uni_now_ns();
	(void)target->ops->stream_stop(target);
	for (unsigned i = 0; i < NR_VCPUS; i++)
		after[i] = look(t, i);
	(void)target->ops->stream_read(target, &sink);
	target->ops->stream_stats(target, &stats);
	for (unsigned i = 0; i < NR_VCPUS; i++) {
		struct shares want = truth(&before[i], &after[i]);
		struct uni_vcpu_times times;
		double nr = seconds() * HZ;
		double apart = unsure(&before[i], &after[i], stats.begin_ns, stop_ns);

		if (target->ops->stream_times(target, i, &times) != 0)
			check(false, "vCPU %u has no times", i);
		else
			compare(i, "times", want, of_times(&times), 0, apart);
		compare(i, kind, want, of_samples(seen.weight[i]), nr, apart);
	}
	check(stats.lost == 0 && stats.samples != 0,
		"%s: %" PRIu64 " delivered, %" PRIu64 " lost, %" PRIu64 " failed, %.2f us each",
		kind, stats.samples, stats.lost, stats.failed,
		stats.host_runs != 0 ? (double)stats.host_ns / (double)stats.host_runs / 1e3 : 0.0);
}

static void pin(pid_t tid)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	(void)sched_setaffinity(tid, sizeof(one), &one);
}

static pid_t compete(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pin(0);
		(void)alarm(60);
		for (;;)
			continue;
	}
	return pid;
}

static struct uni_target *attach(const struct tiny *t)
{
	const struct uni_text_hint text = { .gva = TINY_CODE,
		.paddr = TINY_CODE,
		.bytes = tiny_code(t->mode),
		.size = 256,
		.exec = true };
	const struct uni_attach_opts opts = { .text = &text, .nr_text = 1 };
	struct uni_target *target = NULL;
	struct uni_err err = { 0 };
	struct uni_spec spec;
	char s[64];

	(void)snprintf(s, sizeof(s), "kvm:pid=%d", (int)t->pid);
	if (uni_spec_parse(s, &spec, &err) != 0 ||
		uni_target_attach(&spec, &opts, &target, &err) != 0)
		check(false, "attach: %s", err.msg);
	return target;
}

static void run(struct tiny *t)
{
	struct uni_target *target = attach(t);
	pid_t rival;

	if (target == NULL)
		return;
	if ((target->ops->caps(target) & UNI_CAP_STREAM) == 0) {
		check(false, "the target offers no samples made in the kernel");
		uni_target_detach(target);
		return;
	}
	record(t, target, false);
	/* The guest of vCPU 0 shares its CPU now. */
	pin(atomic_load(&t->shared->books[0].tid));
	rival = compete();
	record(t, target, true);
	uni_target_detach(target);
	(void)kill(rival, SIGKILL);
	(void)waitpid(rival, NULL, 0);
	check(atomic_load(&t->shared->failed) == 0 && tiny_runs(t, 0) && tiny_runs(t, 1),
		"the guest runs on");
}

int main(void)
{
	struct tiny t;

	need("kvm");
	need("bpf");
	if (!check(tiny_start(&t, TINY_BURNS, NR_VCPUS), "a VMM starts"))
		return 1;
	run(&t);
	tiny_end(&t);
	(void)printf("1..%u\n", nr_checks);
	return 0;
}
