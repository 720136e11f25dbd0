/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conformance suite that each target passes. It needs a guest that runs (a lab guest booted
 * with wait=1, whose heartbeat rises all the time) and speaks TAP.
 */
#include "../support/vcpus.h"
#include "conformance.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"

static const char usage[] =
	"usage: conformance [options] TARGET      such as gdb:unix=/run/g.sock or kvm:pid=12\n"
	"  --image ELF     the guest's image: proves registers and memory, counts heartbeats\n"
	"  --vmm PID       the VMM process, when the target cannot tell\n"
	"  --beside TARGET a second way to the guest, to see it run where there is no VMM process\n"
	"  --domain DOM    Xen's: --gone destroys it by xl\n"
	"instead of the suite:\n"
	"  --gone STATE    kill the VMM in that state: attached held reading released\n"
	"  --operator QMP  somebody stops and resumes the guest at this monitor socket\n"
	"  --kill N        kill -9 a profiler at N random instants; prints how often the guest "
	"ran on\n"
	"  --kill-held N   the same, in N holds\n"
	"  --hold          says \"held\" in a hold, and stays there\n"
	"  --bench N       pauses of N samples\n"
	"  --hz F          at this frequency (100)\n";

bool check(struct suite *s, bool ok, const char *fmt, ...)
{
	va_list ap;

	s->nr++;
	s->failed += !ok;
	(void)printf("%sok %u - ", ok ? "" : "not ", s->nr);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)printf("\n");
	(void)fflush(stdout);
	return ok;
}

void skip(struct suite *s, const char *what, const char *why)
{
	s->nr++;
	(void)printf("ok %u - %s # SKIP %s\n", s->nr, what, why);
}

bool is_file(const struct suite *s)
{
	return is_recording(s) || strcmp(s->spec.scheme, "core") == 0;
}

unsigned caps_wanted(const struct suite *s)
{
	return strcmp(s->spec.scheme, "core") != 0 ? UNI_CAP_HOLD | UNI_CAP_SYSREGS
						   : UNI_CAP_SYSREGS;
}

bool is_recording(const struct suite *s)
{
	return strcmp(s->spec.scheme, "replay") == 0;
}

struct uni_target *attach(struct suite *s)
{
	struct uni_target *t = NULL;
	struct uni_err err = { 0 };

	if (uni_target_attach(&s->spec, &s->opts, &t, &err) == 0)
		return t;
	(void)check(s, false, "attach: %s", err.msg);
	return NULL;
}

int hold(struct uni_target *t, struct uni_regs *regs)
{
	unsigned flags = (t->ops->caps(t) & UNI_CAP_HOLD) != 0 ? UNI_SNAP_HOLD : 0;
	const uint64_t until_ns = uni_now_ns() + HOLD_NS;
	int rc;

	while ((rc = t->ops->snap(t, VCPUS(1), regs, flags)) == -UNI_EAGAIN &&
		uni_now_ns() < until_ns)
		(void)usleep(2000);
	return rc;
}

static bool set_up(struct suite *s, const char *target, const char *image, const char *beside)
{
	struct uni_target_info info;
	struct uni_err err = { 0 };

	if (uni_spec_parse(target, &s->spec, &err) != 0 ||
		uni_target_probe(&s->spec, &info, &err) != 0) {
		(void)fprintf(stderr, "conformance: %s\n", err.msg);
		return false;
	}
	if (image != NULL && !observer_load(&s->obs, image))
		return false;
	s->opts = (struct uni_attach_opts){ .text = s->obs.text, .nr_text = s->obs.nr_text };
	if (s->vmm == 0)
		s->vmm = info.pid;
	if (beside != NULL)
		return observer_attach_beside(&s->obs, beside);
	/* A guest that runs in a process can be observed: else nothing would be judged. */
	return image == NULL || s->vmm == 0 || is_file(s) || observer_attach(&s->obs, s->vmm);
}

static bool run_suite(struct suite *s)
{
	test_basics(s);
	test_memory(s);
	test_kill(s);
	test_guardian_kill(s);
	test_sleep(s);
	(void)printf("1..%u\n", s->nr);
	return s->failed == 0;
}

static bool run_kills(unsigned (*kills)(struct suite *s, unsigned n), struct suite *s, unsigned n)
{
	unsigned alive = kills(s, n);

	(void)printf("%u of %u survived\n", alive, n);
	return alive == n;
}

static unsigned number(const char *text)
{
	uint64_t v;

	if (uni_parse_u64(text, &v) && v <= 1000000000)
		return (unsigned)v;
	(void)fprintf(stderr, "conformance: %s is not a number\n", text);
	exit(2);
}

struct choice {
	const char *image, *gone, *qmp, *beside;
	unsigned kills, holds, bench, hz;
	bool hold;
};

static bool parse(int argc, char **argv, struct choice *ret, struct suite *s)
{
	static const struct option longs[] = {
		{ "image", required_argument, NULL, 'i' },
		{ "vmm", required_argument, NULL, 'v' },
		{ "beside", required_argument, NULL, 's' },
		{ "domain", required_argument, NULL, 'd' },
		{ "gone", required_argument, NULL, 'g' },
		{ "operator", required_argument, NULL, 'o' },
		{ "kill", required_argument, NULL, 'k' },
		{ "kill-held", required_argument, NULL, 'h' },
		{ "hold", no_argument, NULL, 'H' },
		{ "bench", required_argument, NULL, 'b' },
		{ "hz", required_argument, NULL, 'f' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'i':
			ret->image = optarg;
			break;
		case 'v':
			s->vmm = (int)number(optarg);
			break;
		case 's':
			ret->beside = optarg;
			break;
		case 'd':
			s->domain = optarg;
			break;
		case 'g':
			ret->gone = optarg;
			break;
		case 'o':
			ret->qmp = optarg;
			break;
		case 'k':
			ret->kills = number(optarg);
			break;
		case 'h':
			ret->holds = number(optarg);
			break;
		case 'H':
			ret->hold = true;
			break;
		case 'b':
			ret->bench = number(optarg);
			break;
		case 'f':
			ret->hz = uni_max(number(optarg), 1u);
			break;
		default:
			return false;
		}
	}
	return optind == argc - 1;
}

int main(int argc, char **argv)
{
	struct choice choice = { .hz = 100 };
	struct suite s = { 0 };
	bool ok;

	if (!parse(argc, argv, &choice, &s)) {
		(void)fputs(usage, stderr);
		return 2;
	}
	if (!set_up(&s, argv[optind], choice.image, choice.beside))
		return 2;
	if (choice.gone != NULL)
		ok = vm_gone_in(&s, choice.gone);
	else if (choice.qmp != NULL)
		ok = operator_at(&s, choice.qmp);
	else if (choice.kills != 0)
		ok = run_kills(kill_at_random, &s, choice.kills);
	else if (choice.holds != 0)
		ok = run_kills(kill_in_hold, &s, choice.holds);
	else if (choice.hold)
		ok = hold_for_ever(&s);
	else if (choice.bench != 0)
		ok = bench_pauses(&s, choice.bench, choice.hz);
	else
		ok = run_suite(&s);
	observer_deinit(&s.obs);
	return ok ? 0 : 1;
}
