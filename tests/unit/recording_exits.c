/* SPDX-License-Identifier: BSD-2-Clause */
/* VM exits in a session: written beside the samples, read back, counted by weight. */
#include "session_place.h"

#include <fcntl.h>
#include <stdio.h>

#define NR 5000u

static void put_exit(struct uni_recorder *r, uint64_t n)
{
	const uint64_t pc[2] = { 0x1000 + n % 7, 0x2000 };
	const uint8_t flags[2] = { 0, 0 };
	const struct uni_stream_exit e = { .t_ns = T0 + n * 1000,
		.weight = 10,
		.host_ns = n,
		.info = 0x80,
		.vcpu = (uint32_t)(n % 3),
		.reason = 2,
		.info_kind = UNI_EXIT_INFO_PORT,
		.nr = 2,
		.pc = pc,
		.flags = flags };

	uni_recorder_exit(r, &e);
}

struct seen {
	uint64_t nr, wrong, last_ns, stop_at;
};

static int look(void *ctx, const struct uni_stream_exit *e)
{
	struct seen *s = ctx;
	uint64_t n = (e->t_ns - T0) / 1000;

	if (e->t_ns < s->last_ns || e->vcpu != n % 3 || e->host_ns != n || e->guest != 0 ||
		e->pc[0] != 0x1000 + n % 7 || e->weight != 10)
		s->wrong++;
	s->last_ns = e->t_ns;
	return ++s->nr == s->stop_at ? 7 : 0;
}

static struct seen read_exits(struct place *p, uint64_t *torn_ret, uint64_t *exits_ret)
{
	struct uni_recording *rec = NULL;
	struct seen s = { 0 };

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	*exits_ret = uni_recording_stats(rec)->exits;
	assert_int_equal(uni_recording_each_exit(rec, look, &s, torn_ret, &p->err), 0);
	assert_int_equal(s.wrong, 0);
	uni_recording_close(rec);
	return s;
}

static struct uni_recorder *create_with_exits(struct place *p)
{
	p->meta.exits_every = 10;
	return create(p);
}

static void beside_samples(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_with_exits(p);
	struct uni_record_stats stats = { .exits = 1, .exits_lost = 3 };
	struct uni_recording *rec;
	struct seen s = { .stop_at = 5 };
	uint64_t torn = 9, exits;

	for (uint64_t n = 0; n < NR; n++) {
		put(r, n);
		put_exit(r, n);
	}
	assert_int_equal(close_with(r, &stats, NULL, 0, &p->err), 0);
	assert_int_equal(read_all(p, true, &torn).nr, NR);
	assert_int_equal(read_exits(p, &torn, &exits).nr, NR);
	assert_int_equal(torn, 0);
	assert_int_equal(exits, NR * 10); /* as written, not as told */
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_meta(rec)->exits_every, 10);
	assert_int_equal(uni_recording_stats(rec)->exits_lost, 3);
	assert_int_equal(uni_recording_each_exit(rec, look, &s, NULL, &p->err), 7); /* passed on */
	uni_recording_close(rec);
}

static void a_killed_recorder_leaves_them(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_with_exits(p);
	uint64_t torn, exits;

	for (uint64_t n = 0; n < NR; n++)
		put_exit(r, n);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	assert_int_equal(read_exits(p, &torn, &exits).nr, NR);
	assert_int_equal(exits, NR * 10);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, &p->err), 0);
	/* Such a session can be replaced, with these files, too. */
	assert_int_equal(uni_recorder_create(p->path, &p->meta, true, &r, &p->err), 0);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, &p->err), 0);
	assert_int_equal(read_exits(p, &torn, &exits).nr, 0);
}

static void what_cannot_be_written_is_counted(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_with_exits(p);
	struct uni_stream_exit e = { .weight = 5, .vcpu = UNI_VCPU_MAX };
	struct uni_recording *rec;

	uni_recorder_exit(r, &e); /* no such vCPU */
	e.vcpu = 0;
	e.isa = UNI_EXIT_ISA_NR;
	uni_recorder_exit(r, &e);
	e.isa = 0;
	uni_recorder_exit(r, &e);
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_recording_stats(rec)->exits, 5);
	assert_int_equal(uni_recording_stats(rec)->exits_lost, 10);
	assert_int_equal(uni_recording_stats(rec)->lost, 0);
	uni_recording_close(rec);
}

static void those_of_a_plugged_in_vcpu_are_written(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_with_exits(p);
	struct uni_stream_exit e = { .t_ns = T0, .weight = 5, .vcpu = 5 };
	struct uni_recording *rec;

	uni_recorder_exit(r, &e);
	assert_int_equal(uni_recorder_flush(r, &p->err), 0);
	for (unsigned closed = 0; closed < 2; closed++) {
		if (closed)
			assert_int_equal(
				close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, NULL), 0);
		assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
		assert_int_equal(uni_recording_meta(rec)->nr_vcpus, 6);
		assert_int_equal(uni_recording_stats(rec)->exits, 5);
		uni_recording_close(rec);
	}
}

/* A packet of samples in a file of exits is none of ours. */
static void swapped_files_are_torn(void **state)
{
	struct place *p = *state;
	struct uni_recorder *r = create_with_exits(p);
	char from[512], to[512];
	uint64_t torn = 0, exits;

	for (uint64_t n = 0; n < 30; n++) {
		put(r, n);
		put_exit(r, n);
	}
	assert_int_equal(close_with(r, &(struct uni_record_stats){ 0 }, NULL, 0, &p->err), 0);
	(void)snprintf(from, sizeof(from), "%s/guest-0/samples-vcpu1", p->path);
	(void)snprintf(to, sizeof(to), "%s/guest-0/exits-vcpu1", p->path);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(read_exits(p, &torn, &exits).nr, 20);
	assert_int_equal(torn, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(beside_samples),
		T(a_killed_recorder_leaves_them),
		T(what_cannot_be_written_is_counted),
		T(those_of_a_plugged_in_vcpu_are_written),
		T(swapped_files_are_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
