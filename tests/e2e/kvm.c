/* SPDX-License-Identifier: BSD-2-Clause */
/* The kvm target on VMMs that would not forgive a mistake. TAP. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/vcpus.h"
#include "base/checked.h"
#include "backend/target.h"
#include "tap.h"
#include "tinyvmm.h"

static int try_attach(
	const struct tiny *t, const char *method, struct uni_target **ret, struct uni_err *err)
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

	(void)snprintf(s, sizeof(s), "kvm:pid=%d,via=%s", (int)t->pid, method);
	rc = uni_spec_parse(s, &spec, err);
	return rc != 0 ? rc : uni_target_attach(&spec, &opts, ret, err);
}

static struct uni_target *attach(const struct tiny *t, const char *method)
{
	struct uni_target *target = NULL;
	struct uni_err err = { 0 };

	if (try_attach(t, method, &target, &err) == 0)
		return target;
	(void)check(false, "attach: %s", err.msg);
	return NULL;
}

static bool lives(const struct tiny *t)
{
	if (atomic_load(&t->shared->failed) == 0 && waitpid(t->pid, NULL, WNOHANG) == 0)
		return true;
	(void)printf("# the VMM gave up: %s\n", strerror(atomic_load(&t->shared->failed)));
	return false;
}

static bool in_code(const struct uni_regs *r)
{
	return r->pc_valid && uni_range_has(TINY_CODE, 8, r->pc) && r->r[UNI_X86_RSP] == 0x7000;
}

/* n samples; how many had registers that lie in the guest's loop. */
static unsigned sample(struct uni_target *target, uint64_t mask, unsigned n)
{
	struct uni_regs r[TINY_VCPUS];
	unsigned good = 0;

	for (unsigned k = 0; k < n; k++) {
		bool ok = target->ops->snap(target, VCPUS(mask), r, k % 2 ? UNI_SNAP_HOLD : 0) == 0;

		for (unsigned i = 0; ok && i < TINY_VCPUS; i++)
			ok = (mask >> i & 1) == 0 || in_code(&r[i]);
		good += ok;
		(void)target->ops->release(target);
		(void)usleep(500);
	}
	return good;
}

/* VMMs that are busy: none may notice, whatever it thinks of EINTR. */
static void busy(enum tiny_mode mode, const char *name, const char *method)
{
	struct uni_target *target;
	struct tiny t;
	unsigned good;

	if (!check(tiny_start(&t, mode, 1), "%s, %s: a VMM starts", name, method))
		return;
	target = attach(&t, method);
	if (target != NULL) {
		good = sample(target, 1, 300);
		/* One that is mostly outside of KVM_RUN still has its last exit's registers. */
		(void)check(good >= 297, "%s, %s: %u of 300 samples", name, method, good);
		uni_target_detach(target);
	}
	(void)check(lives(&t) && tiny_runs(&t, 0), "%s, %s: the VMM never noticed", name, method);
	tiny_end(&t);
}

static bool all_stand(struct tiny *t)
{
	uint32_t before[TINY_VCPUS];

	for (unsigned i = 0; i < TINY_VCPUS; i++)
		before[i] = tiny_counter(t, i);
	(void)usleep(50000);
	for (unsigned i = 0; i < TINY_VCPUS; i++) {
		if (tiny_counter(t, i) != before[i])
			return false;
	}
	return true;
}

static void groups(void)
{
	struct uni_regs r[TINY_VCPUS];
	struct uni_target *target;
	bool distinct = true, run = true;
	struct tiny t;

	if (!check(tiny_start(&t, TINY_BRITTLE, TINY_VCPUS), "4 vCPUs start"))
		return;
	target = attach(&t, "stop");
	if (target == NULL) {
		tiny_end(&t);
		return;
	}
	(void)check(target->ops->nr_vcpus(target) == TINY_VCPUS, "4 vCPUs are seen");
	(void)check(sample(target, 15, 50) >= 49, "all are sampled together");
	(void)check(target->ops->snap(target, VCPUS(15), r, UNI_SNAP_HOLD) == 0 && all_stand(&t),
		"all stand in a hold");
	for (unsigned i = 0; i < TINY_VCPUS; i++)
		distinct = distinct && r[i].r[UNI_X86_RSI] == TINY_COUNTERS + 64 * i;
	(void)check(distinct, "each vCPU has its own registers, in order");
	(void)check(target->ops->release(target) == 0, "release");
	for (unsigned i = 0; i < TINY_VCPUS; i++)
		run = run && tiny_runs(&t, i);
	(void)check(run, "all run after it");
	(void)check(
		target->ops->snap(target, VCPUS(4), r, UNI_SNAP_HOLD) == 0, "vCPU 2 alone is held");
	(void)check(tiny_runs(&t, 0) && tiny_runs(&t, 1) && tiny_runs(&t, 3), "the others run");
	uni_target_detach(target);
	(void)check(tiny_runs(&t, 2) && lives(&t), "and it, after detach");
	tiny_end(&t);
}

/* A tender asleep in its own epoll_wait() must not be woken, and still has registers. */
static void sleeper(void)
{
	struct uni_target *target;
	struct uni_regs r;
	struct tiny t;
	unsigned good = 0;

	if (!check(tiny_start(&t, TINY_SLEEPS, 1), "a VMM that sleeps starts"))
		return;
	while (atomic_load(&t.shared->sleeps) == 0)
		(void)usleep(1000);
	target = attach(&t, "stop");
	if (target == NULL) {
		tiny_end(&t);
		return;
	}
	(void)check(target->ops->snap(target, VCPUS(1), &r, 0) == -UNI_EAGAIN,
		"no registers before its next exit");
	atomic_store(&t.shared->wake, true);
	while (lives(&t) && atomic_load(&t.shared->sleeps) < 2)
		(void)usleep(1000);
	(void)usleep(20000);
	for (unsigned i = 0; i < 200; i++) {
		good += target->ops->snap(target, VCPUS(1), &r, UNI_SNAP_HOLD) == 0 &&
			in_code(&r) && r.state == UNI_VCPU_HALTED;
		(void)target->ops->release(target);
	}
	/* Now and then it is awake, between two of its epoll_wait(). */
	(void)check(good >= 180, "asleep: %u of 200 samples, halted", good);
	(void)check(lives(&t), "it was never woken");
	(void)check(target->ops->alive(target), "it is alive");
	uni_target_detach(target);
	tiny_end(&t);
}

/* Settings that the VMM made itself must be there afterwards. */
static void own_use(void)
{
	struct uni_target *target;
	struct tiny t;

	if (!check(tiny_start(&t, TINY_SYNCS, 1), "a VMM that uses sync registers starts"))
		return;
	target = attach(&t, "stop");
	if (target != NULL) {
		struct uni_target_info info = { 0 };

		target->ops->info(target, &info);
		(void)check(strstr(info.note, "kvm_run mapped") != NULL,
			"its registers are mapped: %s", info.note);
		(void)check(sample(target, 1, 20) >= 19, "it is sampled");
		uni_target_detach(target);
	}
	target = attach(&t, "stop"); /* and again, as it was found */
	(void)check(target != NULL && sample(target, 1, 20) >= 19, "twice");
	uni_target_detach(target);
	(void)check(lives(&t) && tiny_runs(&t, 0), "it runs on");
	tiny_end(&t);
}

static void refusals(void)
{
	struct uni_target *target = NULL;
	struct uni_err err = { 0 };
	struct tiny t, nobody = { .pid = getpid(), .mode = TINY_BRITTLE };
	int rc;

	rc = try_attach(&nobody, "stop", &target, &err);
	(void)check(rc == -UNI_EINVAL && strstr(err.msg, "is no VMM") != NULL, "%s", err.msg);
	memset(&err, 0, sizeof(err));
	nobody.pid = INT32_MAX;
	rc = try_attach(&nobody, "stop", &target, &err);
	(void)check(rc == -UNI_EGONE, "%s", err.msg);
	if (!check(tiny_start(&t, TINY_KICKED, 1), "a VMM to be refused starts"))
		return;
	memset(&err, 0, sizeof(err));
	t.mode = TINY_SLEEPS; /* another image */
	rc = try_attach(&t, "stop", &target, &err);
	(void)check(rc == -UNI_EMISMATCH, "%s", err.msg);
	tiny_end(&t);
}

static void other_tracer(void)
{
	struct uni_target *target = NULL;
	struct uni_err err = { 0 };
	struct tiny t;
	int rc;

	if (!check(tiny_start(&t, TINY_BRITTLE, 1), "a VMM to be traced starts"))
		return;
	(void)usleep(20000);
	if (ptrace(PTRACE_SEIZE, t.pid, NULL, NULL) == 0) {
		rc = try_attach(&t, "stop", &target, &err);
		(void)check(rc == -UNI_EBUSY, "%s", err.msg);
	}
	(void)check(lives(&t) && tiny_runs(&t, 0), "the traced VMM runs on");
	tiny_end(&t);
}

/* One that comes after us is named too, when snap() fails for it. */
static void later_tracer(void)
{
	struct uni_target *target;
	struct uni_err err = { 0 };
	struct uni_regs r;
	struct tiny t;

	if (!check(tiny_start(&t, TINY_BRITTLE, 1), "a VMM to be traced later starts"))
		return;
	target = attach(&t, "stop");
	if (target == NULL) {
		tiny_end(&t);
		return;
	}
	(void)check(target->ops->blocked(target, &err) == 0, "nobody is in the way");
	if (ptrace(PTRACE_SEIZE, t.pid, NULL, NULL) == 0) {
		(void)check(target->ops->snap(target, VCPUS(1), &r, 0) == -UNI_EAGAIN,
			"no sample then");
		(void)check(target->ops->blocked(target, &err) == -UNI_EBUSY &&
				    strstr(err.msg, "is being traced by e2e-kvm") != NULL,
			"%s", err.msg);
	}
	uni_target_detach(target);
	(void)check(lives(&t) && tiny_runs(&t, 0), "it runs on");
	tiny_end(&t);
}

/* Ctrl-Z, wherever it hits: the guest goes on, and the profiler stays stopped. */
static void stopped_profiler(void)
{
	struct uni_target *target;
	struct uni_regs r;
	struct tiny t;
	bool run = true, stays = true;
	int status = 0;
	pid_t pid;

	if (!check(tiny_start(&t, TINY_BRITTLE, 1), "a VMM of a stopped profiler starts"))
		return;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		target = attach(&t, "stop");
		for (unsigned i = 0; target != NULL && i < 3; i++) {
			bool ok = target->ops->snap(target, VCPUS(1), &r, UNI_SNAP_HOLD) == 0;

			(void)raise(SIGSTOP);
			if (!ok || target->ops->release(target) != 0 || !target->ops->alive(target))
				_exit(1);
		}
		uni_target_detach(target);
		_exit(target != NULL ? 0 : 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		(void)waitpid(pid, &status, WUNTRACED); /* in the hold */
		(void)usleep(1500000);
		run = run && tiny_runs(&t, 0);
		stays = stays && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
		(void)kill(pid, SIGCONT);
	}
	(void)waitpid(pid, &status, 0);
	(void)check(run, "the guest runs while its profiler is stopped in a hold");
	(void)check(stays, "the profiler is stopped again after it let go");
	(void)check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and can go on");
	(void)check(lives(&t) && tiny_runs(&t, 0), "the VMM never noticed");
	tiny_end(&t);
}

int main(void)
{
	need("kvm");
	busy(TINY_BRITTLE, "brittle", "sync");
	busy(TINY_BRITTLE, "brittle", "procmem");
	busy(TINY_EXITS, "exits", "sync");
	busy(TINY_EXITS, "exits", "procmem");
	busy(TINY_KICKED, "kicked", "sync");
	groups();
	sleeper();
	own_use();
	refusals();
	other_tracer();
	later_tracer();
	stopped_profiler();
	(void)printf("1..%u\n", nr_checks);
	return nr_failed == 0 ? 0 : 1;
}
