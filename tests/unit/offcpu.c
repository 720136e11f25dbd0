/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads in a session: their table, filters by them, and the trees below them. */
#include "session_place.h"

#include "base/checked.h"
#include "base/strbuf.h"
#include "format/export.h"
#include "profile/build.h"

static void sample(struct uni_recorder *r, uint64_t n, uint32_t thread, uint8_t state)
{
	const uint64_t pc[1] = { 0x1000 + thread };
	const struct uni_sample s = {
		.t_ns = T0 + n, .weight = 1, .thread = thread, .state = state, .nr = 1, .pc = pc
	};

	uni_recorder_sample(r, &s);
}

/* A worker that runs and is ready, two that wait, one of them without a name. */
static struct uni_recorder *create_threads(struct place *p)
{
	static const struct uni_record_thread threads[] = {
		{ .id = 1, .object = 0x100, .number = 7, .has_number = true, .name = "worker" },
		{ .id = 2, .object = 0x200, .name = "reader-1" },
		{ .id = 3, .object = UINT64_MAX },
	};
	struct uni_recorder *r;

	p->meta.threads = true;
	p->meta.bias = 0;
	(void)snprintf(p->meta.model, sizeof(p->meta.model), "lab");
	r = create(p);
	for (size_t i = 0; i < uni_array_len(threads); i++)
		assert_int_equal(uni_recorder_thread(r, 0, &threads[i]), 0);
	/* In the order of ids, or not at all. */
	assert_int_not_equal(uni_recorder_thread(r, 0, &threads[1]), 0);
	sample(r, 1, 1, UNI_VCPU_RUNNING);
	sample(r, 2, 1, UNI_OFF_CPU_READY);
	sample(r, 3, 2, UNI_OFF_CPU_BLOCKED);
	sample(r, 4, 2, UNI_OFF_CPU_BLOCKED);
	sample(r, 5, 3, UNI_OFF_CPU_SLEEPING);
	sample(r, 6, 0, UNI_VCPU_HALTED);
	return r;
}

static int ids(void *ctx, const struct uni_sample *s)
{
	uint32_t **next = ctx;

	*(*next)++ = s->thread;
	return 0;
}

static void travel_with_the_session(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_threads(p);
	struct uni_record_stats st = { 0 };
	uint32_t seen[8] = { 0 }, *next = seen;
	struct uni_recording *rec;
	struct uni_recorded_guest g;
	char name[UNI_GUEST_NAME_MAX];

	assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	g = uni_recording_guest(rec, 0);
	assert_int_equal(g.nr_thread, 3);
	assert_true(g.meta->threads);
	assert_string_equal(g.meta->model, "lab");
	assert_string_equal(g.thread[0].name, "worker");
	assert_true(g.thread[0].has_number && g.thread[0].number == 7);
	assert_true(!g.thread[1].has_number && g.thread[1].object == 0x200);
	assert_true(g.thread[2].object == UINT64_MAX && g.thread[2].id == 3);
	uni_record_thread_name(g.thread, g.nr_thread, 3, name);
	assert_string_equal(name, "0xffffffffffffffff");
	uni_record_thread_name(g.thread, g.nr_thread, 4, name);
	assert_string_equal(name, "[unknown]");
	assert_int_equal(uni_recording_each(rec, ids, &next, NULL, &p->err), 0);
	assert_memory_equal(seen, ((uint32_t[8]){ 1, 1, 2, 2, 3, 0 }), sizeof(seen));
	uni_recording_close(rec);
}

/* A recorder that is killed; here, one that is looked at while it records. */
static void names_are_there_before_the_end(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_threads(p);
	struct uni_recording *rec;
	const struct timespec second = { .tv_sec = 1, .tv_nsec = 100000000 };

	(void)nanosleep(&second, NULL);
	sample(r, 7, 1, UNI_VCPU_RUNNING);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_false(uni_recording_was_closed(rec));
	assert_int_equal(uni_recording_guest(rec, 0).nr_thread, 3);
	/* Ticks are counted by vCPUs: two running, one halted. */
	assert_int_equal(uni_recording_stats(rec)->ticks, 3);
	assert_int_equal(uni_recording_stats(rec)->state[UNI_OFF_CPU_BLOCKED], 2);
	uni_recording_close(rec);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
}

static void folds_to(
	struct place *p, const char *thread, struct uni_build_opts opts, const char *want)
{
	struct uni_view v = { 0 };
	struct uni_thread_set *set = NULL;
	struct uni_recording *rec;
	struct uni_profile *profile;
	struct uni_strbuf b;
	struct uni_sink *out;

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	if (thread != NULL)
		assert_int_equal(uni_recording_find_threads(rec, thread, &set, &p->err), 0);
	opts.filter.threads = set;
	assert_int_equal(uni_profile_build(rec, &opts, &profile, NULL, &p->err), 0);
	v.profile = profile;
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_exporter_by_name("folded")->write(&v, NULL, 0, out, &p->err), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
	uni_profile_destroy(profile);
	uni_thread_set_destroy(set);
	uni_recording_close(rec);
}

static void trees_and_filters(void **state)
{
	struct place *p = *state;
	struct uni_record_stats st = { 0 };
	struct uni_build_opts all = { 0 }, off = { .per_thread = true, .filter.off_cpu = true },
			      on = { .per_thread = true, .filter.on_cpu = true };
	struct uni_thread_set *set;
	struct uni_recording *rec;

	assert_int_equal(close_with(create_threads(p), &st, NULL, 0, &p->err), 0);
	folds_to(p, NULL, all,
		"0x1000;[idle] 1\n0x1001 1\n0x1001;[ready] 1\n0x1002;[blocked] 2\n"
		"0x1003;[sleeping] 1\n");
	folds_to(p, NULL, off,
		"thread 0xffffffffffffffff;0x1003;[sleeping] 1\n"
		"thread reader-1;0x1002;[blocked] 2\n"
		"thread worker;0x1001;[ready] 1\n");
	folds_to(p, NULL, on, "thread worker;0x1001 1\n");
	folds_to(p, "reader-*", all, "0x1002;[blocked] 2\n");
	folds_to(p, "0x*", off, "thread 0xffffffffffffffff;0x1003;[sleeping] 1\n");
	folds_to(p, "*", all,
		"0x1001 1\n0x1001;[ready] 1\n0x1002;[blocked] 2\n0x1003;[sleeping] 1\n");
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_find_threads(rec, "read", &set, &p->err), -UNI_ENOENT);
	assert_non_null(strstr(p->err.msg, "it has worker, reader-1, 0xff"));
	uni_recording_close(rec);
}

/* Redis on Unikraft has five that are called init. */
static void threads_of_one_name_stay_apart(void **state)
{
	static const struct uni_record_thread threads[] = {
		{ .id = 1, .object = 0x100, .name = "init" },
		{ .id = 2, .object = 0x200, .name = "init" },
		{ .id = 3, .object = 0x300, .number = 9, .has_number = true, .name = "init" },
		{ .id = 4, .object = 0x400, .name = "initial" },
		{ .id = 5, .object = 0x500 },
		{ .id = 6, .object = 0x600 },
	};
	struct place *p = *state;
	struct uni_record_stats st = { 0 };
	struct uni_build_opts by_thread = { .per_thread = true };
	struct uni_recorder *r;

	p->meta.bias = 0;
	r = create(p);
	for (uint32_t i = 0; i < uni_array_len(threads); i++) {
		assert_int_equal(uni_recorder_thread(r, 0, &threads[i]), 0);
		sample(r, i, i + 1, UNI_VCPU_RUNNING);
	}
	assert_int_equal(close_with(r, &st, NULL, 0, &p->err), 0);
	folds_to(p, NULL, by_thread,
		"thread 0x500;0x1005 1\nthread 0x600;0x1006 1\nthread init 0x100;0x1001 1\n"
		"thread init 0x200;0x1002 1\nthread init 9;0x1003 1\nthread initial;0x1004 1\n");
	folds_to(p, "init", by_thread,
		"thread init 0x100;0x1001 1\nthread init 0x200;0x1002 1\nthread init 9;0x1003 1\n");
	folds_to(p, "init 9", by_thread, "thread init 9;0x1003 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(travel_with_the_session),
		T(names_are_there_before_the_end),
		T(trees_and_filters),
		T(threads_of_one_name_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
