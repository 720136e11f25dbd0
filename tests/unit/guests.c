/* SPDX-License-Identifier: BSD-2-Clause */
/* Several guests in one session, and where their vCPUs were. */
#include "session_place.h"

#include <pthread.h>

#include "base/checked.h"
#include "format/export.h"
#include "obj/usym.h"
#include "profile/build.h"
#include "recording/sjson.h"

#define MANY 4000u

/* Function `name` at 0x1000, of an image of that name. */
static void add_symbols(struct uni_recorder *r, uint32_t guest, const char *name)
{
	struct uni_err err = { 0 };
	struct uni_symtab *s;

	assert_int_equal(uni_symtab_of_names(name, &name, 1, &s, &err), 0);
	assert_int_equal(uni_recorder_add_symtab(r, guest, s, &err), 0);
	uni_symtab_destroy(s);
}

/* Three guests: "web" twice, and one that is known by its image only. */
static struct uni_recorder *create_three(struct place *p)
{
	struct uni_recorder *r;
	uint32_t guest = 99;

	p->meta.nr_vcpus = 1;
	p->meta.image_id[0] = '\0';
	(void)snprintf(p->meta.info.name, sizeof(p->meta.info.name), "web");
	r = create(p);
	p->meta.nr_vcpus = 2;
	p->meta.bias = 0;
	(void)snprintf(p->meta.target, sizeof(p->meta.target), "kvm:pid=9");
	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &guest, &p->err), 0);
	assert_int_equal(guest, 1);
	p->meta.info.name[0] = '\0';
	(void)snprintf(p->meta.info.image, sizeof(p->meta.info.image), "/boot/db.elf");
	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &guest, &p->err), 0);
	assert_int_equal(guest, 2);
	return r;
}

static void sample(struct uni_recorder *r, uint32_t guest, uint64_t n, uint8_t state)
{
	const uint64_t pc[2] = { 0x1004, 0x1008 };
	const uint8_t flags[2] = { 0, guest == 2 ? UNI_FRAME_GUESS : 0 };
	struct uni_sample s = { .t_ns = T0 + n,
		.weight = 1,
		.guest = guest,
		.vcpu = guest != 0 ? (uint32_t)(n & 1) : 0,
		.state = state,
		.stop = guest == 2 ? UNI_STOP_FAULT : UNI_STOP_ROOT,
		.nr = 2,
		.pc = pc,
		.flags = flags };

	uni_recorder_sample(r, &s);
}

static int close_three(struct uni_recorder *r, struct uni_err *err)
{
	struct uni_record_stats st[3] = { { .weight = 7, .begin_ns = 30, .end_ns = 40 },
		{ .weight = 8, .begin_ns = 20, .end_ns = 50, .own_cpu_ns = 5 },
		{ .lost = 3, .begin_ns = 25, .end_ns = 45, .own_cpu_ns = 6 } };
	uint8_t bytes[2] = { 1, 2 };
	struct uni_watch w = { .name = "calls", .size = 2, .first = bytes, .last = bytes };
	const struct uni_guest_result result[3] = { { .stats = &st[0] },
		{ .stats = &st[1], .watch = &w, .nr_watch = 1 }, { .stats = &st[2] } };

	st[0].pause = (struct uni_pause_stats){ 1, 10, 4, 5, 6 };
	st[1].pause = (struct uni_pause_stats){ 2, 20, 3, 9, 9 };
	return uni_recorder_close(r, result, 3, err);
}

static void each_guest_has_its_own(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_three(p);
	struct uni_recording *rec;
	const struct uni_record_stats *sum;
	struct uni_recorded_guest g[3];

	add_symbols(r, 0, "one");
	add_symbols(r, 1, "one");
	add_symbols(r, 2, "two");
	sample(r, 0, 1, UNI_VCPU_RUNNING);
	sample(r, 2, 1, UNI_VCPU_RUNNING);
	sample(r, 2, 2, UNI_VCPU_RUNNING);
	sample(r, 3, 1, UNI_VCPU_RUNNING); /* no such guest */
	assert_int_equal(uni_recorder_lost(r), 1);
	assert_int_equal(close_three(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_nr_guests(rec), 3);
	for (uint32_t i = 0; i < 3; i++)
		g[i] = uni_recording_guest(rec, i);
	assert_int_equal(g[0].meta->nr_vcpus, 1);
	assert_int_equal(g[1].meta->nr_vcpus, 2);
	assert_string_equal(g[1].meta->target, "kvm:pid=9");
	assert_true(g[0].meta->bias != 0 && g[1].meta->bias == 0);
	assert_true(g[2].meta->frequency == 99.5);  /* the run's */
	assert_ptr_equal(g[0].symtab, g[1].symtab); /* of one image */
	assert_string_equal(uni_symtab_path(g[1].symtab), "one");
	assert_string_equal(uni_symtab_path(g[2].symtab), "two");
	assert_int_equal(g[1].nr_watch, 1);
	assert_int_equal(g[0].nr_watch + g[2].nr_watch, 0);
	assert_int_equal(g[0].stats->samples, 1);
	assert_int_equal(g[1].stats->samples, 0);
	assert_int_equal(g[2].stats->samples, 2);
	assert_int_equal(g[2].stats->lost, 3);
	sum = uni_recording_stats(rec);
	assert_int_equal(sum->samples, 3);
	assert_int_equal(sum->weight, 15);
	assert_int_equal(sum->begin_ns, 20);
	assert_int_equal(sum->end_ns, 50);
	assert_int_equal(sum->own_cpu_ns, 6);
	assert_int_equal(sum->pause.nr, 3);
	assert_int_equal(sum->pause.sum_ns, 30);
	assert_int_equal(sum->pause.p50_ns, 4);
	assert_int_equal(sum->pause.p99_ns, 9);
	uni_recording_close(rec);
}

static void guests_are_found(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_three(p);
	struct uni_recording *rec;
	char name[UNI_GUEST_NAME_MAX];
	uint32_t n = 99;

	assert_int_equal(close_three(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	uni_recording_guest_name(rec, 1, name);
	assert_string_equal(name, "web#1"); /* two are called web */
	uni_recording_guest_name(rec, 2, name);
	assert_string_equal(name, "db");
	assert_int_equal(uni_recording_find_guest(rec, "web#0", &n, &p->err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(uni_recording_find_guest(rec, "db", &n, &p->err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(uni_recording_find_guest(rec, "1", &n, &p->err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(uni_recording_find_guest(rec, "web", &n, &p->err), -UNI_ENOENT);
	assert_non_null(strstr(p->err.msg, "web#1"));
	assert_int_equal(uni_recording_find_guest(rec, "3", &n, &p->err), -UNI_ENOENT);
	uni_recording_close(rec);
}

struct feeder {
	pthread_t thread;
	struct uni_recorder *r;
	uint32_t guest;
};

static void *feed(void *arg)
{
	struct feeder *f = arg;

	for (uint64_t n = 0; n < MANY; n++) {
		sample(f->r, f->guest, n, UNI_VCPU_RUNNING);
		if (n % 500 == 499)
			(void)uni_recorder_flush(f->r, NULL);
	}
	return NULL;
}

struct order {
	uint64_t nr[3], last_ns, wrong;
};

static int in_order(void *ctx, const struct uni_sample *s)
{
	struct order *o = ctx;

	if (s->t_ns < o->last_ns || s->guest > 2 || s->nr != 2 || s->pc[0] != 0x1004)
		o->wrong++;
	o->last_ns = s->t_ns;
	o->nr[s->guest % 3]++;
	return 0;
}

/* Guests that are paused are sampled by a thread each. */
static void samples_of_several_threads(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_three(p);
	struct feeder f[3];
	struct uni_recording *rec;
	struct order o = { 0 };

	for (uint32_t i = 0; i < 3; i++) {
		f[i] = (struct feeder){ .r = r, .guest = i };
		assert_int_equal(pthread_create(&f[i].thread, NULL, feed, &f[i]), 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(pthread_join(f[i].thread, NULL), 0);
	assert_int_equal(uni_recorder_lost(r), 0);
	assert_int_equal(close_three(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_each(rec, in_order, &o, NULL, &p->err), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(o.nr[i], MANY);
	assert_int_equal(o.wrong, 0);
	uni_recording_close(rec);
}

static void folds_to(struct place *p, struct uni_build_opts opts, const char *want)
{
	struct uni_view v = { 0 };
	struct uni_recording *rec;
	struct uni_profile *profile;
	struct uni_strbuf b;
	struct uni_sink *out;

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_profile_build(rec, &opts, &profile, NULL, &p->err), 0);
	v.profile = profile;
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_exporter_by_name("folded")->write(&v, NULL, 0, out, &p->err), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
	uni_profile_destroy(profile);
	uni_recording_close(rec);
}

static void states_are_leaves(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r;
	struct uni_record_stats st = { 0 };

	p->meta.bias = 0;
	p->meta.image_id[0] = '\0';
	r = create(p);
	add_symbols(r, 0, "app");
	for (uint8_t s = 0; s < UNI_VCPU_STATE_NR; s++)
		sample(r, 0, s, s);
	assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
	folds_to(p, (struct uni_build_opts)UNI_BUILD_DEFAULTS,
		"app;app 3\n"
		"app;app;[blocked] 1\n"
		"app;app;[idle] 1\n"
		"app;app;[kvm] 1\n"
		"app;app;[ready] 1\n"
		"app;app;[sleeping] 1\n"
		"app;app;[stolen] 1\n"
		"app;app;[vmm] 1\n"
		"app;app;[waiting] 1\n");
	folds_to(p, (struct uni_build_opts){ .filter = { .on_cpu = true } }, "app;app 3\n");
	/* Off-CPU time is on no vCPU, whatever number it has. */
	folds_to(p, (struct uni_build_opts){ .filter = { .off_cpu = true }, .per_vcpu = true },
		"[no vcpu];app;app;[blocked] 1\n"
		"[no vcpu];app;app;[ready] 1\n"
		"[no vcpu];app;app;[sleeping] 1\n"
		"[no vcpu];app;app;[waiting] 1\n");
	folds_to(p, (struct uni_build_opts){ .filter = { .vcpu = uni_only(UNI_OFF_CPU_BLOCKED) } },
		"");
}

static void guests_are_roots(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_three(p);

	add_symbols(r, 1, "one");
	add_symbols(r, 2, "two");
	sample(r, 1, 0, UNI_VCPU_RUNNING);
	sample(r, 1, 1, UNI_VCPU_HALTED);
	sample(r, 2, 1, UNI_VCPU_RUNNING);
	assert_int_equal(close_three(r, &p->err), 0);
	folds_to(p, (struct uni_build_opts)UNI_BUILD_DEFAULTS,
		"db;two ?;two 1\n"
		"web#1;one;one 1\n"
		"web#1;one;one;[idle] 1\n");
	folds_to(p, (struct uni_build_opts){ .per_vcpu = true },
		"db;vcpu 1;two ?;two 1\n"
		"web#1;vcpu 0;one;one 1\n"
		"web#1;vcpu 1;one;one;[idle] 1\n");
	folds_to(p, (struct uni_build_opts){ .filter = { .guest = uni_only(1) } },
		"one;one 1\n"
		"one;one;[idle] 1\n");
}

/* Formats of single samples: each by its own guest's names, and the filter holds. */
static void single_samples_are_told_apart(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_three(p);
	const struct uni_export_opt opt = { "symbols", "1" };
	struct uni_sample_filter filter = { 0 };
	struct uni_view v = { .filter = &filter };
	struct uni_strbuf b;
	struct uni_sink *out;

	add_symbols(r, 1, "one");
	add_symbols(r, 2, "two");
	sample(r, 1, 0, UNI_VCPU_RUNNING);
	sample(r, 2, 1, UNI_VCPU_RUNNING);
	sample(r, 2, 2, UNI_VCPU_STOLEN);
	assert_int_equal(close_three(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &v.samples, &p->err), 0);
	uni_strbuf_init(&b);
	for (unsigned i = 0; i < 3; i++) {
		filter.guest = i == 0 ? (struct uni_only){ 0 } : uni_only(2);
		filter.on_cpu = i == 2;
		uni_strbuf_reset(&b);
		assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
		assert_int_equal(
			uni_exporter_by_name("uniprof")->write(&v, &opt, 1, out, &p->err), 0);
		assert_int_equal(uni_sink_close(out, NULL), 0);
		assert_string_equal(strchr(strchr(b.s, '\n') + 1, '\n') + 2,
			i == 0	 ? "one+0x4\none+0x8\n1\n\n"
				   "two+0x4\ntwo+0x8\n0\n\ntwo+0x4\ntwo+0x8\n0\n\n"
			: i == 1 ? "two+0x4\ntwo+0x8\n0\n\ntwo+0x4\ntwo+0x8\n0\n\n"
				 : "two+0x4\ntwo+0x8\n0\n\n");
	}
	uni_strbuf_deinit(&b);
	uni_recording_close(v.samples);
}

/* A recorder that died: each guest's numbers are made from its own samples. */
static void open_sessions_are_counted_by_guest(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_three(p);
	struct uni_recording *rec;
	struct uni_recorded_guest g;

	for (uint64_t n = 0; n < 100; n++) {
		sample(r, 0, n, n % 4 == 0 ? UNI_VCPU_STOLEN : UNI_VCPU_RUNNING);
		sample(r, 2, n, UNI_VCPU_RUNNING);
	}
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_false(uni_recording_was_closed(rec));
	g = uni_recording_guest(rec, 0);
	assert_int_equal(g.stats->samples, 100);
	assert_int_equal(g.stats->state[UNI_VCPU_STOLEN], 25);
	assert_int_equal(g.stats->truncated, 0);
	assert_int_equal(g.stats->guessed, 0);
	assert_int_equal(uni_recording_guest(rec, 1).stats->samples, 0);
	g = uni_recording_guest(rec, 2);
	assert_int_equal(g.stats->truncated, 100);
	assert_int_equal(g.stats->guessed, 100);
	assert_int_equal(g.stats->weight, 100);
	assert_int_equal(g.stats->ticks, 50);
	uni_recording_close(rec);
	assert_int_equal(close_three(r, &p->err), 0);
}

static void replaced_with_all_guests(void **state)
{
	struct place *p = *state;
	char file[128];

	assert_int_equal(close_three(create_three(p), &p->err), 0);
	(void)snprintf(file, sizeof(file), "%s/guest-2/metadata", p->path);
	assert_int_equal(access(file, F_OK), 0);
	{
		struct uni_record_stats st = { 0 };
		struct uni_recorder *r;

		assert_int_equal(uni_recorder_create(p->path, &p->meta, true, &r, &p->err), 0);
		assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
	}
	(void)snprintf(file, sizeof(file), "%s/guest-2", p->path);
	assert_int_not_equal(access(file, F_OK), 0);
	assert_int_equal(read_all(p, true, NULL).nr, 0);
}

static void too_many_are_refused(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r;
	struct uni_record_stats st = { 0 };
	uint32_t guest = 0;

	p->meta.nr_vcpus = UNI_VCPU_MAX;
	r = create(p);
	for (unsigned i = 1; i < UNI_SESSION_VCPUS_MAX / UNI_VCPU_MAX; i++)
		assert_int_equal(uni_recorder_add_guest(r, &p->meta, &guest, &p->err), 0);
	assert_int_equal(uni_recorder_add_guest(r, &p->meta, &guest, &p->err), -UNI_EINVAL);
	assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
	assert_int_equal(read_all(p, true, NULL).nr, 0);
}

static struct uni_session *parse(const char *text, struct uni_err *err)
{
	struct uni_session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	if (uni_session_parse(text, strlen(text), s, err) == 0)
		return s;
	free(s);
	return NULL;
}

#define UUID "\"trace_uuid\": \"12345678-0102-4304-8506-0708090a0bff\""

static void version_1_is_read(void **state)
{
	static const char text[] =
		"{\"format\": \"uniscope-session\", \"version\": 1, \"state\": \"closed\",\n"
		"\"guests\": [{\"folder\": \"guest-0\", \"trace_layout\": 1, \"nr_vcpus\": "
		"2,\n" UUID "}],\n"
		"\"statistics\": {\"samples\": 10, \"halted\": 4, \"stop\": {\"root\": 9}}}";
	struct place *p = *state;
	struct uni_session *s = parse(text, &p->err);

	assert_non_null(s);
	assert_int_equal(s->nr_guests, 1);
	assert_int_equal(s->guest[0]->stats.samples, 10);
	assert_int_equal(s->guest[0]->stats.weight, 10);
	assert_int_equal(s->guest[0]->stats.state[UNI_VCPU_HALTED], 4);
	assert_int_equal(s->guest[0]->stats.state[UNI_VCPU_RUNNING], 6);
	assert_int_equal(s->guest[0]->stats.stop[UNI_STOP_ROOT], 9);
	uni_session_free_parsed(s);
	free(s);
}

static void lists_of_guests_are_checked(void **state)
{
	static const char *const guests[] = {
		"",
		"1",
		"{\"folder\": \"guest-1\", \"trace_layout\": 2, \"nr_vcpus\": 2," UUID "}",
		"{\"folder\": \"guest-0\", \"trace_layout\": 2, \"nr_vcpus\": 2," UUID "}, {}",
		"{\"folder\": \"guest-0\", \"trace_layout\": 2, \"nr_vcpus\": 2," UUID "},"
		"{\"folder\": \"guest-0\", \"trace_layout\": 2, \"nr_vcpus\": 2," UUID "}",
	};
	struct place *p = *state;
	char text[1024];

	for (size_t i = 0; i < uni_array_len(guests); i++) {
		(void)snprintf(text, sizeof(text),
			"{\"format\": \"uniscope-session\", \"version\": 2, \"state\": \"open\", "
			"\"guests\": [%s]}",
			guests[i]);
		p->err.code = 0;
		assert_null(parse(text, &p->err));
		assert_true(p->err.msg[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_guest_has_its_own),
		T(guests_are_found),
		T(samples_of_several_threads),
		T(states_are_leaves),
		T(guests_are_roots),
		T(single_samples_are_told_apart),
		T(open_sessions_are_counted_by_guest),
		T(replaced_with_all_guests),
		T(too_many_are_refused),
		T(version_1_is_read),
		T(lists_of_guests_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
