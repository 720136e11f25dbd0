/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/quality.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "app/pace.h"
#include "app/part.h"
#include "profile/profile.h"

double uni_quality_share(uint64_t part, uint64_t whole)
{
	return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

double uni_quality_seconds(const struct uni_record_stats *st)
{
	return st->end_ns > st->begin_ns ? (double)(st->end_ns - st->begin_ns) / 1e9 : 0;
}

double uni_quality_host_us(const struct uni_record_stats *st)
{
	return st->host_runs != 0 ? (double)st->host_ns / 1e3 / (double)st->host_runs : -1;
}

/* The flags that the methods of all its parts have. */
static unsigned common_flags(const struct uni_record_meta *m)
{
	unsigned flags = uni_method_flags(m->method);

	for (uint32_t i = 0; i < m->nr_gap; i++) {
		if (m->gap[i].method[0] != '\0')
			flags &= uni_method_flags(m->gap[i].method);
	}
	return flags;
}

bool uni_quality_inside(const struct uni_record_meta *m)
{
	return (common_flags(m) & UNI_METHOD_INSIDE) != 0;
}

bool uni_quality_streamed(const struct uni_record_meta *m)
{
	return (common_flags(m) & UNI_METHOD_STREAMED) != 0;
}

bool uni_quality_never_stopped(const struct uni_record_meta *m, const struct uni_record_stats *st)
{
	return st->pause.nr == 0 && st->samples != 0 &&
	       (common_flags(m) & UNI_METHOD_UNPAUSED) != 0;
}

bool uni_quality_exits_only(const struct uni_record_meta *m)
{
	return m->frequency == 0 && m->exits_every != 0;
}

void uni_quality_where(char ret[UNI_QUALITY_TEXT], const struct uni_vcpu_times *t)
{
	double all = (double)t->guest_ns + (double)t->kvm_ns + (double)t->vmm_ns +
		     (double)t->unsampled_ns + (double)t->idle_ns + (double)t->stolen_ns;
	double percent = all > 0 ? 100.0 / all : 0;
	double sampled = (double)t->guest_ns + (double)t->kvm_ns + (double)t->vmm_ns;
	char kvm[40] = "", unsampled[80] = "";

	if (t->unsampled_ns != 0)
		(void)snprintf(unsampled, sizeof(unsampled), "on a CPU but not sampled %.1f %%, ",
			percent * (double)t->unsampled_ns);
	if (t->unsampled_ns != 0 && sampled <= 0) {
		(void)snprintf(ret, UNI_QUALITY_TEXT, "%sidle %.1f %%, stolen %.1f %%", unsampled,
			percent * (double)t->idle_ns, percent * (double)t->stolen_ns);
		return;
	}

	if (t->split)
		(void)snprintf(kvm, sizeof(kvm), "KVM %.1f %%, ", percent * (double)t->kvm_ns);
	(void)snprintf(ret, UNI_QUALITY_TEXT,
		"%s %.1f %%, %sVMM %.1f %%, %sidle %.1f %%, stolen %.1f %%",
		t->split ? "guest" : "guest and KVM",
		percent * ((double)t->guest_ns + (t->split ? 0.0 : (double)t->kvm_ns)), kvm,
		percent * (double)t->vmm_ns, unsampled, percent * (double)t->idle_ns,
		percent * (double)t->stolen_ns);
}

struct uni_vcpu_times uni_quality_all_vcpus(const struct uni_record_stats *st)
{
	struct uni_vcpu_times sum = { .split = st->nr_times != 0 };

	for (uint32_t v = 0; v < st->nr_times; v++) {
		const struct uni_vcpu_times *t = &st->times[v];

		sum.guest_ns += t->guest_ns;
		sum.kvm_ns += t->kvm_ns;
		sum.vmm_ns += t->vmm_ns;
		sum.unsampled_ns += t->unsampled_ns;
		sum.idle_ns += t->idle_ns;
		sum.stolen_ns += t->stolen_ns;
		sum.exits += t->exits;
		sum.split = sum.split && t->split;
	}
	return sum;
}

void uni_quality_way(char ret[UNI_QUALITY_METHOD], const char *method, bool counts, const char *why)
{
	const struct uni_method *known = uni_method_by_name(method);

	(void)snprintf(ret, UNI_QUALITY_METHOD, "%s%s%s%s", known != NULL ? known->text : method,
		counts ? ", counts" : "", why[0] != '\0' ? "; " : "", why);
}

void uni_quality_method(char ret[UNI_QUALITY_METHOD], const struct uni_record_meta *m)
{
	const struct uni_record_gap *other = NULL;
	uint32_t nr = 1, first = 0;

	for (uint32_t i = 0; i < m->nr_gap; i++) {
		if (!uni_record_gap_is_part(&m->gap[i]))
			continue;
		nr++;
		if (other != NULL || m->gap[i].method[0] == '\0' ||
			strcmp(m->gap[i].method, m->method) == 0)
			continue;
		other = &m->gap[i];
		first = nr;
	}
	if (other != NULL) {
		(void)snprintf(ret, UNI_QUALITY_METHOD,
			"not the same in all %" PRIu32 " parts: %s, from part %" PRIu32 " on %s",
			nr, m->method, first, other->method);
		return;
	}
	uni_quality_way(ret, m->method, m->counts, m->why);
}

static const char *image_name(const struct uni_record_meta *m)
{
	const char *path = m != NULL ? m->image_path : "the image", *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool is_elsewhere(
	char ret[UNI_QUALITY_METHOD], const char *image, const struct uni_record_stats *st)
{
	uint64_t all = st->inside + st->outside;
	char share[64] = "none";

	if (!uni_record_is_elsewhere(st))
		return false;
	if (st->inside != 0)
		(void)snprintf(share, sizeof(share), "only %" PRIu64 " (%.1f %%)", st->inside,
			uni_quality_share(st->inside, all));
	(void)snprintf(ret, UNI_QUALITY_METHOD,
		"%s of the %" PRIu64
		" samples %s in %.200s: the guest seems to run %s, at 0x%" PRIx64 " to 0x%" PRIx64,
		share, all, st->inside > 1 ? "lie" : "lies", image,
		st->firmware > st->outside / 2
			? "its firmware"
			: "code of no image that is known (--sysroot or -e may name it)",
		st->outside_low, st->outside_high);
	return true;
}

static void put_pauses(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	const struct uni_pause_stats *p = &g->shown->pause;
	double wall = uni_quality_seconds(g->shown);

	if (p->nr == 0) {
		uni_sink_printf(out, "pauses     none%s\n",
			uni_quality_never_stopped(g->meta, g->stats)
				? ": the guest was never stopped"
				: "");
		return;
	}
	uni_sink_printf(out,
		"pauses     p50 %.1f us, p99 %.1f us, max %.1f us, sum %.1f ms = %.2f %% of the "
		"time%s\n",
		(double)p->p50_ns / 1e3, (double)p->p99_ns / 1e3, (double)p->max_ns / 1e3,
		(double)p->sum_ns / 1e6, wall > 0 ? (double)p->sum_ns / 1e7 / wall : 0,
		!uni_quality_streamed(g->meta) ? ""
		: g->stats->callers != 0       ? ": only to find who called the kernel, or to copy "
						 "what --watch asked for"
					 : ": only to copy what --watch asked for, or to follow "
					   "stacks too deep for perf events");
}

/* The sum over the states that are counted. */
uint64_t uni_quality_sum(
	const uint64_t by_state[UNI_VCPU_STATE_NR], const struct uni_sample_filter *shown)
{
	const struct uni_sample_filter kind = { .on_cpu = shown->on_cpu,
		.off_cpu = shown->off_cpu };
	uint64_t sum = 0;

	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++) {
		if (uni_sample_passes(&kind, &(struct uni_sample){ .state = (uint8_t)i }))
			sum += by_state[i];
	}
	return sum;
}

uint64_t uni_quality_count(const struct uni_record_stats *st, const struct uni_sample_filter *shown)
{
	return uni_quality_sum(st->state, shown);
}

bool uni_quality_stands_still(
	const struct uni_record_stats *st, const struct uni_sample_filter *shown)
{
	return uni_quality_count(st, shown) == 0 && st->weight != 0 &&
	       st->state[UNI_VCPU_HALTED] == st->weight;
}

static bool is_process(const struct uni_target_info *info)
{
	return strcmp(info->vmm, "process") == 0 || strcmp(info->accel, "process") == 0;
}

bool uni_quality_is_unseen(const struct uni_record_meta *m)
{
	return is_process(&m->info) && uni_quality_streamed(m);
}

enum uni_doubt uni_quality_doubt(char ret[UNI_QUALITY_METHOD], const struct uni_record_meta *m,
	const struct uni_record_stats *st, const struct uni_sample_filter *shown)
{
	uint64_t nr = uni_pace_taken(m, st, shown);

	if (is_elsewhere(ret, image_name(m), st))
		return UNI_DOUBT_NO_PROFILE;
	if (uni_quality_stands_still(st, shown)) {
		(void)snprintf(ret, UNI_QUALITY_METHOD,
			"no vCPU ran at any of the %" PRIu64
			" samples: the guest waits for an interrupt, is paused, or has ended",
			st->weight);
		return UNI_DOUBT_NO_PROFILE;
	}
	if (nr != 0 && nr < UNI_QUALITY_ENOUGH) {
		(void)snprintf(ret, UNI_QUALITY_METHOD,
			"only %" PRIu64 " sample%s to tell shares from: too few; record for "
			"longer, or with a higher --frequency",
			nr, uni_plural(nr));
		return UNI_DOUBT_TOO_FEW;
	}
	if (uni_quality_share(st->unsure, st->weight) <= UNI_UNSURE_PERCENT)
		return UNI_DOUBT_NONE;
	(void)snprintf(ret, UNI_QUALITY_METHOD,
		"%.0f %% of the samples may be of the caller or of the callee: QEMU stops only "
		"where "
		"a block of code begins. Do not compare such functions with each other",
		uni_quality_share(st->unsure, st->weight));
	return UNI_DOUBT_UNSURE;
}

/* A halted vCPU is sampled like any other: its time is below the function with the hlt. */
static void put_states(struct uni_sink *out, const struct uni_recorded_guest *g,
	const struct uni_sample_filter *shown)
{
	const struct uni_record_stats *st = g->shown;
	uint64_t counted = uni_quality_count(st, shown);

	/* A VMM that has stopped the guest waits as one does that handles an exit of the guest. */
	const struct {
		uint8_t state;
		const char *word, *meaning;
	} rows[] = {
		{ UNI_VCPU_HALTED, "halted",
			is_process(&g->meta->info)
				? "the thread slept, or a signal or a debugger had stopped it"
				: "the vCPU waited for an interrupt, or its thread slept in the "
				  "VMM" },
		{ UNI_VCPU_KVM, "kvm", "the host's KVM worked for the guest" },
		{ UNI_VCPU_VMM, "vmm", "the vCPU's thread ran in the VMM" },
		{ UNI_VCPU_STOLEN, "stolen", "the host ran something else" },
		{ UNI_OFF_CPU_READY, "ready", "a thread could have run, and was on no vCPU" },
		{ UNI_OFF_CPU_BLOCKED, "blocked", "a thread waited to be woken" },
		{ UNI_OFF_CPU_SLEEPING, "sleeping", "a thread waited for a time to come" },
		{ UNI_OFF_CPU_WAITING, "waiting", "a thread waited, with a time limit" },
	};

	uni_sink_printf(out, "counted    %" PRIu64 " sample%s, %.2f %%: %s\n", counted,
		uni_plural(counted), uni_quality_share(counted, st->weight),
		uni_filter_whole(shown));
	for (size_t i = 0; i < uni_array_len(rows); i++) {
		uint64_t n = st->state[rows[i].state];

		if (n != 0)
			uni_sink_printf(out, "%-10s %" PRIu64 " sample%s, %.2f %%: %s\n",
				rows[i].word, n, uni_plural(n), uni_quality_share(n, st->weight),
				rows[i].meaning);
	}
}

static void put_stops(struct uni_sink *out, const struct uni_record_stats *st,
	const struct uni_sample_filter *shown)
{
	uint64_t all = 0;
	const char *sep = "";

	for (unsigned i = 0; i < UNI_STOP_NR; i++)
		all += st->stop[i];
	if (all == 0) { /* of none, no share is whole */
		uni_sink_puts(out, "chains     none\n");
		return;
	}
	if (uni_quality_stands_still(st, shown)) {
		uni_sink_puts(out, "chains     none of a vCPU that ran\n");
		return;
	}
	uni_sink_printf(out, "chains     %.2f %% end at their root",
		uni_quality_share(st->stop[UNI_STOP_ROOT], all));
	for (unsigned i = 1; i < UNI_STOP_NR; i++) {
		if (st->stop[i] == 0)
			continue;
		uni_sink_printf(out, "%s%" PRIu64 " %s",
			sep[0] != '\0' ? sep : "; cut short: ", st->stop[i], uni_stop_name(i));
		sep = ", ";
	}
	if (st->guessed != 0)
		uni_sink_printf(out,
			"\nguesses    %.2f %% of the chains have frames that may be wrong, found "
			"by a scan of the stack or read after the sample: marked ?",
			uni_quality_share(st->guessed, all));
	uni_sink_putc(out, '\n');
	if (st->moved + st->unsure != 0)
		uni_sink_printf(out,
			"skid       the vCPU stops before a block of code: %.2f %% of the samples "
			"are given to the one before, in a callee or a caller; %.2f %% may belong "
			"there, too\n",
			uni_quality_share(st->moved, all), uni_quality_share(st->unsure, all));
}

bool uni_quality_short_lists(char ret[UNI_QUALITY_METHOD], const struct uni_record_stats *st)
{
	(void)snprintf(ret, UNI_QUALITY_METHOD,
		"in %" PRIu64 " of %" PRIu64 " looks the list of threads was not read to its end: "
		"some threads have too few samples, or none",
		st->short_lists, uni_max(st->ticks, st->short_lists));
	return st->short_lists != 0;
}

/* A recorder that was killed left its samples, but not the number of missed ones. */
static void put_samples(struct uni_sink *out, const struct uni_recorded_guest *g, bool closed)
{
	const struct uni_record_stats *st = g->stats;
	char limit[UNI_QUALITY_METHOD];

	uni_sink_printf(out, "samples    %" PRIu64 " in %.1f s from %" PRIu32 " vCPU%s at %g Hz; ",
		st->weight, uni_quality_seconds(st), g->meta->nr_vcpus,
		uni_plural(g->meta->nr_vcpus), g->meta->frequency);
	if (st->weight > st->samples && (uni_quality_inside(g->meta) || st->skipped != 0))
		uni_sink_printf(out, "%" PRIu64 " taken, which stand for %s, too; ", st->samples,
			uni_quality_inside(g->meta) ? "late ticks" : "skipped deadlines");
	if (st->silent != 0)
		uni_sink_printf(out, "%" PRIu32 " of the vCPUs had no timer ticks, so no samples; ",
			st->silent);
	if (!closed)
		uni_sink_printf(out,
			"%" PRIu64 " lost; not closed: late and skipped ones are not known\n",
			st->lost);
	else if (uni_quality_streamed(g->meta))
		uni_sink_printf(out, "%" PRIu64 " without registers, %" PRIu64 " lost\n",
			st->failed, st->lost);
	else
		uni_sink_printf(out,
			"%" PRIu64 " late, %" PRIu64 " skipped (%" PRIu64
			" to spare the guest), %" PRIu64 " without registers, %" PRIu64 " lost\n",
			st->late, st->skipped, st->throttled, st->failed, st->lost);
	if (st->callers != 0)
		uni_sink_printf(out,
			"[kernel]   divided among its callers by %" PRIu64 " look%s: an estimate\n",
			st->callers, uni_plural(st->callers));
	if (g->meta->left_off != 0)
		uni_sink_printf(out,
			"LEFT OFF   %" PRIu32 " more of its %s were not sampled: " UNI_VCPU_MOST
			"\n",
			g->meta->left_off, uni_target_units(g->meta->target));
	if (uni_quality_short_lists(limit, st))
		uni_sink_printf(out, "THREADS    %s\n", limit);
	if (closed && uni_pace_limited(limit, sizeof(limit), g->meta, st))
		uni_sink_printf(out, "LESS OFTEN %s\n", limit);
}

/* Which ones were lost or late is known of the whole recording alone. */
static void put_chosen(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	uni_sink_printf(out,
		"samples    %" PRIu64 " in %.4g s at %g Hz; %" PRIu64 " in all of the recording\n",
		g->shown->weight, uni_quality_seconds(g->shown), g->meta->frequency,
		g->stats->weight);
}

static void put_exits(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	if (g->meta->exits_every == 0)
		return;
	uni_sink_printf(out, "exits      %" PRIu64, g->shown->exits);
	if (g->meta->exits_every > 1)
		uni_sink_printf(out, " (one in %" PRIu32 " looked at)", g->meta->exits_every);
	if (g->shown == g->stats)
		uni_sink_printf(out, ", %" PRIu64 " lost", g->stats->exits_lost);
	uni_sink_puts(out, ": see --exits\n");
}

static void put_cost(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	const struct uni_record_stats *st = g->stats;
	bool inside = uni_quality_inside(g->meta);
	double wall = uni_quality_seconds(st), host_us = uni_quality_host_us(st);
	double percent = wall > 0 ? (double)st->own_cpu_ns / 1e7 / wall : 0;

	if (host_us >= 0)
		uni_sink_printf(out, "%s  %.2f us per sample in the %s, %.2f %% of one CPU\n",
			inside ? "guest cost" : "host cost ", host_us, inside ? "guest" : "kernel",
			wall > 0 ? (double)st->host_ns / 1e7 / wall : 0);
	if (inside && wall > 0)
		uni_sink_printf(out,
			"serving    %.2f %% of one CPU of the guest, to hand them over by its "
			"port\n",
			(double)st->serve_ns / 1e7 / wall);
	uni_sink_printf(out, "own cost   %.1f %% of one CPU", percent);
	if (st->unwind_ns != 0 && st->samples != 0)
		uni_sink_printf(out, ", %.1f us per sample to unwind",
			(double)st->unwind_ns / 1e3 / (double)st->samples);
	if (st->max_duty != 0)
		uni_sink_printf(out, "; scheduling class %s", uni_pace_class(st->realtime));
	uni_sink_putc(out, '\n');
}

static void put_times(struct uni_sink *out, const struct uni_record_stats *st)
{
	char where[UNI_QUALITY_TEXT];

	for (uint32_t v = 0; v < st->nr_times; v++) {
		uni_quality_where(where, &st->times[v]);
		uni_sink_printf(out, "vcpu %-5" PRIu32 " %s", v, where);
		if (st->times[v].exits != 0)
			uni_sink_printf(out, ", %" PRIu64 " exit%s", st->times[v].exits,
				uni_plural(st->times[v].exits));
		uni_sink_putc(out, '\n');
	}
}

/* How the VMM runs the guest's CPUs. */
static const char *accel_text(const struct uni_target_info *info)
{
	if (info->accel[0] == '\0')
		return "";
	if (strcmp(info->vmm, "xen") == 0)
		return strcmp(info->accel, "pv") == 0	 ? " PV"
		       : strcmp(info->accel, "pvh") == 0 ? " PVH"
							 : " HVM";
	return info->accel[0] == 'k' ? " with KVM" : " without KVM";
}

static void put_origin(struct uni_sink *out, const struct uni_record_meta *m)
{
	char method[UNI_QUALITY_METHOD];

	uni_sink_printf(out, "target     %s%s%s%s\n", m->target, m->info.vmm[0] != '\0' ? ", " : "",
		m->info.vmm, accel_text(&m->info));
	if (m->info.note[0] != '\0')
		uni_sink_printf(out, "reached by %s\n", m->info.note);
	uni_quality_method(method, m);
	if (method[0] != '\0')
		uni_sink_printf(out, "method     %s\n", method);
	if (m->image_path[0] != '\0')
		uni_sink_printf(out, "image      %s (%.12s)%s%s\n", m->image_path, m->image_id,
			m->checked[0] != '\0' ? "; " : "", m->checked);
	if (m->stale[0] != '\0')
		uni_sink_printf(out, "NOT EXACTLY THAT IMAGE  %s\n", m->stale);
	if (strcmp(m->trace.mode, "lite") == 0)
		uni_sink_puts(out,
			"UNSURE     calls that made no call have no time of their own (mode "
			"lite): it counts for their callers\n");
	if (m->nr_bad_rows != 0)
		uni_sink_printf(out, "bad rows   call frame information of %s\n", m->bad_rows);
}

static void put_doubts(struct uni_sink *out, const struct uni_recorded_guest *g,
	const struct uni_sample_filter *shown)
{
	static const char *const word[] = {
		[UNI_DOUBT_NO_PROFILE] = "NO PROFILE",
		[UNI_DOUBT_TOO_FEW] = "TOO FEW",
		[UNI_DOUBT_UNSURE] = "UNSURE",
	};
	char text[UNI_QUALITY_METHOD];
	enum uni_doubt doubt = uni_quality_doubt(text, g->meta, g->shown, shown);

	if (doubt != UNI_DOUBT_NONE)
		uni_sink_printf(out, "%-10s %s\n", word[doubt], text);
	if (uni_pace_looks(text, g->meta, g->shown, shown))
		uni_sink_printf(out, "looks      %s\n", text);
}

#define SPEED_S 0.05 /* less is shown as 0.0 s, and is no speed */

/* Samples without times, but all of them together took one. */
static void put_speed(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	const double seconds = uni_quality_seconds(g->stats);
	uint64_t all = g->stats->weight + g->stats->lost;

	if (g->stats->lost != 0)
		uni_sink_printf(out,
			"LOST       %" PRIu64 " of %" PRIu64 " %s could not be written\n",
			g->stats->lost, all, g->meta->unit[0] != '\0' ? g->meta->unit : "in all");
	if (seconds >= SPEED_S && g->meta->unit[0] != '\0')
		uni_sink_printf(out,
			"speed      %" PRIu64 " %s in %.1f s by the host's clock (%.3g a second)\n",
			all, g->meta->unit, seconds, (double)all / seconds);
	uni_sink_printf(out, "\n");
}

/* "part 2 s to 3.5 s only"; costs and losses are those of the whole recording, and left out. */
static void put_choice(struct uni_sink *out, const struct uni_record_part *part)
{
	char text[UNI_PART_TEXT];

	uni_part_text(text, part);
	uni_sink_printf(out, "part       %s\n", text);
}

static void put_guest(struct uni_sink *out, const struct uni_recorded_guest *g,
	const struct uni_sample_filter *shown, const struct uni_record_part *part, bool closed)
{
	put_origin(out, g->meta);
	if (part != NULL)
		put_choice(out, part);
	if (g->meta->failed[0] != '\0') {
		uni_sink_printf(out, "samples    none: %s\n\n", g->meta->failed);
		return;
	}
	if (g->meta->aggregate) {
		uni_sink_printf(out, "aggregate  %" PRIu64 " stack%s, without times%s%s\n",
			g->shown->samples, uni_plural(g->shown->samples),
			g->meta->unit[0] != '\0' ? "; numbers are " : "", g->meta->unit);
		if (part == NULL)
			put_speed(out, g);
		return;
	}
	if (!uni_quality_exits_only(g->meta)) {
		if (part == NULL)
			put_samples(out, g, closed);
		else
			put_chosen(out, g);
		put_doubts(out, g, shown);
		if (part == NULL)
			uni_quality_put_gaps(out, g);
		put_stops(out, g->shown, shown);
	}
	put_exits(out, g);
	if (!uni_quality_exits_only(g->meta))
		put_states(out, g, shown);
	put_pauses(out, g);
	if (closed && part == NULL)
		put_cost(out, g);
	if (part == NULL)
		put_times(out, g->stats);
	uni_sink_putc(out, '\n');
}

void uni_quality_print(const struct uni_recording *rec, const struct uni_sample_filter *shown,
	struct uni_sink *out)
{
	bool closed = uni_recording_was_closed(rec), many = uni_recording_nr_guests(rec) > 1;

	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		struct uni_recorded_guest g = uni_recording_guest(rec, i);
		char name[UNI_GUEST_NAME_MAX];

		if (!uni_only_passes(shown->guest, i))
			continue;
		uni_recording_guest_name(rec, i, name);
		if (many)
			uni_sink_printf(out, "guest %-4" PRIu32 " %s\n", i, name);
		put_guest(out, &g, shown, uni_recording_part(rec), closed);
	}
}
