/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/tclock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "base/tsc.h"

#define APART_NS     (200 * UNI_NSEC_PER_MSEC) /* of two points that tell a frequency */
#define LOOKS_MAX    256
#define STILL_NS     (200 * UNI_NSEC_PER_USEC) /* without a record: nobody records */
#define GUEST_HZ_OFF 100 /* one in so many: by which a guest's own frequency may be wrong */
#define HZ_MIN	     UNI_NSEC_PER_MSEC /* a slower counter is none: the guest tells nonsense */
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

static void read_offsets(struct uni_tclock *c, int pid, unsigned nr_cpus, const char *debugfs)
{
	char dir[256], prefix[16];
	const struct dirent *e;
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%s/kvm", debugfs);
	(void)snprintf(prefix, sizeof(prefix), "%d-", pid);
	d = opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		for (unsigned i = 0; i < nr_cpus; i++)
			c->has_offset[i] = read_offset(debugfs, e->d_name, i, &c->offset[i]);
	}
	if (d != NULL)
		(void)closedir(d);
}

void uni_tclock_open(struct uni_tclock *c, int pid, unsigned nr_cpus, const char *debugfs)
{
	uint64_t width;

	memset(c, 0, sizeof(*c));
	c->host_ns = read_both(&c->host_tsc, &width);
	if (pid > 0 && c->host_tsc != 0)
		read_offsets(c, pid, uni_min(nr_cpus, (unsigned)UNI_VCPU_MAX),
			debugfs != NULL ? debugfs : "/sys/kernel/debug");
}

static uint64_t width(const struct uni_tclock_point *p)
{
	return p->to_ns - p->from_ns;
}

/* Of those near the first one, and of those after it, the narrowest. */
void uni_tclock_add(struct uni_tclock *c, unsigned cpu, const struct uni_tclock_point *p)
{
	struct uni_tclock_point *first = &c->first[cpu], *last = &c->last[cpu];
	bool begins = p->to_ns < first->to_ns || p->to_ns - first->to_ns < APART_NS;

	if (first->to_ns == 0 || (begins && width(p) < width(first)))
		*first = *p;
	/* An older one serves a frequency less well: it has to be much narrower to stay. */
	else if (!begins && (last->to_ns == 0 || width(p) / 4 <= width(last)))
		*last = *p;
}

/* Whether the ring has a newer record than it had at *before_ns, when it was *was; both move on. */
static int look_once(struct uni_ring *r, unsigned cpu, uint64_t *was, uint64_t *before_ns,
	struct uni_tclock_point *best)
{
	uint64_t from = uni_now_ns(), to;
	struct uni_ring_now now;
	int rc = uni_ring_now(r, cpu, &now);

	if (rc != 0)
		return rc;
	if (!now.sure) { /* the next one may see a record that was there already */
		*before_ns = 0;
		return 0;
	}
	to = uni_now_ns();
	if (*before_ns != 0 && now.timed && now.time > *was &&
		(best->to_ns == 0 || to - *before_ns < width(best)))
		*best = (struct uni_tclock_point){ now.time, *before_ns, to };
	*was = uni_max(*was, now.time);
	*before_ns = from;
	return 0;
}

bool uni_tclock_look(struct uni_tclock *c, struct uni_ring *r, unsigned cpu, uint64_t most_ns)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	uint64_t begin = uni_now_ns(), before = 0, was = 0;
	struct uni_tclock_point best = { 0 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < LOOKS_MAX; i++) {
		rc = look_once(r, cpu, &was, &before, &best);
		if (uni_now_ns() - begin > (best.to_ns != 0 ? most_ns : STILL_NS))
			break;
	}
	/* On a busy host the guest may run only while we do not. */
	for (int i = 0; rc == 0 && best.to_ns == 0 && i < NAPS_MAX; i++) {
		(void)nanosleep(&nap, NULL);
		rc = look_once(r, cpu, &was, &before, &best);
	}
	if (best.to_ns != 0)
		uni_tclock_add(c, cpu, &best);
	return best.to_ns != 0;
}

/* By two reads of both clocks: that of the host's own counter. */
static uint64_t host_hz(const struct uni_tclock *c, uint64_t *error_ns)
{
	uint64_t tsc, wide, ns = read_both(&tsc, &wide);

	*error_ns = 2 * wide;
	if (c->host_tsc == 0 || tsc <= c->host_tsc || ns - c->host_ns < APART_NS / 4)
		return 0;
	return (uint64_t)((unsigned __int128)(tsc - c->host_tsc) * UNI_NSEC_PER_SEC /
			  (ns - c->host_ns));
}

static void by_offset(
	const struct uni_tclock *c, unsigned cpu, uint64_t guest_hz, struct uni_record_clock *ret)
{
	uint64_t error, hz = host_hz(c, &error);

	ret->cycles = c->host_tsc + c->offset[cpu];
	ret->ns = c->host_ns;
	ret->hz = hz != 0 ? hz : guest_hz;
	ret->error_ns = hz != 0 ? error : UINT64_MAX;
	(void)snprintf(ret->source, sizeof(ret->source), "tsc-offset");
}

/* The frequency of two points that are far enough apart; 0: they are not. */
static uint64_t points_hz(const struct uni_tclock_point *a, const struct uni_tclock_point *b)
{
	uint64_t ns = b->to_ns - a->to_ns;

	if (b->to_ns == 0 || b->cycles <= a->cycles || ns < APART_NS)
		return 0;
	return (uint64_t)((unsigned __int128)(b->cycles - a->cycles) * UNI_NSEC_PER_SEC / ns);
}

static bool near(uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart <= a / GUEST_HZ_OFF;
}

static void by_ring(
	const struct uni_tclock *c, unsigned cpu, uint64_t guest_hz, struct uni_record_clock *ret)
{
	const struct uni_tclock_point *a = &c->first[cpu], *b = &c->last[cpu];
	uint64_t ignored, hz = points_hz(a, b), own = host_hz(c, &ignored);

	ret->cycles = a->cycles;
	ret->ns = a->to_ns - width(a) / 2;
	ret->error_ns = width(a);
	/* A counter that is the host's, moved, has the host's frequency, which is known better. */
	if (own != 0 && near(own, hz != 0 ? hz : guest_hz)) {
		ret->hz = own;
		if (b->to_ns != 0)
			ret->error_ns = uni_max(ret->error_ns, width(b));
	} else if (hz != 0) {
		ret->hz = hz;
		ret->error_ns = uni_max(width(a), width(b));
	} else {
		ret->hz = guest_hz;
		ret->error_ns = UINT64_MAX;
	}
	(void)snprintf(ret->source, sizeof(ret->source), "ring");
}

void uni_tclock_result(const struct uni_tclock *c, const struct uni_ring_info *info, unsigned cpu,
	struct uni_record_clock *ret)
{
	uint64_t guest_hz = info->tsc_hz >= HZ_MIN ? info->tsc_hz : UNI_NSEC_PER_SEC;

	*ret = (struct uni_record_clock){ .hz = guest_hz, .error_ns = UINT64_MAX };
	if (c->has_offset[cpu])
		by_offset(c, cpu, guest_hz, ret);
	else if (c->first[cpu].to_ns != 0)
		by_ring(c, cpu, guest_hz, ret);
	else
		(void)snprintf(ret->source, sizeof(ret->source), "%s",
			info->tsc_hz >= HZ_MIN ? "guest" : "none");
	if (ret->hz < HZ_MIN) {
		ret->hz = guest_hz;
		ret->error_ns = UINT64_MAX;
	}
}
