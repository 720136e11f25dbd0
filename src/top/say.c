/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "profile/text.h"

#define FEW_COMPLETE 0.999 /* below this it is worth a look */
#define MANY_SKIPPED 0.01

void uni_say_ns(char *out, size_t cap, double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t unit = 0;

	for (; ns >= 999.5 && unit + 1 < uni_array_len(units); unit++)
		ns /= 1000.0;
	(void)snprintf(out, cap, "%.*f %s", ns < 9.95 && unit != 0 ? 1 : 0, ns, units[unit]);
}

void uni_say_window(char *out, size_t cap, const struct uni_top *top)
{
	double seconds =
		top->shown_ns > top->from_ns ? (double)(top->shown_ns - top->from_ns) / 1e9 : 0;

	if (top->window_ns == 0)
		(void)snprintf(out, cap, "since the start, %.0f s", seconds);
	else if (seconds < 10.0 && top->window_ns % UNI_NSEC_PER_SEC != 0)
		(void)snprintf(out, cap, "last %.1f s", seconds);
	else
		(void)snprintf(out, cap, "last %.0f s", seconds);
}

const char *uni_say_whole(const struct uni_top *top)
{
	return top->idle ? "100 % is all time" : "100 % is the guest's time on a CPU";
}

void uni_say_settings(char *out, size_t cap, const struct uni_top *top)
{
	char vcpu[48] = "", guest[UNI_GUEST_NAME_MAX + 16] = "";

	if (top->vcpu >= 0)
		(void)snprintf(vcpu, sizeof(vcpu), ", vCPU %" PRId64 " only", top->vcpu);
	if (top->guest >= 0)
		(void)snprintf(guest, sizeof(guest), ", %s only",
			top->setup.guests.guest[top->guest].root != NULL
				? top->setup.guests.guest[top->guest].root
				: "this guest");
	(void)snprintf(out, cap, "by %s%s%s%s%s%s%s", uni_live_sort_name(top->sort), guest, vcpu,
		top->idle ? ", with idle" : "", top->filter[0] != '\0' ? ", only *" : "",
		top->filter, top->filter[0] != '\0' ? "*" : "");
}

static void add_part(struct uni_say_parts *p, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_part(struct uni_say_parts *p, bool bad, const char *fmt, ...)
{
	va_list ap;

	if (p->nr == UNI_SAY_PARTS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(p->v[p->nr], sizeof(p->v[0]), fmt, ap);
	va_end(ap);
	p->bad[p->nr++] = bad;
}

static void say_pause(struct uni_say_parts *p, const struct uni_top_quality *q)
{
	char p50[32], p99[32];

	if (q->samples == 0)
		return;
	if (!q->paused) {
		add_part(p, false, "never stopped");
		return;
	}
	uni_say_ns(p50, sizeof(p50), (double)q->p50_ns);
	uni_say_ns(p99, sizeof(p99), (double)q->p99_ns);
	add_part(p, false, "pauses %s, p99 %s, %.1f%%", p50, p99, 100.0 * q->duty);
}

void uni_say_quality(struct uni_say_parts *p, const struct uni_top *top)
{
	const struct uni_top_quality *q = &top->quality;
	char number[UNI_NUMBER_MAX], cost[32];

	p->nr = 0;
	uni_text_number(number, q->rate);
	add_part(p, false, "%s samples/s", number);
	if (q->samples != 0)
		add_part(p, q->complete < FEW_COMPLETE, "%.2f%% complete", 100.0 * q->complete);
	uni_text_number(number, (double)(q->lost + q->dropped));
	add_part(p, q->lost + q->dropped != 0, "%s lost", number);
	say_pause(p, q);
	if (q->host_ns >= 0.0 || q->guest_ns >= 0.0) {
		uni_say_ns(cost, sizeof(cost), uni_max(q->host_ns, q->guest_ns));
		add_part(p, false, "%s %s/sample", q->guest_ns >= 0.0 ? "guest's" : "host", cost);
	}
	if (q->skipped >= 0.0005)
		add_part(p, q->skipped > MANY_SKIPPED, "%.1f%% skipped", 100.0 * q->skipped);
	if (q->failed != 0)
		add_part(p, true, "%" PRIu64 " failed", q->failed);
}

static void add_share(struct uni_say_parts *p, const char *what, double share)
{
	if (share >= 0.0)
		add_part(p, false, "%s %5.1f%%", what, 100.0 * share);
}

void uni_say_vcpu(struct uni_say_parts *p, const struct uni_top_vcpu *v)
{
	char number[UNI_NUMBER_MAX];

	p->nr = 0;
	if (v->guest < 0.0) {
		add_part(p, false, "no samples");
		return;
	}
	/* The same order always; a narrow screen leaves out the last ones. */
	add_share(p, v->split ? "guest" : "busy", v->guest);
	if (v->unsampled > 0.0)
		add_share(p, "not sampled", v->unsampled);
	add_share(p, "idle", v->idle);
	add_share(p, "stolen", v->stolen);
	if (v->exits >= 0.0) {
		uni_text_number(number, v->exits);
		add_part(p, false, "%8s exits/s", number);
	}
	if (v->split || v->sampled)
		add_share(p, "kvm", v->kvm);
	add_share(p, "vmm", v->vmm);
}

bool uni_say_doubt(char out[UNI_QUALITY_METHOD], const struct uni_top *top)
{
	const struct uni_sample_filter shown = { .on_cpu = !top->idle };

	return uni_quality_doubt(out, NULL, &top->last.stats, &shown) == UNI_DOUBT_NO_PROFILE;
}

void uni_say_end(char *out, size_t cap, const struct uni_top *top)
{
	const struct uni_feed_status *st = &top->last;

	out[0] = '\0';
	if (!top->ended)
		return;
	if (st->rc != 0)
		(void)snprintf(out, cap, "sampling ended: %s", st->err.msg);
	else if (st->end == UNI_END_GONE)
		(void)snprintf(out, cap, "the guest%s ended; what was seen until then stays",
			top->setup.guests.nr > 1 ? "s" : "");
	else
		(void)snprintf(out, cap, "sampling ended");
}
