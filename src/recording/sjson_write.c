/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/sjson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "recording/folder.h"
#include "recording/sjson_priv.h"

/* JSON must be UTF-8, and paths and command lines need not be. */
static void put_text(struct uni_json *j, const char *key, const char *s)
{
	char clean[UNI_TEXT_MAX + 1];

	(void)uni_text_clean(clean, sizeof(clean), s, strlen(s));
	uni_json_kv(str, j, key, clean);
}

/* JSON readers, ours too, take integers up to 2^63 - 1. */
static void put_u64(struct uni_json *j, const char *key, uint64_t v)
{
	uni_json_kv(u64, j, key, v > INT64_MAX ? INT64_MAX : v);
}

static void put_hex_bytes(
	struct uni_json *j, struct uni_strbuf *b, const uint8_t *data, size_t size)
{
	static const char hex[] = "0123456789abcdef";

	uni_strbuf_reset(b);
	for (size_t i = 0; i < size; i++) {
		uni_strbuf_addc(b, hex[data[i] >> 4]);
		uni_strbuf_addc(b, hex[data[i] & 15]);
	}
	uni_json_kv(str, j, "bytes", b->s);
}

static void put_watch_value(struct uni_json *j, struct uni_strbuf *b, const char *key,
	const struct uni_watch *w, const uint8_t *data, uint64_t t_ns)
{
	if (data == NULL)
		return;
	uni_json_key(j, key);
	uni_json_object(j);
	put_u64(j, "t_ns", t_ns);
	put_hex_bytes(j, b, data, w->size);
	uni_json_object_end(j);
}

static void put_watches(struct uni_json *j, struct uni_strbuf *b, const struct uni_session_guest *g)
{
	uni_json_key(j, "watches");
	uni_json_array(j);
	for (size_t i = 0; i < g->nr_watch; i++) {
		const struct uni_watch *w = &g->watch[i];

		uni_json_object(j);
		put_text(j, "name", w->name);
		uni_json_kv(hex, j, "address", w->gva);
		put_u64(j, "size", w->size);
		put_watch_value(j, b, "first", w, w->first, w->t_first_ns);
		put_watch_value(j, b, "last", w, w->last, w->t_last_ns);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void put_image(struct uni_json *j, const char *path, const char *id, uint64_t bias)
{
	uni_json_object(j);
	put_text(j, "path", path);
	put_text(j, "id", id);
	uni_json_kv(hex, j, "bias", bias);
	uni_json_object_end(j);
}

static void put_images(struct uni_json *j, const struct uni_record_meta *m)
{
	uni_json_key(j, "images");
	uni_json_array(j);
	if (m->image_id[0] != '\0') {
		put_image(j, m->image_path, m->image_id, m->bias);
		for (uint32_t i = 0; i < m->nr_more; i++)
			put_image(j, m->more[i].path, m->more[i].id, m->more[i].bias);
	}
	uni_json_array_end(j);
}

static void put_bad_rows(struct uni_json *j, const struct uni_record_meta *m)
{
	if (m->nr_bad_rows == 0)
		return;
	put_u64(j, "bad_unwind_rows", m->nr_bad_rows);
	put_text(j, "bad_unwind_row", m->bad_rows);
}

static void put_clock(struct uni_json *j, const struct uni_record_meta *m)
{
	uni_json_key(j, "clock");
	uni_json_object(j);
	uni_json_kv(str, j, "name", "CLOCK_MONOTONIC");
	uni_json_kv(str, j, "unit", "ns");
	put_u64(j, "realtime_offset_ns", m->realtime_offset_ns);
	uni_json_object_end(j);
}

static void put_times(struct uni_json *j, const struct uni_record_stats *st)
{
	uni_json_key(j, "vcpus");
	uni_json_array(j);
	for (uint32_t v = 0; v < st->nr_times; v++) {
		const struct uni_vcpu_times *t = &st->times[v];

		uni_json_object(j);
		put_u64(j, "guest_ns", t->guest_ns);
		put_u64(j, "kvm_ns", t->kvm_ns);
		put_u64(j, "vmm_ns", t->vmm_ns);
		if (t->unsampled_ns != 0)
			put_u64(j, "unsampled_ns", t->unsampled_ns);
		put_u64(j, "idle_ns", t->idle_ns);
		put_u64(j, "stolen_ns", t->stolen_ns);
		put_u64(j, "exits", t->exits);
		uni_json_kv(bool, j, "split", t->split);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void put_counts(struct uni_json *j, const char *key, const uint64_t *count, unsigned nr,
	const char *(*name)(unsigned))
{
	uni_json_key(j, key);
	uni_json_object(j);
	for (unsigned i = 0; i < nr; i++)
		put_u64(j, name(i), count[i]);
	uni_json_object_end(j);
}

static void put_stats(struct uni_json *j, const struct uni_record_stats *st)
{
	uni_json_key(j, "statistics");
	uni_json_object(j);
	put_u64(j, "samples", st->samples);
	put_u64(j, "weight", st->weight);
	put_u64(j, "ticks", st->ticks);
	put_u64(j, "late", st->late);
	put_u64(j, "skipped", st->skipped);
	put_u64(j, "throttled", st->throttled);
	put_u64(j, "failed", st->failed);
	put_u64(j, "truncated", st->truncated);
	put_u64(j, "guessed", st->guessed);
	put_u64(j, "moved", st->moved);
	put_u64(j, "unsure", st->unsure);
	put_u64(j, "inside", st->inside);
	put_u64(j, "outside", st->outside);
	put_u64(j, "outside_low", st->outside_low);
	put_u64(j, "outside_high", st->outside_high);
	put_u64(j, "firmware", st->firmware);
	put_u64(j, "halted", st->state[UNI_VCPU_HALTED]);
	put_u64(j, "lost", st->lost);
	if (st->short_lists != 0)
		put_u64(j, "short_lists", st->short_lists);
	if (st->callers != 0)
		put_u64(j, "callers", st->callers);
	put_u64(j, "exits", st->exits);
	put_u64(j, "exits_lost", st->exits_lost);
	put_counts(j, "stop", st->stop, UNI_STOP_NR, uni_stop_name);
	put_counts(j, "state", st->state, UNI_VCPU_STATE_NR, uni_vcpu_state_name);
	if (st->weight != st->samples)
		put_counts(j, "squares", st->squares, UNI_VCPU_STATE_NR, uni_vcpu_state_name);
	uni_json_key(j, "pause_ns");
	uni_json_object(j);
	put_u64(j, "nr", st->pause.nr);
	put_u64(j, "sum", st->pause.sum_ns);
	put_u64(j, "p50", st->pause.p50_ns);
	put_u64(j, "p99", st->pause.p99_ns);
	put_u64(j, "max", st->pause.max_ns);
	uni_json_object_end(j);
	put_u64(j, "begin_ns", st->begin_ns);
	put_u64(j, "end_ns", st->end_ns);
	put_u64(j, "unwind_ns", st->unwind_ns);
	put_u64(j, "own_cpu_ns", st->own_cpu_ns);
	put_u64(j, "busy_ns", st->busy_ns);
	uni_json_kv(double, j, "max_pause", st->max_duty);
	uni_json_kv(bool, j, "realtime", st->realtime);
	put_u64(j, "host_ns", st->host_ns);
	put_u64(j, "host_runs", st->host_runs);
	put_u64(j, "serve_ns", st->serve_ns);
	put_u64(j, "silent", st->silent);
	if (st->nr_times != 0)
		put_times(j, st);
	uni_json_object_end(j);
}

static void put_guest(
	struct uni_json *j, struct uni_strbuf *b, const struct uni_session *s, uint32_t number)
{
	const struct uni_session_guest *g = s->guest[number];
	const struct uni_record_meta *m = &g->meta;
	char uuid[37], folder[32];

	uni_ctf_uuid_print(g->uuid, uuid);
	(void)snprintf(folder, sizeof(folder), UNI_SDIR_GUEST, number);
	uni_json_object(j);
	uni_json_kv(str, j, "folder", folder);
	uni_json_kv(str, j, "trace_uuid", uuid);
	put_u64(j, "trace_layout", UNI_CTF_LAYOUT);
	put_text(j, "target", m->target);
	put_text(j, "method", m->method);
	put_text(j, "why", m->why);
	if (m->failed[0] != '\0')
		put_text(j, "failed", m->failed);
	if (m->checked[0] != '\0')
		put_text(j, "checked", m->checked);
	if (m->stale[0] != '\0')
		put_text(j, "stale", m->stale);
	uni_json_kv(bool, j, "counts", m->counts);
	put_text(j, "arch", m->arch);
	put_u64(j, "nr_vcpus", m->nr_vcpus);
	if (m->left_off != 0)
		put_u64(j, "vcpus_left_off", m->left_off);
	put_u64(j, "exits_every", m->exits_every);
	put_text(j, "name", m->info.name);
	put_text(j, "vmm", m->info.vmm);
	put_text(j, "accel", m->info.accel);
	put_text(j, "note", m->info.note);
	put_text(j, "kernel", m->info.image);
	put_u64(j, "pid", m->info.pid > 0 ? (uint64_t)m->info.pid : 0);
	put_u64(j, "mem_bytes", m->info.mem_bytes);
	put_images(j, m);
	put_bad_rows(j, m);
	put_watches(j, b, g);
	uni_record_put_gaps(j, m);
	uni_session_put_threads(j, g);
	uni_session_put_trace(j, &m->trace);
	if (s->closed)
		put_stats(j, &g->stats);
	uni_json_object_end(j);
}

static void put_session(struct uni_json *j, struct uni_strbuf *b, const struct uni_session *s,
	const struct uni_record_stats *sum)
{
	const struct uni_record_meta *run = &s->guest[0]->meta;

	uni_json_object(j);
	uni_json_kv(str, j, "format", "uniscope-session");
	put_u64(j, "version", UNI_SESSION_VERSION);
	uni_json_kv(str, j, "state", s->closed ? "closed" : "open");
	put_text(j, "uniscope", run->uniscope_version);
	put_text(j, "command", run->command);
	uni_json_kv(double, j, "frequency_hz", run->frequency);
	uni_json_kv(bool, j, "aggregate", run->aggregate);
	put_text(j, "unit", run->unit);
	put_clock(j, run);
	uni_session_put_work(j, &run->work);
	uni_json_key(j, "guests");
	uni_json_array(j);
	for (uint32_t i = 0; i < s->nr_guests; i++)
		put_guest(j, b, s, i);
	uni_json_array_end(j);
	if (s->closed)
		put_stats(j, sum);
	uni_json_object_end(j);
}

static int check_watches(const struct uni_session *s, struct uni_err *err)
{
	for (uint32_t i = 0; i < s->nr_guests; i++) {
		if (s->guest[i]->nr_watch > UNI_SESSION_WATCHES)
			return uni_err_set(err, UNI_EINVAL,
				"%zu watches are more than the %u possible", s->guest[i]->nr_watch,
				UNI_SESSION_WATCHES);
	}
	return 0;
}

int uni_session_write(int dir_fd, const char *path, const struct uni_session *s, bool durable,
	struct uni_err *err)
{
	_cleanup_free_ struct uni_record_stats *sum = calloc(1, sizeof(*sum));
	_cleanup_strbuf_ struct uni_strbuf name, bytes;
	struct uni_sink *out = NULL;
	struct uni_json j;
	int rc = check_watches(s, err);

	uni_strbuf_init(&name);
	uni_strbuf_init(&bytes);
	if (rc < 0)
		return rc;
	uni_strbuf_addf(&name, "%s/%s", path, UNI_SDIR_JSON);
	if (uni_strbuf_failed(&name) || sum == NULL)
		return uni_err_nomem(err);
	uni_session_sum(s, sum);
	rc = uni_sink_open_below(dir_fd, UNI_SDIR_JSON, name.s, &out, err);
	if (rc < 0)
		return rc;
	if (durable)
		uni_sink_set_durable(out);
	uni_json_init(&j, out, true);
	put_session(&j, &bytes, s, sum);
	if (uni_strbuf_failed(&bytes)) {
		uni_sink_abort(out);
		return uni_err_nomem(err);
	}
	return uni_sink_close(out, err);
}
