/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/sjson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/json_load.h"
#include "base/owner.h"
#include "base/text.h"
#include "recording/folder.h"
#include "recording/sjson_priv.h"

static void cleanup_json(json_t **j)
{
	json_decref(*j);
}

/*
 * A member of an object. Absent ones leave the defaults (a later minor change may drop them);
 * ones of the wrong type fail the file. `bad` remembers the first such name.
 */
struct src {
	const json_t *obj;
	const char *bad;
};

static const json_t *get_member(struct src *s, const char *key, bool (*is_type)(const json_t *))
{
	const json_t *v = json_object_get(s->obj, key);

	if (v == NULL)
		return NULL;
	if (is_type(v))
		return v;
	if (s->bad == NULL)
		s->bad = key;
	return NULL;
}

static bool is_object(const json_t *v)
{
	return json_is_object(v);
}

static bool is_array(const json_t *v)
{
	return json_is_array(v);
}

static bool is_string(const json_t *v)
{
	return json_is_string(v);
}

static bool is_number(const json_t *v)
{
	return json_is_number(v);
}

static bool is_unsigned(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0;
}

static uint64_t get_u64(struct src *s, const char *key)
{
	const json_t *v = get_member(s, key, is_unsigned);

	return v != NULL ? (uint64_t)json_integer_value(v) : 0;
}

static double get_double(struct src *s, const char *key)
{
	const json_t *v = get_member(s, key, is_number);

	return v != NULL ? json_number_value(v) : 0.0;
}

static const char *get_str(struct src *s, const char *key)
{
	const json_t *v = get_member(s, key, is_string);

	return v != NULL ? json_string_value(v) : "";
}

static uint64_t get_hex(struct src *s, const char *key)
{
	const char *text = get_str(s, key);
	uint64_t v = 0;

	if (text[0] != '\0' && !uni_parse_u64(text, &v) && s->bad == NULL)
		s->bad = key;
	return v;
}

static void get_text(struct src *s, const char *key, char *out, size_t cap)
{
	const char *text = get_str(s, key);

	(void)uni_text_clean(out, cap, text, strlen(text));
}

static struct src get_object(struct src *s, const char *key)
{
	return (struct src){ .obj = get_member(s, key, is_object) };
}

/* Takes over the errors of a sub-object. */
static void merge_bad(struct src *s, const struct src *sub)
{
	if (s->bad == NULL)
		s->bad = sub->bad;
}

/* {"t_ns": ..., "bytes": "hex"}: exactly `size` bytes, or something is wrong. */
static uint8_t *parse_bytes(struct src *watch, const char *key, uint32_t size, uint64_t *t_ret)
{
	struct src s = get_object(watch, key);
	const char *text;
	uint8_t *data;

	if (s.obj == NULL)
		return NULL;
	*t_ret = get_u64(&s, "t_ns");
	text = get_str(&s, "bytes");
	data = strlen(text) == (size_t)size * 2 ? malloc(size) : NULL;
	for (size_t i = 0; data != NULL && i < size; i++) {
		int hi = uni_hex_digit(text[2 * i]), lo = uni_hex_digit(text[2 * i + 1]);

		if (hi < 0 || lo < 0)
			s.bad = "bytes";
		data[i] = (uint8_t)(((unsigned)hi & 15) << 4 | ((unsigned)lo & 15));
	}
	if (data == NULL)
		s.bad = "bytes";
	merge_bad(watch, &s);
	return data;
}

static const char *parse_watch(const json_t *obj, struct uni_watch *w)
{
	struct src s = { .obj = obj };
	uint64_t size = get_u64(&s, "size");

	get_text(&s, "name", w->name, sizeof(w->name));
	w->gva = get_hex(&s, "address");
	if (size == 0 || size > UNI_SESSION_WATCH_MAX)
		return "size";
	w->size = (uint32_t)size;
	w->first = parse_bytes(&s, "first", w->size, &w->t_first_ns);
	w->last = parse_bytes(&s, "last", w->size, &w->t_last_ns);
	return s.bad;
}

static void parse_watches(struct src *guest, struct uni_session_guest *ret)
{
	const json_t *list = get_member(guest, "watches", is_array);
	size_t nr = json_array_size(list);

	if (nr == 0)
		return;
	ret->watch = nr <= UNI_SESSION_WATCHES ? calloc(nr, sizeof(*ret->watch)) : NULL;
	if (ret->watch == NULL) {
		guest->bad = "watches";
		return;
	}
	ret->nr_watch = nr;
	for (size_t i = 0; i < nr && guest->bad == NULL; i++)
		guest->bad = parse_watch(json_array_get(list, i), &ret->watch[i]);
}

bool uni_session_id_ok(const char *id)
{
	size_t n = strlen(id), hex = strspn(id + (id[0] == 'x'), "0123456789abcdef");

	return hex != 0 && hex + (id[0] == 'x') == n &&
	       n < sizeof(((struct uni_record_meta *)0)->image_id);
}

static void parse_more(struct src *guest, const json_t *obj, struct uni_record_meta *m)
{
	struct uni_record_image *more = &m->more[m->nr_more++];
	struct src s = { .obj = obj };

	get_text(&s, "path", more->path, sizeof(more->path));
	get_text(&s, "id", more->id, sizeof(more->id));
	more->bias = get_hex(&s, "bias");
	if (!uni_session_id_ok(more->id))
		s.bad = "id";
	merge_bad(guest, &s);
}

static void parse_images(struct src *guest, struct uni_record_meta *m)
{
	const json_t *list = get_member(guest, "images", is_array);
	struct src s = { .obj = json_array_get(list, 0) };

	if (s.obj == NULL)
		return;
	get_text(&s, "path", m->image_path, sizeof(m->image_path));
	get_text(&s, "id", m->image_id, sizeof(m->image_id));
	m->bias = get_hex(&s, "bias");
	if (!uni_session_id_ok(m->image_id)) /* it becomes a file name */
		s.bad = "id";
	merge_bad(guest, &s);
	if (json_array_size(list) > UNI_IMAGES_MAX)
		guest->bad = "images";
	for (size_t i = 1; guest->bad == NULL && i < json_array_size(list); i++)
		parse_more(guest, json_array_get(list, i), m);
}

static bool is_folder(const char *name, uint32_t guest)
{
	char want[32];

	(void)snprintf(want, sizeof(want), UNI_SDIR_GUEST, guest);
	return strcmp(name, want) == 0;
}

/* The members that describe the samples. Returns NULL or the invalid one. */
static const char *parse_trace(struct src *s, uint32_t number, struct uni_session_guest *ret)
{
	uint64_t nr_vcpus = get_u64(s, "nr_vcpus"), layout = get_u64(s, "trace_layout");

	if (nr_vcpus == 0 || nr_vcpus > UNI_VCPU_MAX)
		return "nr_vcpus";
	ret->meta.nr_vcpus = ret->meta.info.nr_vcpus = (uint32_t)nr_vcpus;
	ret->meta.left_off = (uint32_t)uni_min(get_u64(s, "vcpus_left_off"), UINT32_MAX);
	if (!uni_ctf_uuid_parse(get_str(s, "trace_uuid"), ret->uuid))
		return "trace_uuid";
	if (!is_folder(get_str(s, "folder"), number))
		return "folder";
	return layout == 0 || layout > UNI_CTF_LAYOUT ? "trace_layout" : NULL;
}

static const char *parse_guest(const json_t *obj, uint32_t number, struct uni_session_guest *ret)
{
	struct src s = { .obj = obj };
	struct uni_record_meta *m = &ret->meta;
	const char *bad;

	get_text(&s, "target", m->target, sizeof(m->target));
	get_text(&s, "method", m->method, sizeof(m->method));
	get_text(&s, "why", m->why, sizeof(m->why));
	get_text(&s, "failed", m->failed, sizeof(m->failed));
	get_text(&s, "checked", m->checked, sizeof(m->checked));
	get_text(&s, "stale", m->stale, sizeof(m->stale));
	m->counts = json_is_true(json_object_get(obj, "counts"));
	get_text(&s, "arch", m->arch, sizeof(m->arch));
	get_text(&s, "name", m->info.name, sizeof(m->info.name));
	get_text(&s, "vmm", m->info.vmm, sizeof(m->info.vmm));
	get_text(&s, "accel", m->info.accel, sizeof(m->info.accel));
	get_text(&s, "note", m->info.note, sizeof(m->info.note));
	get_text(&s, "kernel", m->info.image, sizeof(m->info.image));
	m->info.pid = (int)(get_u64(&s, "pid") & INT32_MAX);
	m->info.mem_bytes = get_u64(&s, "mem_bytes");
	m->exits_every = (uint32_t)uni_min(get_u64(&s, "exits_every"), (uint64_t)UINT32_MAX);
	bad = parse_trace(&s, number, ret);
	if (bad != NULL)
		return bad;
	parse_images(&s, m);
	m->nr_bad_rows = get_u64(&s, "bad_unwind_rows");
	get_text(&s, "bad_unwind_row", m->bad_rows, sizeof(m->bad_rows));
	parse_watches(&s, ret);
	if (s.bad == NULL)
		s.bad = uni_session_parse_gaps(obj, m);
	if (s.bad == NULL)
		s.bad = uni_session_parse_threads(obj, ret);
	return s.bad != NULL ? s.bad : uni_session_parse_trace(obj, ret);
}

static void parse_times(struct src *stats, struct uni_record_stats *st)
{
	const json_t *list = get_member(stats, "vcpus", is_array);
	size_t nr = json_array_size(list);

	if (nr > UNI_VCPU_MAX) {
		stats->bad = "vcpus";
		return;
	}
	if (!uni_record_stats_room(st, (uint32_t)nr)) {
		stats->bad = "vcpus";
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		struct src s = { .obj = json_array_get(list, i) };
		struct uni_vcpu_times *t = &st->times[i];

		t->guest_ns = get_u64(&s, "guest_ns");
		t->kvm_ns = get_u64(&s, "kvm_ns");
		t->vmm_ns = get_u64(&s, "vmm_ns");
		if (json_object_get(s.obj, "unsampled_ns") != NULL)
			t->unsampled_ns = get_u64(&s, "unsampled_ns");
		t->idle_ns = get_u64(&s, "idle_ns");
		t->stolen_ns = get_u64(&s, "stolen_ns");
		t->exits = get_u64(&s, "exits");
		t->split = json_is_true(json_object_get(s.obj, "split"));
		merge_bad(stats, &s);
	}
}

/* Version 1 had neither weights nor states; its samples all weighed 1. */
static void parse_old_stats(struct src *s, struct uni_record_stats *st)
{
	st->weight = st->samples;
	st->state[UNI_VCPU_HALTED] = uni_min(get_u64(s, "halted"), st->samples);
	st->state[UNI_VCPU_RUNNING] = st->samples - st->state[UNI_VCPU_HALTED];
}

/* Absent: each sample has weight 1, or an older version wrote it. */
static void parse_squares(struct src *s, struct uni_record_stats *st)
{
	struct src squares;

	if (json_object_get(s->obj, "squares") == NULL)
		return;
	squares = get_object(s, "squares");
	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++)
		st->squares[i] = get_u64(&squares, uni_vcpu_state_name(i));
	merge_bad(s, &squares);
}

static void parse_new_stats(struct src *s, struct uni_record_stats *st)
{
	struct src state = get_object(s, "state");

	st->weight = get_u64(s, "weight");
	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++)
		st->state[i] = get_u64(&state, uni_vcpu_state_name(i));
	parse_squares(s, st);
	st->host_ns = get_u64(s, "host_ns");
	st->host_runs = get_u64(s, "host_runs");
	st->serve_ns = get_u64(s, "serve_ns");
	st->busy_ns = get_u64(s, "busy_ns");
	st->max_duty = get_double(s, "max_pause");
	st->realtime = json_is_true(json_object_get(s->obj, "realtime"));
	st->silent = (uint32_t)uni_min(get_u64(s, "silent"), (uint64_t)UNI_VCPU_MAX);
	parse_times(s, st);
	merge_bad(s, &state);
}

static const char *parse_stats(const json_t *obj, uint64_t version, struct uni_record_stats *st)
{
	struct src s = { .obj = obj }, stop = get_object(&s, "stop"),
		   pause = get_object(&s, "pause_ns");

	st->samples = get_u64(&s, "samples");
	st->ticks = get_u64(&s, "ticks");
	st->late = get_u64(&s, "late");
	st->skipped = get_u64(&s, "skipped");
	st->throttled = get_u64(&s, "throttled");
	st->failed = get_u64(&s, "failed");
	st->truncated = get_u64(&s, "truncated");
	st->guessed = get_u64(&s, "guessed");
	st->moved = get_u64(&s, "moved");
	st->unsure = get_u64(&s, "unsure");
	st->inside = get_u64(&s, "inside");
	st->outside = get_u64(&s, "outside");
	st->outside_low = get_u64(&s, "outside_low");
	st->outside_high = get_u64(&s, "outside_high");
	st->firmware = get_u64(&s, "firmware");
	st->lost = get_u64(&s, "lost");
	st->short_lists = get_u64(&s, "short_lists");
	st->callers = get_u64(&s, "callers");
	st->exits = get_u64(&s, "exits");
	st->exits_lost = get_u64(&s, "exits_lost");
	for (unsigned i = 0; i < UNI_STOP_NR; i++)
		st->stop[i] = get_u64(&stop, uni_stop_name(i));
	st->pause.nr = get_u64(&pause, "nr");
	st->pause.sum_ns = get_u64(&pause, "sum");
	st->pause.p50_ns = get_u64(&pause, "p50");
	st->pause.p99_ns = get_u64(&pause, "p99");
	st->pause.max_ns = get_u64(&pause, "max");
	st->begin_ns = get_u64(&s, "begin_ns");
	st->end_ns = get_u64(&s, "end_ns");
	st->unwind_ns = get_u64(&s, "unwind_ns");
	st->own_cpu_ns = get_u64(&s, "own_cpu_ns");
	if (version == 1)
		parse_old_stats(&s, st);
	else
		parse_new_stats(&s, st);
	merge_bad(&s, &stop);
	merge_bad(&s, &pause);
	return s.bad;
}

/* Copies the members of the run into every guest. */
static const char *parse_run(struct src *s, struct uni_record_meta *run)
{
	struct src clock = get_object(s, "clock");

	get_text(s, "uniscope", run->uniscope_version, sizeof(run->uniscope_version));
	get_text(s, "command", run->command, sizeof(run->command));
	run->aggregate = json_is_true(json_object_get(s->obj, "aggregate"));
	get_text(s, "unit", run->unit, sizeof(run->unit));
	run->frequency = get_double(s, "frequency_hz");
	run->realtime_offset_ns = get_u64(&clock, "realtime_offset_ns");
	merge_bad(s, &clock);
	return s->bad != NULL ? s->bad : uni_session_parse_work(s->obj, &run->work);
}

static const char *parse_guests(
	struct src *s, const struct uni_record_meta *run, uint64_t version, struct uni_session *ret)
{
	const json_t *list = get_member(s, "guests", is_array);
	size_t nr = json_array_size(list), nr_vcpus = 0;
	const char *bad = NULL;

	/* Version 1 allows only one. */
	if (nr == 0 || nr > UNI_GUEST_MAX || (version == 1 && nr > 1))
		return "guests";
	for (uint32_t i = 0; bad == NULL && i < nr; i++) {
		struct uni_session_guest *g = uni_session_add_guest(ret);
		const json_t *obj = json_array_get(list, i);

		if (g == NULL)
			return "guests";
		g->meta = *run;
		bad = parse_guest(obj, i, g);
		nr_vcpus += g->meta.nr_vcpus;
		if (bad == NULL && ret->closed)
			bad = parse_stats(
				json_object_get(version == 1 ? s->obj : obj, "statistics"), version,
				&g->stats);
	}
	return bad == NULL && nr_vcpus > UNI_SESSION_VCPUS_MAX ? "guests" : bad;
}

/* NULL, or the invalid member. */
static const char *parse_root(const json_t *root, uint64_t version, struct uni_session *ret)
{
	_cleanup_free_ struct uni_record_meta *run = calloc(1, sizeof(*run));
	struct src s = { .obj = root };
	const char *state = get_str(&s, "state"), *bad;

	ret->closed = strcmp(state, "closed") == 0;
	if (!ret->closed && strcmp(state, "open") != 0)
		return "state";
	bad = run != NULL ? parse_run(&s, run) : "uniscope";
	if (bad == NULL)
		bad = parse_guests(&s, run, version, ret);
	return bad != NULL ? bad : s.bad;
}

static int check_version(const json_t *root, uint64_t *ret, struct uni_err *err)
{
	struct src s = { .obj = root };
	uint64_t version;

	if (strcmp(get_str(&s, "format"), "uniscope-session") != 0)
		return uni_err_set(err, UNI_EFORMAT, "it does not say that it is a session");
	version = get_u64(&s, "version");
	if (version == 0 || version > UNI_SESSION_VERSION)
		return uni_err_set(err, UNI_ENOTSUP,
			"format version %llu; this uniscope reads versions 1 to %d",
			(unsigned long long)version, UNI_SESSION_VERSION);
	*ret = version;
	return 0;
}

int uni_session_parse(const char *text, size_t size, struct uni_session *ret, struct uni_err *err)
{
	_cleanup_(cleanup_json) json_t *root =
		uni_json_load(text, size, JSON_REJECT_DUPLICATES, UNI_JSON_TIMES, err);
	struct uni_session s = { 0 };
	uint64_t version = 0;
	const char *bad;
	int rc;

	if (root == NULL)
		return -UNI_EFORMAT;
	rc = check_version(root, &version, err);
	if (rc < 0)
		return rc;
	bad = parse_root(root, version, &s);
	if (bad != NULL) {
		uni_session_free_parsed(&s);
		return uni_err_set(err, UNI_EFORMAT, "member \"%s\" makes no sense", bad);
	}
	*ret = s;
	return 0;
}

static int load_text(int dir_fd, char **text_ret, size_t *size_ret, struct uni_err *err)
{
	return uni_read_below(dir_fd, UNI_SDIR_JSON, UNI_SDIR_JSON, UNI_SESSION_JSON_MAX, text_ret,
		size_ret, err);
}

int uni_session_load(const char *path, struct uni_session *ret, struct uni_err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	_cleanup_close_ int fd = -1;
	int rc = uni_sdir_open(path, &fd, err);

	if (rc == 0)
		rc = uni_owner_check(fd, path, err);
	if (rc == 0)
		rc = load_text(fd, &text, &size, err);
	if (rc < 0) {
		if (err != NULL)
			(void)uni_err_prefix(err, "%s is no session that can be read", path);
		return rc;
	}
	rc = uni_session_parse(text, size, ret, err);
	if (rc < 0 && err != NULL)
		(void)uni_err_prefix(err, "%s/%s", path, UNI_SDIR_JSON);
	return rc;
}

bool uni_session_is_one(int dir_fd)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_(cleanup_json) json_t *root = NULL;
	struct src s = { 0 };
	size_t size = 0;

	if (load_text(dir_fd, &text, &size, NULL) < 0)
		return false;
	root = uni_json_load(text, size, 0, UNI_JSON_TIMES, NULL);
	s.obj = root;
	return strcmp(get_str(&s, "format"), "uniscope-session") == 0;
}
