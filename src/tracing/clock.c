/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/clock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/door.h"
#include "base/io.h"
#include "base/text.h"
#include "base/tsc.h"

#define APART_NS     (200 * UNI_NSEC_PER_MSEC) /* of two points that determine a frequency */
#define SETTLED_NS   (APART_NS / 4) /* of two looks at the host's own, which are narrow */
#define LOOKS_MAX    256
#define STILL_NS     (200 * UNI_NSEC_PER_USEC) /* without a record: nothing is recorded */
#define GUEST_HZ_OFF 100 /* one part in so many: possible error of a guest's own frequency */
#define HZ_MIN	     UNI_NSEC_PER_MSEC /* a slower counter is invalid */
#define HOST_READS   16
#define NAPS_MAX     3
#define NAP_NS	     (100 * UNI_NSEC_PER_USEC)

/* Both host clocks at one moment; *width_ret: how long that took. */
static uint64_t read_both(uint64_t *tsc_ret, uint64_t *width_ret)
{
	uint64_t best = UINT64_MAX, ns = 0;

	for (int i = 0; i < HOST_READS; i++) {
		uint64_t before = uni_now_ns(), tsc = uni_host_tsc(), after = uni_now_ns();

		if (after - before >= best)
			continue;
		best = after - before;
		ns = before + best / 2;
		*tsc_ret = tsc;
	}
	*width_ret = best;
	return ns;
}

/* "-123456" of kvm/PID-FD/vcpuN/tsc-offset. */
static bool read_offset(const char *dir, const char *vm, unsigned cpu, uint64_t *ret)
{
	char path[512], text[32];
	uint64_t v;
	int n;

	(void)snprintf(path, sizeof(path), "%s/kvm/%s/vcpu%u/tsc-offset", dir, vm, cpu);
	n = uni_read_small(path, text, sizeof(text));
	if (n <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	if (!uni_parse_u64(text + (text[0] == '-'), &v))
		return false;
	*ret = text[0] == '-' ? (uint64_t)0 - v : v;
	(void)snprintf(path, sizeof(path), "%s/kvm/%s/vcpu%u/tsc-scaling-ratio", dir, vm, cpu);
	/* 1, in as many bits of fraction as the CPU has; another one would need these. */
	n = uni_read_small(path, text, sizeof(text));
	if (n <= 0)
		return true; /* it cannot be scaled */
	text[strcspn(text, "\n")] = '\0';
	return uni_parse_u64(text, &v) && (v == 1ull << 48 || v == 1ull << 32);
}

static void read_offsets(struct uni_tclock *c, int pid, const char *debugfs)
{
	char dir[256], prefix[16];
	const struct dirent *e;
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%s/kvm", debugfs);
	(void)snprintf(prefix, sizeof(prefix), "%d-", pid);
	d = uni_door_opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		for (unsigned i = 0; i < c->nr_cpus; i++)
			c->cpu[i].has_offset =
				read_offset(debugfs, e->d_name, i, &c->cpu[i].offset);
	}
	if (d != NULL)
		(void)closedir(d);
}

int uni_tclock_open(
	struct uni_tclock *c, int pid, unsigned nr_cpus, const char *debugfs, struct uni_err *err)
{
	uint64_t width;

	uni_tclock_close(c);
	c->cpu = calloc(nr_cpus, sizeof(*c->cpu));
	if (c->cpu == NULL)
		return uni_err_nomem(err);
	c->nr_cpus = nr_cpus;
	c->has_vmm = pid > 0;
	c->host_ns = read_both(&c->host_tsc, &width);
	if (pid > 0 && c->host_tsc != 0)
		read_offsets(c, pid, debugfs != NULL ? debugfs : "/sys/kernel/debug");
	return 0;
}

void uni_tclock_close(struct uni_tclock *c)
{
	free(c->cpu);
	*c = (struct uni_tclock){ 0 };
}

/*
 * A guest's vCPU may be descheduled for long between its read of the counter and its write of the
 * record. So a record that is new at this look may have a time from before the last look. Only the
 * end of such an interval is sure. But a CPU's records are written one after the other, and a
 * record's time is read after the record before it was written. So the newest record's time was
 * read after any look at which the record before it was missing.
 */
int uni_tclock_look_once(
	struct uni_ring *r, unsigned cpu, struct uni_tclock_look *l, struct uni_tclock_point *ret)
{
	uint64_t from = uni_now_ns(), not_before;
	struct uni_ring_now now;
	int rc = uni_ring_now(r, cpu, &now);

	ret->to_ns = 0;
	if (rc != 0)
		return rc;
	if (!now.sure) { /* the next one may see a record that was there already */
		l->before_ns = l->since_ns = 0;
		return 0;
	}
	if (l->before_ns != 0 && now.timed && now.time > l->was) {
		not_before = now.before > l->was ? l->before_ns : l->since_ns;
		if (not_before != 0)
			*ret = (struct uni_tclock_point){ now.time, not_before, uni_now_ns() };
		l->since_ns = l->before_ns;
	}
	if (now.time > l->was) {
		l->was = now.time;
		l->seen_ns = uni_now_ns();
	}
	l->before_ns = from;
	return 0;
}

struct found {
	struct uni_tclock_point best, early, late;
};

static int look_at_clocks(
	struct uni_ring *r, unsigned cpu, struct uni_tclock_look *l, struct found *f)
{
	struct uni_tclock_point p;
	int rc = uni_tclock_look_once(r, cpu, l, &p);

	if (rc != 0 || p.to_ns == 0)
		return rc;
	if (f->best.to_ns == 0 || p.to_ns - p.from_ns < f->best.to_ns - f->best.from_ns)
		f->best = p;
	f->early = f->early.to_ns == 0 ? p : f->early;
	f->late = p;
	return 0;
}

void uni_tclock_add(struct uni_tclock *c, unsigned cpu, const struct uni_tclock_point *p)
{
	uni_tclock_keep(&c->cpu[cpu].points, p);
}

bool uni_tclock_look(struct uni_tclock *c, struct uni_ring *r, unsigned cpu, uint64_t most_ns)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	uint64_t begin = uni_now_ns();
	struct uni_tclock_look l = { 0 };
	struct found f = { 0 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < LOOKS_MAX; i++) {
		rc = look_at_clocks(r, cpu, &l, &f);
		if (uni_now_ns() - begin > (f.best.to_ns != 0 ? most_ns : STILL_NS))
			break;
	}
	/* On a busy host the guest may run only while we do not. */
	for (int i = 0; rc == 0 && f.best.to_ns == 0 && i < NAPS_MAX; i++) {
		(void)nanosleep(&nap, NULL);
		rc = look_at_clocks(r, cpu, &l, &f);
	}
	if (l.was > c->cpu[cpu].seen_cycles) {
		c->cpu[cpu].seen_cycles = l.was;
		c->cpu[cpu].seen_ns = l.seen_ns;
	}
	if (f.best.to_ns == 0)
		return false;
	uni_tclock_add(c, cpu, &f.early);
	uni_tclock_add(c, cpu, &f.best);
	uni_tclock_add(c, cpu, &f.late);
	return true;
}

void uni_tclock_settle(const struct uni_tclock *c)
{
	uint64_t passed = uni_now_ns() - c->host_ns;
	struct timespec nap;
	bool known = c->has_vmm;

	for (unsigned i = 0; i < c->nr_cpus; i++)
		known |= c->cpu[i].has_offset || c->cpu[i].points.nr != 0;
	if (!known || c->host_tsc == 0 || passed > SETTLED_NS)
		return;
	nap = uni_ns_timespec(SETTLED_NS + NAP_NS - passed);
	(void)nanosleep(&nap, NULL);
}

/* By two reads of both clocks: that of the host's own counter. */
static uint64_t host_hz(const struct uni_tclock *c, uint64_t *error_ns)
{
	uint64_t tsc, wide, ns = read_both(&tsc, &wide);

	*error_ns = 2 * wide;
	if (c->host_tsc == 0 || tsc <= c->host_tsc || ns - c->host_ns < SETTLED_NS)
		return 0;
	return (uint64_t)((unsigned __int128)(tsc - c->host_tsc) * UNI_NSEC_PER_SEC /
			  (ns - c->host_ns));
}

static void by_offset(
	const struct uni_tclock *c, unsigned cpu, uint64_t guest_hz, struct uni_record_clock *ret)
{
	uint64_t error, hz = host_hz(c, &error);

	ret->cycles = c->host_tsc + c->cpu[cpu].offset;
	ret->ns = c->host_ns;
	ret->hz = hz != 0 ? hz : guest_hz;
	ret->error_ns = hz != 0 ? error : UINT64_MAX;
	(void)snprintf(ret->source, sizeof(ret->source), "tsc-offset");
}

static bool is_near_hz(uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart <= a / GUEST_HZ_OFF;
}

#define SAME_NS UNI_NSEC_PER_MSEC /* that a counter which is not the host's cannot be near it */

/* Is it the host's own, that was not moved? Then it was this then. */
static bool is_hosts(const struct uni_tclock *c, const struct uni_tclock_fit *f, uint64_t hz)
{
	__int128 ns = (__int128)f->ns - c->host_ns;
	__int128 off = (__int128)f->cycles - c->host_tsc - ns * hz / UNI_NSEC_PER_SEC;
	__int128 most = (__int128)(2 * f->half_ns + SAME_NS) * hz / UNI_NSEC_PER_SEC;

	return hz != 0 && off <= most && off >= -most;
}

#define SHARP	   100 /* points determine a frequency to 1 % */
#define SLACK_BITS 13  /* 0.012 %: possible error of stated frequencies */
#define MANY	   4   /* points that overrule two that agree */

/* Does the counter go at the host's frequency? *sure_ret: something bears it out. */
static bool goes_as_hosts(const struct uni_tclock *c, unsigned cpu, uint64_t guest_hz, uint64_t own,
	struct uni_tclock_fit *fit, bool *sure_ret)
{
	const struct uni_tclock_points *p = &c->cpu[cpu].points;

	if (!uni_tclock_fit_at(p, own, SLACK_BITS, fit) || fit->stepped)
		return false;
	*sure_ret = is_near_hz(own, guest_hz) || is_hosts(c, fit, own) ||
		    uni_tclock_sharpness(p) >= SHARP;
	return *sure_ret || c->has_vmm;
}

/* For points that match neither the host's frequency nor the guest's. */
static uint64_t by_points(const struct uni_tclock *c, unsigned cpu, uint64_t guest_hz, uint64_t own,
	struct uni_tclock_fit *fit)
{
	const struct uni_tclock_points *p = &c->cpu[cpu].points;
	uint64_t hz = uni_tclock_slope(p, APART_NS / 2);

	if (own != 0 && is_near_hz(own, guest_hz) && p->nr < MANY)
		return 0;
	return hz >= HZ_MIN && uni_tclock_fit_at(p, hz, SLACK_BITS, fit) ? hz : 0;
}

static void by_ring(
	const struct uni_tclock *c, unsigned cpu, uint64_t guest_hz, struct uni_record_clock *ret)
{
	const struct uni_tclock_points *p = &c->cpu[cpu].points;
	const struct uni_tclock_point *narrow = uni_tclock_narrowest(p);
	uint64_t wide, hz, own = host_hz(c, &wide);
	struct uni_tclock_fit fit = { .cycles = narrow->cycles,
		.ns = narrow->from_ns + (narrow->to_ns - narrow->from_ns) / 2 };
	bool sure;

	ret->error_ns = UINT64_MAX;
	ret->hz = own != 0 && is_near_hz(own, guest_hz) ? own : guest_hz;
	if (goes_as_hosts(c, cpu, guest_hz, own, &fit, &sure)) {
		ret->hz = own;
		if (sure)
			ret->error_ns = fit.half_ns + wide;
	} else if (uni_tclock_span(p) >= APART_NS / 2 &&
		   uni_tclock_fit_at(p, guest_hz, SLACK_BITS, &fit) && !fit.stepped) {
		ret->hz = guest_hz;
		ret->error_ns = fit.error_ns;
	} else if ((hz = by_points(c, cpu, guest_hz, own, &fit)) != 0) {
		ret->hz = hz;
		ret->error_ns = fit.error_ns;
	}
	if (fit.stepped)
		ret->error_ns = UINT64_MAX;
	ret->cycles = fit.cycles;
	ret->ns = fit.ns;
	(void)snprintf(ret->source, sizeof(ret->source), "ring");
}

static void by_frequency(const struct uni_tclock *c, unsigned cpu, bool told, uint64_t guest_hz,
	struct uni_record_clock *ret)
{
	uint64_t wide, own = c->has_vmm ? host_hz(c, &wide) : 0;
	bool is_host = own != 0 && !is_near_hz(own, guest_hz);

	if (is_host)
		ret->hz = own;
	ret->cycles = c->cpu[cpu].seen_cycles;
	ret->ns = c->cpu[cpu].seen_ns;
	(void)snprintf(ret->source, sizeof(ret->source), "%s",
		is_host ? "host"
		: told	? "guest"
			: "none");
}

void uni_tclock_result(const struct uni_tclock *c, const struct uni_ring_info *info, unsigned cpu,
	struct uni_record_clock *ret)
{
	uint64_t guest_hz = info->tsc_hz >= HZ_MIN ? info->tsc_hz : UNI_NSEC_PER_SEC;

	*ret = (struct uni_record_clock){ .hz = guest_hz, .error_ns = UINT64_MAX };
	if (c->cpu[cpu].has_offset)
		by_offset(c, cpu, guest_hz, ret);
	else if (c->cpu[cpu].points.nr != 0)
		by_ring(c, cpu, guest_hz, ret);
	else
		by_frequency(c, cpu, info->tsc_hz >= HZ_MIN, guest_hz, ret);
	if (ret->hz < HZ_MIN) {
		ret->hz = guest_hz;
		ret->error_ns = UINT64_MAX;
	}
}
