/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/json/recording.h"

#include <string.h>

#include "base/text.h"

static void put_u64(struct uni_json *j, const char *key, uint64_t v)
{
	uni_json_kv(u64, j, key, v > INT64_MAX ? INT64_MAX : v);
}

static void put_text(struct uni_json *j, const char *key, const char *s)
{
	char clean[UNI_TEXT_MAX + 1];

	(void)uni_text_clean(clean, sizeof(clean), s, strlen(s));
	uni_json_kv(str, j, key, clean);
}

static void put_share(struct uni_json *j, const char *key, uint64_t part, uint64_t whole)
{
	if (whole != 0)
		uni_json_kv(double, j, key, (double)part / (double)whole);
}

static void put_vcpu(struct uni_json *j, const struct uni_vcpu_times *t)
{
	double all = (double)t->guest_ns + (double)t->kvm_ns + (double)t->vmm_ns +
		     (double)t->unsampled_ns + (double)t->idle_ns + (double)t->stolen_ns;
	double part = all > 0 ? 1.0 / all : 0;

	uni_json_object(j);
	uni_json_kv(double, j, "guest", part *(double)t->guest_ns);
	uni_json_kv(double, j, "kvm", part *(double)t->kvm_ns);
	uni_json_kv(double, j, "vmm", part *(double)t->vmm_ns);
	if (t->unsampled_ns != 0)
		uni_json_kv(double, j, "unsampled", part *(double)t->unsampled_ns);
	uni_json_kv(double, j, "idle", part *(double)t->idle_ns);
	uni_json_kv(double, j, "stolen", part *(double)t->stolen_ns);
	uni_json_kv(bool, j, "split", t->split);
	put_u64(j, "exits", t->exits);
	uni_json_object_end(j);
}

static void put_pauses(struct uni_json *j, const struct uni_pause_stats *p)
{
	uni_json_key(j, "pause_ns");
	uni_json_object(j);
	put_u64(j, "nr", p->nr);
	put_u64(j, "sum", p->sum_ns);
	put_u64(j, "p50", p->p50_ns);
	put_u64(j, "p99", p->p99_ns);
	put_u64(j, "max", p->max_ns);
	uni_json_object_end(j);
}

static void put_guest(struct uni_json *j, const struct uni_recording *rec, uint32_t number)
{
	struct uni_recorded_guest g = uni_recording_guest(rec, number);
	const struct uni_record_stats *st = g.stats, *shown = g.shown;
	char name[UNI_GUEST_NAME_MAX];

	uni_recording_guest_name(rec, number, name);
	uni_json_object(j);
	put_text(j, "name", name);
	put_text(j, "target", g.meta->target);
	put_text(j, "method", g.meta->method);
	put_text(j, "why", g.meta->why);
	uni_record_put_gaps(j, g.meta);
	put_u64(j, "samples", shown->samples);
	put_u64(j, "weight", shown->weight);
	put_u64(j, "lost", st->lost);
	put_u64(j, "failed", st->failed);
	put_u64(j, "skipped", st->skipped);
	if (st->short_lists != 0)
		put_u64(j, "short_lists", st->short_lists);
	if (g.meta->nr_bad_rows != 0)
		uni_json_kv(u64, j, "bad_unwind_rows", g.meta->nr_bad_rows);
	put_share(j, "complete", shown->stop[UNI_STOP_ROOT], shown->weight);
	put_share(j, "guessed", shown->guessed, shown->weight);
	put_pauses(j, &shown->pause);
	put_u64(j, "duration_ns",
		shown->end_ns > shown->begin_ns ? shown->end_ns - shown->begin_ns : 0);
	put_u64(j, "own_cpu_ns", st->own_cpu_ns);
	if (st->host_runs != 0)
		uni_json_kv(double, j, "host_ns_per_sample",
			(double)st->host_ns / (double)st->host_runs);
	if (st->serve_ns != 0)
		put_u64(j, "serve_ns", st->serve_ns);
	if (st->callers != 0)
		put_u64(j, "callers", st->callers);
	if (shown->nr_times != 0) {
		uni_json_key(j, "vcpus");
		uni_json_array(j);
		for (uint32_t v = 0; v < st->nr_times; v++)
			put_vcpu(j, &st->times[v]);
		uni_json_array_end(j);
	}
	uni_json_object_end(j);
}

void uni_json_recording(
	struct uni_json *j, const struct uni_recording *rec, const struct uni_sample_filter *filter)
{
	uni_json_key(j, "recording");
	uni_json_object(j);
	uni_json_kv(bool, j, "closed", uni_recording_was_closed(rec));
	uni_json_kv(double, j, "frequency_hz", uni_recording_meta(rec)->frequency);
	uni_record_part_json(j, uni_recording_part(rec));
	uni_json_key(j, "guests");
	uni_json_array(j);
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		if (filter == NULL || uni_only_passes(filter->guest, i))
			put_guest(j, rec, i);
	}
	uni_json_array_end(j);
	uni_json_object_end(j);
}
