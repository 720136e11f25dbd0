/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VM exits of a VMM that counts and times its own. Numbers, reasons and places must be exact, and
 * host times must be those that it measured. TAP. `kvm_exits -v` prints the times, for looking at.
 * `kvm_exits each` watches known exits alone, each of them: loading programs takes long in a lab.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "backend/exit.h"
#include "backend/target.h"
#include "tap.h"
#include "tinyvmm.h"

#define WAIT_NS (20 * UNI_NSEC_PER_SEC)

/*
 * The place of each kind of exit, its name, and both on SVM; see timed_code in tinyvmm.c. Without
 * hardware, a halt is over before it is told.
 */
static const struct {
	uint64_t pc;
	const char *label;
	unsigned size;
	const char *svm_label;
	uint64_t svm_pc;
} want[TINY_T_NR] = {
	[TINY_T_OUT] = { 0x1004, "io out 0x80", 1, "io out 0x80", 0x1004 },
	[TINY_T_OUT4] = { 0x100b, "io out 0x84", 4, "io out 0x84", 0x100b },
	[TINY_T_STORE] = { 0x1013, "mmio write 0xd0000010", 4, "npf write 0xd0000010", 0x1013 },
	[TINY_T_HALT] = { 0x101a, "hlt", 0, "hlt", 0x1019 },
};

struct sum {
	uint64_t exits, host_ns, asleep_ns, stolen_ns, to_vmm;
};

struct seen {
	struct sum of[TINY_T_NR];
	uint64_t others, signals, interrupts, bad_places, deliveries;
	bool svm;
	char other[UNI_EXIT_LABEL_MAX];
};

static void on_sample(void *ctx, const struct uni_stream_sample *s)
{
}

static void on_exit_seen(void *ctx, const struct uni_stream_exit *e)
{
	struct seen *seen = ctx;
	char label[UNI_EXIT_LABEL_MAX];

	bool svm = e->isa == UNI_EXIT_ISA_SVM;

	uni_exit_label(e, "", label);
	seen->deliveries++;
	seen->svm = seen->svm || svm;
	for (unsigned i = 0; i < TINY_T_NR; i++) {
		struct sum *s = &seen->of[i];

		if (strcmp(label, svm ? want[i].svm_label : want[i].label) != 0 ||
			e->size != want[i].size)
			continue;
		s->exits += e->weight;
		s->host_ns += e->host_ns;
		s->asleep_ns += e->asleep_ns;
		s->stolen_ns += e->stolen_ns;
		s->to_vmm += e->userspace ? e->weight : 0;
		if (e->nr != 1 || e->pc[0] != (svm ? want[i].svm_pc : want[i].pc))
			seen->bad_places += e->weight;
		return;
	}
	/* We stop the guest ourselves to attach; on SVM the host's interrupts stop it, too. */
	if (strcmp(label, "signal") == 0) {
		seen->signals += e->weight;
	} else if (svm && strcmp(label, "interrupt") == 0) {
		seen->interrupts += e->weight;
	} else {
		(void)snprintf(seen->other, sizeof(seen->other), "%s", label);
		seen->others += e->weight;
	}
}

static int attach(const struct tiny *t, struct uni_target **ret, struct uni_err *err)
{
	const struct uni_text_hint text = { .gva = TINY_CODE,
		.paddr = TINY_CODE,
		.bytes = tiny_code(t->mode),
		.size = 256,
		.exec = true };
	const struct uni_attach_opts opts = { .text = &text, .nr_text = 1 };
	struct uni_spec spec;
	char s[64];
	int rc;

	(void)snprintf(s, sizeof(s), "kvm:pid=%d,via=bpf", (int)t->pid);
	rc = uni_spec_parse(s, &spec, err);
	return rc != 0 ? rc : uni_target_attach(&spec, &opts, ret, err);
}

/* Until the guest's next halt; reads what gathers meanwhile. */
static bool until_asleep(
	struct tiny *t, struct uni_target *target, const struct uni_stream_sink *sink, uint64_t n)
{
	uint64_t end = uni_now_ns() + WAIT_NS;

	while (atomic_load(&t->shared->sleeps) < n && uni_now_ns() < end) {
		(void)usleep(50000);
		(void)target->ops->stream_read(target, sink);
	}
	return atomic_load(&t->shared->sleeps) >= n;
}

/* Programs that take long to load are none of the run: it has no more time than passed. */
static void counted_from_the_beginning(struct uni_target *target)
{
	struct uni_stream_stats st = { 0 };
	struct uni_vcpu_times v = { 0 };
	uint64_t now_ns, all_ns;

	target->ops->stream_stats(target, &st);
	(void)check(target->ops->stream_times(target, 0, &v) == 0, "its time is known");
	now_ns = uni_now_ns();
	all_ns = v.guest_ns + v.kvm_ns + v.vmm_ns + v.unsampled_ns + v.idle_ns + v.stolen_ns;
	(void)check(st.begin_ns != 0 && all_ns != 0 && all_ns <= now_ns - st.begin_ns,
		"%.3f s of vCPU 0 in %.3f s", (double)all_ns / 1e9,
		(double)(now_ns - st.begin_ns) / 1e9);
}

/* Halts, leaves so many times, halts, and halts once more: all but the first are seen. */
static bool run(struct tiny *t, struct uni_target *target, uint32_t every, struct seen *seen)
{
	const struct uni_stream_sink sink = {
		.ctx = seen, .sample = on_sample, .exit = on_exit_seen
	};
	const struct uni_stream_cfg cfg = { .exits_every = every };
	struct uni_err err = { 0 };

	if (!check(target->ops->stream_start(target, &cfg, NULL, &err) == 0,
		    "exits are watched, one in %" PRIu32 " %s", every, err.msg))
		return false;
	atomic_store(&t->shared->wake, true);
	if (!check(until_asleep(t, target, &sink, 2), "the guest did all it does"))
		return false;
	(void)usleep(200000);
	atomic_store(&t->shared->wake, true);
	if (!check(until_asleep(t, target, &sink, 3), "it halted once more"))
		return false;
	(void)usleep(100000);
	(void)target->ops->stream_stop(target);
	counted_from_the_beginning(target);
	(void)target->ops->stream_read(target, &sink);
	return true;
}

static void print_times(const struct tiny *t, const struct seen *seen, unsigned i)
{
	const struct sum *s = &seen->of[i];
	double wall = (double)atomic_load(&t->shared->timed[i].host_ns) / (double)s->exits;
	double cpu = (double)atomic_load(&t->shared->timed[i].cpu_ns) / (double)s->exits;
	double host = (double)s->host_ns / (double)s->exits;
	double on_cpu = (double)(s->host_ns - s->stolen_ns) / (double)s->exits;

	(void)printf("# %-22s us an exit: VMM %7.2f seen %7.2f %+7.2f %%; on CPU: VMM %7.2f seen "
		     "%7.2f %+7.2f %%\n",
		want[i].label, wall / 1e3, host / 1e3, 100 * (host - wall) / wall, cpu / 1e3,
		on_cpu / 1e3, 100 * (on_cpu - cpu) / cpu);
}

/*
 * Our time begins before KVM_RUN returns, and ends after it is called again. A busy host takes the
 * CPU away on the way out of the kernel, so neither clock is compared for the time that it stole.
 */
static void compare_times(const struct tiny *t, const struct seen *seen, bool verbose)
{
	double way_ns = 0; /* KVM's own, of one exit: long where SVM is emulated */

	for (unsigned i = 0; i < TINY_T_HALT; i++) {
		double theirs = (double)atomic_load(&t->shared->timed[i].cpu_ns);
		double ours = (double)(seen->of[i].host_ns - seen->of[i].stolen_ns);
		double nr = (double)seen->of[i].exits;

		if (seen->svm && i == TINY_T_OUT)
			way_ns = (ours - theirs) / nr;

		if (verbose)
			print_times(t, seen, i);
		(void)check(ours > theirs && ours - way_ns * nr < 1.3 * theirs,
			"%s: %.1f ms of host time, the VMM measured %.1f", want[i].label,
			ours / 1e6, theirs / 1e6);
	}
}

static void check_counts(const struct seen *seen)
{
	static const uint64_t nr[TINY_T_NR] = { TINY_OUTS, TINY_OUTS4, TINY_STORES, 2 };

	for (unsigned i = 0; i < TINY_T_NR; i++) {
		const struct sum *s = &seen->of[i];

		(void)check(s->exits == nr[i], "%s: %" PRIu64 " exits of %" PRIu64, want[i].label,
			s->exits, nr[i]);
		(void)check(s->to_vmm == s->exits, "%s: all went to the VMM", want[i].label);
	}
	(void)check(seen->others == 0,
		"nothing else but %" PRIu64 " signals and %" PRIu64 " interrupts %s", seen->signals,
		seen->interrupts, seen->other);
	(void)check(seen->bad_places == 0, "each at its own instruction");
}

static void once(uint32_t every, bool verbose)
{
	struct uni_target *target = NULL;
	struct uni_stream_stats st;
	struct uni_err err = { 0 };
	struct seen seen = { 0 };
	struct tiny t;

	if (!check(tiny_start(&t, TINY_TIMED, 1), "a VMM that measures itself starts"))
		return;
	while (atomic_load(&t.shared->sleeps) == 0)
		(void)usleep(1000);
	if (check(attach(&t, &target, &err) == 0, "attach %s", err.msg) &&
		run(&t, target, every, &seen)) {
		check_counts(&seen);
		target->ops->stream_stats(target, &st);
		(void)check(st.exits_lost == 0, "none was lost");
		if (every == 1)
			compare_times(&t, &seen, verbose);
		/* 100 and 200 ms in epoll_wait(). */
		if (every == 1)
			(void)check(seen.of[TINY_T_HALT].asleep_ns > 250000000 &&
					    seen.of[TINY_T_HALT].asleep_ns <=
						    seen.of[TINY_T_HALT].host_ns,
				"halts: %.1f ms asleep of %.1f",
				(double)seen.of[TINY_T_HALT].asleep_ns / 1e6,
				(double)seen.of[TINY_T_HALT].host_ns / 1e6);
		(void)check(seen.of[TINY_T_OUT].asleep_ns == 0, "others never sleep: %.3f ms",
			(double)seen.of[TINY_T_OUT].asleep_ns / 1e6);
	}
	uni_target_detach(target);
	(void)check(atomic_load(&t.shared->failed) == 0 && waitpid(t.pid, NULL, WNOHANG) == 0,
		"the VMM never noticed");
	tiny_end(&t);
}

static void on_any_exit(void *ctx, const struct uni_stream_exit *e)
{
	uint64_t *sum = ctx;

	*sum += e->weight;
}

/* As many a second as this host can make: the kernel adds them up, so none is ever lost. */
static void fast(uint32_t every, bool verbose)
{
	struct uni_target *target = NULL;
	struct uni_stream_cfg cfg = { .exits_every = every };
	uint64_t sum = 0, at_least, at_most, begin;
	const struct uni_stream_sink sink = { &sum, on_sample, on_any_exit };
	struct uni_stream_stats st;
	struct uni_err err = { 0 };
	struct tiny t;

	if (!check(tiny_start(&t, TINY_EXITS, 1), "a VMM that does nothing but exits"))
		return;
	if (check(attach(&t, &target, &err) == 0, "attach %s", err.msg)) {
		at_most = atomic_load(&t.shared->exits);
		(void)check(target->ops->stream_start(target, &cfg, NULL, &err) == 0,
			"one exit in %" PRIu32 " %s", every, err.msg);
		begin = atomic_load(&t.shared->exits);
		for (unsigned i = 0; i < 10; i++) {
			(void)usleep(100000);
			(void)target->ops->stream_read(target, &sink);
		}
		at_least = atomic_load(&t.shared->exits) - begin;
		(void)target->ops->stream_stop(target);
		at_most = atomic_load(&t.shared->exits) - at_most + 1;
		(void)target->ops->stream_read(target, &sink);
		target->ops->stream_stats(target, &st);
		/* The VMM counts an exit a moment after we do. */
		(void)check(sum + 1 >= at_least && sum <= at_most && st.exits == sum &&
				    st.exits_lost == 0,
			"%" PRIu64 " exits, and the VMM counted %" PRIu64 " to %" PRIu64, sum,
			at_least, at_most);
		if (verbose)
			(void)printf("# %" PRIu64 " exits in a second\n", sum);
	}
	uni_target_detach(target);
	tiny_end(&t);
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	bool only_each = argc > 1 && strcmp(argv[1], "each") == 0;

	need("kvm");
	need("bpf");
	once(1, verbose);
	if (!only_each) {
		fast(1, verbose);
		once(10, verbose);
		fast(1000, verbose);
	}
	(void)printf("1..%u\n", nr_checks);
	return nr_failed != 0;
}
