/* SPDX-License-Identifier: BSD-2-Clause */
/* A place for a session, and samples that can be told right from wrong by their time alone. */
#ifndef UNI_TESTS_SESSION_PLACE_H
#define UNI_TESTS_SESSION_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/recording.h"

#define T0 5000000000ull

/* A folder of our own with the name of a session in it that does not exist yet. */
struct place {
	char dir[32], path[64];
	struct uni_err err;
	struct uni_record_meta meta;
};

static inline int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return 1;
	*state = p;
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/uni-rec-XXXXXX");
	if (mkdtemp(p->dir) == NULL)
		return 1;
	(void)snprintf(p->path, sizeof(p->path), "%s/a.uniscope", p->dir);
	(void)snprintf(p->meta.target, sizeof(p->meta.target), "gdb:unix=/run/q");
	(void)snprintf(p->meta.arch, sizeof(p->meta.arch), "x86_64");
	(void)snprintf(p->meta.command, sizeof(p->meta.command), "record \xff\x1b[31m");
	(void)snprintf(p->meta.image_path, sizeof(p->meta.image_path), "/boot/k \"x\".elf");
	(void)snprintf(p->meta.image_id, sizeof(p->meta.image_id), "1234ab");
	p->meta.bias = 0xffffffff80000000ull;
	p->meta.nr_vcpus = 3;
	p->meta.frequency = 99.5;
	p->meta.info.pid = 77;
	p->meta.realtime_offset_ns = 1700000000000000001ull;
	return 0;
}

static inline int teardown(void **state)
{
	struct place *p = *state;
	char cmd[64];
	pid_t pid = fork();

	if (pid == 0) {
		(void)snprintf(cmd, sizeof(cmd), "%s", p->dir);
		(void)execlp("rm", "rm", "-rf", cmd, (char *)NULL);
		_exit(1);
	}
	(void)waitpid(pid, NULL, 0);
	uni_record_trace_deinit(&p->meta.trace);
	free(p);
	return 0;
}

static inline struct uni_recorder *create(struct place *p)
{
	struct uni_recorder *r = NULL;

	assert_int_equal(uni_recorder_create(p->path, &p->meta, false, &r, &p->err), 0);
	return r;
}

/* Sample n, which stands for two: one each ms, vCPU n % 3, chain and stop reason from n. */
static inline void put(struct uni_recorder *r, uint64_t n)
{
	uint64_t pc[8] = { 0x1000 + n % 100, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000, 0x7000,
		0x8000 };
	uint8_t flags[8] = { 0, UNI_FRAME_GUESS };
	struct uni_sample s = { .t_ns = T0 + n * UNI_NSEC_PER_MSEC,
		.weight = 2,
		.vcpu = (uint32_t)(n % 3),
		.pause_ns = (uint32_t)(1000 + n % 50),
		.stop = n % 10 == 0 ? UNI_STOP_FAULT : UNI_STOP_ROOT,
		.nr = (uint16_t)(1 + n % 8),
		.pc = pc,
		.flags = flags };

	uni_recorder_sample(r, &s);
}

struct count {
	uint64_t nr, wrong, last_ns, stop_at;
};

static inline int count(void *ctx, const struct uni_sample *s)
{
	struct count *c = ctx;
	uint64_t n = (s->t_ns - T0) / UNI_NSEC_PER_MSEC;

	if (s->t_ns < c->last_ns || s->vcpu != n % 3 || s->nr != 1 + n % 8 ||
		s->pc[0] != 0x1000 + n % 100 || s->pause_ns != 1000 + n % 50)
		c->wrong++;
	if (s->nr > 1 && (s->pc[1] != 0x2000 || s->flags[1] != UNI_FRAME_GUESS))
		c->wrong++;
	c->last_ns = s->t_ns;
	return ++c->nr == c->stop_at ? 5 : 0;
}

/* Opens and reads it all; wrong samples fail the test. */
static inline struct count read_all(struct place *p, bool closed, uint64_t *torn_ret)
{
	struct uni_recording *r = NULL;
	struct count c = { 0 };

	assert_int_equal(uni_recording_open(p->path, &r, &p->err), 0);
	assert_int_equal(uni_recording_was_closed(r), closed);
	assert_int_equal(uni_recording_each(r, count, &c, torn_ret, &p->err), 0);
	assert_int_equal(c.wrong, 0);
	uni_recording_close(r);
	return c;
}

/* Closes a session of one guest. */
static inline int close_with(struct uni_recorder *r, const struct uni_record_stats *stats,
	const struct uni_watch *watch, size_t nr, struct uni_err *err)
{
	const struct uni_guest_result result = { .stats = stats, .watch = watch, .nr_watch = nr };

	return uni_recorder_close(r, &result, 1, err);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#endif
