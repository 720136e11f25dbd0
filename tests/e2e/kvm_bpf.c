/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kvm target's kernel side on VMMs that would not forgive a mistake. The VMM must not notice
 * it, it must follow plugged vCPUs, and it must leave nothing behind. TAP.
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/stop.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "backend/shared.h"
#include "backend/target.h"
#include "tap.h"
#include "tinyvmm.h"

#define IDS_MAX 64

static int attach(const struct tiny *t, const char *via, struct uni_target_shared *shared,
	struct uni_target **ret, struct uni_err *err)
{
	const struct uni_text_hint text = { .gva = TINY_CODE,
		.paddr = TINY_CODE,
		.bytes = tiny_code(t->mode),
		.size = 256,
		.exec = true };
	const struct uni_attach_opts opts = { .text = &text, .nr_text = 1, .shared = shared };
	struct uni_spec spec;
	char s[64];
	int rc;

	(void)snprintf(s, sizeof(s), "kvm:pid=%d,via=%s", (int)t->pid, via);
	rc = uni_spec_parse(s, &spec, err);
	return rc != 0 ? rc : uni_target_attach(&spec, &opts, ret, err);
}

static bool lives(const struct tiny *t)
{
	return atomic_load(&t->shared->failed) == 0 && waitpid(t->pid, NULL, WNOHANG) == 0;
}

/* A guest's samples, and the time for which it was sampled: at least and at most.
 */
struct seen {
	uint64_t least_ns, most_ns;
	uint64_t all, astray;	     /* astray: not in the guest's loop */
	uint64_t vcpu[UNI_VCPU_MAX]; /* running */
	uint64_t state[UNI_VCPU_STATE_NR], vmm_idle;
	uint64_t plugged; /* with a frame in memory that was plugged in */
};

static void on_sample(void *ctx, const struct uni_stream_sample *s)
{
	struct seen *seen = ctx;

	seen->all += s->weight;
	seen->state[s->state % UNI_VCPU_STATE_NR] += s->weight;
	seen->vmm_idle += s->vmm ? s->weight : 0;
	if (s->state == UNI_VCPU_RUNNING && s->vcpu < UNI_VCPU_MAX)
		seen->vcpu[s->vcpu] += s->weight;
	/* rbp is 0 there, and nothing says that this is a root. */
	if (s->nr == 0 || !uni_range_has(TINY_CODE, 8, s->pc[0]) || s->stop != UNI_STOP_BADPTR)
		seen->astray += s->weight;
	seen->plugged += s->nr == 2 && s->pc[1] == TINY_CODE + 3 ? s->weight : 0;
}

/* A busy host gives a VMM, or us, no CPU for long: what comes for certain is waited for. */
#define PATIENCE_NS (60 * UNI_NSEC_PER_SEC)

/* Samples for so long and until it is enough, or the guest is gone. The last result of a read. */
static int sample(struct uni_target *t, bool ordered, unsigned ms,
	bool (*enough)(const struct seen *seen), struct seen *ret)
{
	const struct uni_stream_cfg cfg = { .frequency = 997, .ordered = ordered };
	const struct uni_stream_sink sink = { .ctx = ret, .sample = on_sample };
	struct uni_err err = { 0 };
	uint64_t before_ns = uni_now_ns(), begin_ns, ns = 0;
	int rc = t->ops->stream_start(t, &cfg, NULL, &err);

	begin_ns = uni_now_ns();
	if (rc != 0)
		(void)printf("# %s\n", err.msg);
	while (rc == 0 && (ns < ms * UNI_NSEC_PER_MSEC ||
				  (enough != NULL && !enough(ret) && ns < PATIENCE_NS))) {
		(void)usleep(20000);
		rc = t->ops->stream_read(t, &sink);
		ns = uni_now_ns() - begin_ns;
	}
	ret->least_ns = uni_now_ns() - begin_ns;
	(void)t->ops->stream_stop(t);
	ret->most_ns = uni_now_ns() - before_ns;
	if (rc == 0)
		rc = t->ops->stream_read(t, &sink);
	return rc;
}

/* Samples that so much time makes. */
static uint64_t in_time(uint64_t ns)
{
	return ns * 997 / UNI_NSEC_PER_SEC;
}

/* Each vCPU has been in its guest, so that it can be found there. */
static bool began(const struct tiny *t, unsigned nr)
{
	uint64_t until_ns = uni_now_ns() + PATIENCE_NS;
	bool all = false;

	while (!all && uni_now_ns() < until_ns) {
		(void)usleep(50000);
		all = true;
		for (unsigned i = 0; i < nr; i++)
			all = all && tiny_counter(t, i) != 0;
	}
	return all;
}

static struct uni_target *begin(struct tiny *t, enum tiny_mode mode, unsigned nr, const char *what)
{
	struct uni_target *target = NULL;
	struct uni_err err = { 0 };

	if (!check(tiny_start(t, mode, nr) && began(t, nr), "%s: a VMM starts", what))
		return NULL;
	if (attach(t, "bpf", NULL, &target, &err) == 0)
		return target;
	(void)check(false, "%s: attach: %s", what, err.msg);
	tiny_end(t);
	return NULL;
}

static void finish(struct tiny *t, struct uni_target *target)
{
	uni_target_detach(target);
	(void)check(lives(t) && tiny_runs(t, 0), "the VMM never noticed");
	tiny_end(t);
}

static bool each_ran(const struct seen *seen)
{
	for (unsigned i = 0; i < TINY_VCPUS; i++) {
		if (seen->vcpu[i] < 20)
			return false;
	}
	return true;
}

/* All states add up to the wall time, and every vCPU is seen. */
static void all_vcpus(bool ordered)
{
	const char *what = ordered ? "4 vCPUs, ordered" : "4 vCPUs, counted";
	struct seen seen = { 0 };
	struct tiny t;
	struct uni_target *target = begin(&t, TINY_BRITTLE, TINY_VCPUS, what);

	if (target == NULL)
		return;
	(void)check(sample(target, ordered, 1000, each_ran, &seen) == 0, "%s: sampled", what);
	(void)check(each_ran(&seen), "%s: all are seen", what);
	(void)check(seen.astray * 2000 <= seen.all, "%s: %lu of %lu samples astray", what,
		(unsigned long)seen.astray, (unsigned long)seen.all);
	(void)check(seen.all * 100 >= 97 * 4 * in_time(seen.least_ns) &&
			    seen.all * 100 <= 130 * 4 * in_time(seen.most_ns),
		"%s: %lu samples for 4 times %.3f to %.3f s of wall time", what,
		(unsigned long)seen.all, (double)seen.least_ns / 1e9, (double)seen.most_ns / 1e9);
	finish(&t, target);
}

/* The host's count of the time that vCPU 0's thread ran or waited for a CPU. */
static uint64_t awake_ns(const struct tiny *t)
{
	uint64_t run_ns = 0, wait_ns = 0;
	char path[96], text[128];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)t->pid,
		atomic_load(&t->shared->books[0].tid));
	if (uni_read_small(path, text, sizeof(text)) <= 0 ||
		sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, &wait_ns) != 2)
		(void)check(false, "cannot read %s", path);
	return run_ns + wait_ns;
}

static void sleeper(void)
{
	struct uni_vcpu_times times;
	struct seen seen = { 0 };
	struct tiny t;
	struct uni_target *target = begin(&t, TINY_SLEEPS, 1, "asleep in the VMM");
	uint64_t awake, asleep, halted;
	int rc;

	if (target == NULL)
		return;
	awake = awake_ns(&t);
	(void)check(sample(target, true, 1000, NULL, &seen) == 0, "sampled");
	awake = awake_ns(&t) - awake;
	asleep = seen.least_ns - uni_min(seen.least_ns, awake);
	halted = seen.state[UNI_VCPU_HALTED];
	(void)check(
		halted * 10 >= 9 * in_time(asleep) && seen.all * 10 <= 13 * in_time(seen.most_ns),
		"asleep in the VMM for %.3f s: %lu of %lu samples", (double)asleep / 1e9,
		(unsigned long)halted, (unsigned long)seen.all);
	/* It wakes up every 20 ms, so all but the first of these sleeps was seen to begin. */
	(void)check(seen.vmm_idle + 50 >= halted, "%lu of them known to be in the VMM",
		(unsigned long)seen.vmm_idle);
	rc = target->ops->stream_times(target, 0, &times);
	(void)check(rc == 0 && times.idle_ns * 10 >= 9 * asleep && times.idle_ns <= seen.most_ns,
		"%.3f s idle", (double)times.idle_ns / 1e9);
	uni_target_detach(target);
	(void)check(lives(&t), "it was never woken");
	tiny_end(&t);
}

static bool both_places(const struct seen *seen)
{
	return seen->state[UNI_VCPU_VMM] > 0 && seen->state[UNI_VCPU_RUNNING] > 0;
}

static void in_vmm(void)
{
	struct seen seen = { 0 };
	struct tiny t;
	struct uni_target *target = begin(&t, TINY_EXITS, 1, "in and out");

	if (target == NULL)
		return;
	/* A KVM in software is seldom out. */
	(void)check(sample(target, false, 1000, both_places, &seen) == 0, "sampled");
	(void)check(both_places(&seen), "in and out: %lu samples in the guest, %lu in the VMM",
		(unsigned long)seen.state[UNI_VCPU_RUNNING],
		(unsigned long)seen.state[UNI_VCPU_VMM]);
	finish(&t, target);
}

static void plugged_in(void)
{
	const struct uni_stream_cfg cfg = { .frequency = 997, .ordered = true };
	struct seen seen = { 0 };
	const struct uni_stream_sink sink = { .ctx = &seen, .sample = on_sample };
	struct uni_err err = { 0 };
	struct tiny t;
	struct uni_target *target = begin(&t, TINY_GROWS, 1, "plugged in");
	uint64_t end_ns = uni_now_ns() + PATIENCE_NS;
	int rc = 0;

	if (target == NULL)
		return;
	(void)check(target->ops->stream_start(target, &cfg, NULL, &err) == 0, "it is sampled");
	while (rc == 0 && seen.vcpu[0] <= 5 && uni_now_ns() < end_ns) {
		(void)usleep(200000);
		rc = target->ops->stream_read(target, &sink);
	}
	(void)check(rc == 0 && seen.vcpu[0] > 5, "vCPU 0");
	atomic_store(&t.shared->wake, true);
	while ((seen.plugged < 20 || seen.vcpu[1] == 0) && uni_now_ns() < end_ns) {
		(void)usleep(20000);
		(void)target->ops->stream_read(target, &sink);
	}
	(void)check(seen.vcpu[1] > 0, "a vCPU that came later: %lu samples",
		(unsigned long)seen.vcpu[1]);
	(void)check(seen.plugged > 0, "a stack in memory that came later: %lu samples",
		(unsigned long)seen.plugged);
	finish(&t, target);
}

/* Kills the VMM when it has been sampled for so long. */
static pid_t doomed;
static bool has_had_its_time(const struct seen *seen)
{
	if (seen->all != 0)
		(void)kill(doomed, SIGKILL);
	return false;
}

static void vmm_ends(void)
{
	struct seen seen = { 0 };
	struct tiny t;
	struct uni_target *target = begin(&t, TINY_BRITTLE, 2, "ends");

	if (target == NULL)
		return;
	doomed = t.pid;
	(void)check(sample(target, false, 500, has_had_its_time, &seen) == -UNI_EGONE,
		"the end of the VMM is told");
	(void)check(seen.all >= 300, "after all samples: %lu", (unsigned long)seen.all);
	(void)check(!target->ops->alive(target), "it is not alive");
	uni_target_detach(target);
	tiny_end(&t);
}

/* Two guests of one run: programs are loaded once, and samples are kept apart. */
static void shared(void)
{
	struct uni_target_shared *both = uni_target_shared_create();
	struct uni_target *a = NULL, *b = NULL;
	struct seen sa = { 0 }, sb = { 0 };
	const struct uni_stream_sink ka = { .ctx = &sa, .sample = on_sample };
	const struct uni_stream_sink kb = { .ctx = &sb, .sample = on_sample };
	const struct uni_stream_cfg cfg = { .frequency = 997 };
	struct uni_stream_stats st = { 0 };
	struct uni_err err = { 0 };
	uint64_t end_ns = uni_now_ns() + PATIENCE_NS;
	struct tiny ta, tb;
	bool ok = true;

	if (!check(tiny_start(&ta, TINY_BRITTLE, 1) && tiny_start(&tb, TINY_SLEEPS, 1) &&
			    began(&ta, 1) && began(&tb, 1),
		    "two VMMs"))
		return;
	if (check(attach(&ta, "bpf", both, &a, &err) == 0 &&
			    attach(&tb, "bpf", both, &b, &err) == 0,
		    "both attached %s", err.msg)) {
		(void)check(a->ops->stream_start(a, &cfg, NULL, &err) == 0 &&
				    b->ops->stream_start(b, &cfg, NULL, &err) == 0,
			"both started %s", err.msg);
		while (ok && uni_now_ns() < end_ns &&
			(sa.state[UNI_VCPU_RUNNING] <= 50 || sb.state[UNI_VCPU_HALTED] <= 200)) {
			(void)usleep(500000);
			ok = b->ops->stream_read(b, &kb) == 0 && a->ops->stream_read(a, &ka) == 0;
		}
		(void)check(ok, "both read");
		(void)check(
			sa.state[UNI_VCPU_RUNNING] > 50 && sa.state[UNI_VCPU_HALTED] < sa.all / 10,
			"the busy one is busy");
		(void)check(
			sb.state[UNI_VCPU_RUNNING] < sb.all / 10 && sb.state[UNI_VCPU_HALTED] > 200,
			"the idle one is idle");
		a->ops->stream_stats(a, &st);
		(void)check(st.lost == 0 && st.failed == 0, "nothing is lost");
		/* Only an absurd price fails: this host may itself be a guest that waits. */
		(void)check(st.host_runs > 50 && st.host_ns / st.host_runs < UNI_NSEC_PER_MSEC,
			"%.2f us a sample",
			(double)st.host_ns / 1e3 / (double)uni_max(st.host_runs, 1u));
	}
	uni_target_detach(a);
	uni_target_detach(b);
	uni_target_shared_destroy(both);
	(void)check(lives(&ta) && lives(&tb), "no VMM noticed");
	tiny_end(&ta);
	tiny_end(&tb);
}

/* Numbers that the kernel gave to programs or maps of a process, from its fdinfo. */
static size_t ids_of(pid_t pid, const char *key, uint32_t *ret)
{
	char path[300], line[256];
	const struct dirent *e;
	size_t nr = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, e->d_name);
		f = fopen(path, "re");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
			if (strncmp(line, key, strlen(key)) == 0 && nr < IDS_MAX)
				ret[nr++] = (uint32_t)strtoul(line + strlen(key), NULL, 10);
		}
		if (f != NULL)
			(void)fclose(f);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return nr;
}

static size_t still_there(int (*get)(uint32_t id), const uint32_t *id, size_t nr)
{
	size_t left = 0;

	for (size_t i = 0; i < nr; i++) {
		int fd = get(id[i]);

		if (fd < 0)
			continue;
		left++;
		(void)close(fd);
	}
	return left;
}

static void killed(void)
{
	uint32_t prog[IDS_MAX], map[IDS_MAX];
	size_t nr_prog = 0, nr_map = 0, left = 1;
	uint64_t end_ns = uni_now_ns() + 2 * PATIENCE_NS;
	struct uni_err err = { 0 };
	struct tiny t;
	pid_t pid;

	if (!check(tiny_start(&t, TINY_BRITTLE, 2), "a VMM whose profiler is killed"))
		return;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct uni_target *target = NULL;
		struct seen seen = { 0 };

		if (attach(&t, "bpf", NULL, &target, &err) == 0)
			(void)sample(target, true, 600000, NULL, &seen);
		_exit(1);
	}
	while ((nr_prog < 2 || nr_map < 10) && uni_now_ns() < end_ns) {
		(void)usleep(20000);
		nr_prog = ids_of(pid, "prog_id:", prog);
		nr_map = ids_of(pid, "map_id:", map);
	}
	(void)check(
		nr_prog >= 2 && nr_map >= 10 && still_there(bpf_prog_get_fd_by_id, prog, 1) == 1,
		"%zu programs and %zu maps are in the kernel", nr_prog, nr_map);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	while (left != 0 && uni_now_ns() < end_ns) { /* the kernel takes its time */
		(void)usleep(20000);
		left = still_there(bpf_prog_get_fd_by_id, prog, nr_prog) +
		       still_there(bpf_map_get_fd_by_id, map, nr_map);
	}
	(void)check(left == 0, "none after SIGKILL");
	(void)check(lives(&t) && tiny_runs(&t, 0) && tiny_runs(&t, 1), "and the guest runs");
	tiny_end(&t);
}

int main(void)
{
	need("kvm");
	need("bpf");
	all_vcpus(false);
	all_vcpus(true);
	sleeper();
	in_vmm();
	plugged_in();
	vmm_ends();
	shared();
	killed();
	(void)printf("1..%u\n", nr_checks);
	return nr_failed == 0 ? 0 : 1;
}
