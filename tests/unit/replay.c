/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/vcpus.h"
#include "../support/guest.h"
#include "base/checked.h"
#include "base/io.h"
#include "backend/guard.h"
#include "backend/replay/file.h"
#include "backend/replay/writer.h"

#define BASE  0x10000ull
#define BLOCK 256u

/* A target of one array whose registers count the snapshots. */
struct fake {
	struct uni_target t;
	struct guest g;
	unsigned snaps, held, detached;
	unsigned *detached_ret;
};

static struct fake *fake_of(struct uni_target *t)
{
	return (struct fake *)t;
}

static unsigned fake_caps(struct uni_target *t)
{
	return UNI_CAP_HOLD | UNI_CAP_STREAM | UNI_CAP_WRITE_TEXT;
}

static int fake_nr_vcpus(struct uni_target *t)
{
	return 2;
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fake *f = fake_of(t);

	if (f->snaps == 100)
		return -UNI_EAGAIN;
	f->held++;
	f->snaps++;
	for (unsigned i = 0; i < 2; i++) {
		if (!uni_vcpuset_has(set, i))
			continue;
		memset(&ret[i], 0, sizeof(ret[i]));
		ret[i].pc = 0x1000 * f->snaps + i;
		ret[i].sp = ~ret[i].pc;
		ret[i].pc_valid = f->snaps != 2; /* each of the two is valid, or neither */
		ret[i].sp_valid = f->snaps == 2;
		ret[i].state = UNI_VCPU_HALTED;
		uni_regs_set(&ret[i], UNI_X86_R15, 15);
		uni_regs_set_sys(&ret[i], UNI_X86_CR3, 0x3000);
	}
	return 0;
}

static int fake_release(struct uni_target *t)
{
	fake_of(t)->held = 0;
	return 0;
}

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return fake_of(t)->g.m;
}

static void fake_info(struct uni_target *t, struct uni_target_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->pid = 77;
}

static bool fake_alive(struct uni_target *t)
{
	return true;
}

static void fake_detach(struct uni_target *t)
{
	++*fake_of(t)->detached_ret;
}

static const struct uni_target_ops fake_ops = {
	.scheme = "fake",
	.caps = fake_caps,
	.nr_vcpus = fake_nr_vcpus,
	.snap = fake_snap,
	.release = fake_release,
	.gmem = fake_gmem,
	.info = fake_info,
	.alive = fake_alive,
	.detach = fake_detach,
};

struct fixture {
	char dir[32], path[64], spec[96];
	struct fake fake;
	unsigned detached;
};

static void open_fixture(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	memcpy(f->dir, "/tmp/uni-replay-XXXXXX", sizeof("/tmp/uni-replay-XXXXXX"));
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/r", f->dir);
	(void)snprintf(f->spec, sizeof(f->spec), "replay:file=%s,once=1", f->path);
	/* The memory neither begins nor ends with a block. */
	assert_true(guest_init(&f->fake.g, BASE + 100, 5000, UNI_GMEM_PHYSICAL));
	for (size_t i = 0; i < f->fake.g.size; i++)
		f->fake.g.ram[i] = (uint8_t)(i * 7);
	uni_gmem_set_granule(f->fake.g.m, BLOCK);
	f->fake.t = (struct uni_target){ .ops = &fake_ops, .arch = &uni_arch_x86_64 };
	f->fake.detached_ret = &f->detached;
}

static void close_fixture(struct fixture *f)
{
	guest_deinit(&f->fake.g);
	(void)unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
}

static struct uni_target *attach(const char *text)
{
	struct uni_target *t = NULL;
	struct uni_err err = { 0 };
	struct uni_spec spec;

	assert_int_equal(uni_spec_parse(text, &spec, &err), 0);
	if (uni_target_attach(&spec, NULL, &t, &err) != 0)
		fail_msg("%s", err.msg);
	return t;
}

static int read_at(struct uni_target *t, uint64_t addr, void *buf, size_t len)
{
	return uni_gmem_read(t->ops->gmem(t), uni_gpa_of(addr), buf, len);
}

/* Three snapshots are saved through the tee; the bytes read change in between. */
static void save(struct fixture *f)
{
	struct uni_replay_saved saved;
	struct uni_target *t;
	struct uni_regs regs[2];
	uint8_t buf[600];

	assert_int_equal(uni_replay_tee(&f->fake.t, f->path, &t, NULL), 0);
	assert_int_equal(t->ops->caps(t), UNI_CAP_HOLD);
	assert_int_equal(t->ops->nr_vcpus(t), 2);
	assert_int_equal(read_at(t, BASE + 4000, buf, 1), 0); /* before the first snapshot */
	for (unsigned i = 0; i < 3; i++) {
		struct uni_pause p;

		assert_int_equal(uni_pause_begin(&p, t, VCPUS(i == 1 ? 2 : 3), regs), 0);
		assert_int_equal(f->fake.held, 1);
		assert_int_equal(read_at(t, BASE + 100, buf, 8), 0); /* a block that begins early */
		assert_memory_equal(buf, f->fake.g.ram, 8);
		assert_int_equal(read_at(t, BASE + 700, buf, 600), 0); /* blocks in part */
		assert_memory_equal(buf, f->fake.g.ram + 600, 600);
		assert_int_equal(read_at(t, BASE + 5099, buf, 1), 0); /* the last byte */
		assert_int_equal(read_at(t, BASE + 5099, buf, 2), -UNI_ERANGE);
		assert_int_equal(uni_pause_end(&p), 0);
		assert_int_equal(f->fake.held, 0);
		f->fake.g.ram[0]++;
	}
	f->fake.snaps = 100;
	assert_int_equal(t->ops->snap(t, VCPUS(3), regs, 0), -UNI_EAGAIN);
	assert_int_equal(uni_replay_tee_finish(t, &saved, NULL), 0);
	assert_int_equal(saved.snapshots, 3);
	assert_int_equal(saved.lost_blocks, 0);
	assert_int_equal(uni_replay_tee_finish(t, NULL, NULL), 0); /* once more does no harm */
	uni_target_detach(t);
	assert_int_equal(f->detached, 1);
}

static void what_was_seen_is_served(void **state)
{
	struct uni_target_info info;
	struct uni_regs regs[2];
	struct uni_target *t;
	struct fixture f;
	uint8_t buf[600];

	open_fixture(&f);
	save(&f);
	t = attach(f.spec);
	assert_int_equal(t->ops->nr_vcpus(t), 2);
	assert_int_equal(
		t->ops->caps(t), UNI_CAP_HOLD | UNI_CAP_NO_PAUSE | UNI_CAP_DEAD | UNI_CAP_SYSREGS);
	assert_int_equal(uni_gmem_granule(t->ops->gmem(t)), BLOCK);
	t->ops->info(t, &info);
	assert_int_equal(info.mem_bytes, 5000);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(t->ops->alive(t));
		memset(regs, 0xee, sizeof(regs));
		assert_int_equal(t->ops->snap(t, VCPUS(3), regs, UNI_SNAP_HOLD), 0);
		assert_true(regs[1].pc == 0x1000 * (i + 1) + 1 && regs[1].sp == ~regs[1].pc);
		assert_int_equal(regs[1].pc_valid, i != 1);
		assert_int_equal(regs[1].sp_valid, i == 1);
		assert_true(regs[1].valid == 1u << UNI_X86_R15 && regs[1].r[UNI_X86_R15] == 15);
		assert_true(regs[1].sys_valid == 1u << UNI_X86_CR3);
		assert_true(regs[1].sys[UNI_X86_CR3] == 0x3000);
		assert_int_equal(regs[0].state, i == 1 ? UNI_VCPU_UNKNOWN : UNI_VCPU_HALTED);
		assert_int_equal(read_at(t, BASE + 100, buf, 100), 0);
		assert_int_equal(buf[0], i); /* as it was then */
		assert_int_equal(buf[1], 7);
		assert_int_equal(read_at(t, BASE + 600, buf, 600), 0);
		assert_memory_equal(buf, f.fake.g.ram + 500, 600);
		assert_int_equal(read_at(t, BASE + 4000, buf, 1), 0);
		assert_int_equal(read_at(t, BASE + 5098, buf, 2), 0);
		assert_int_equal(read_at(t, BASE + 2000, buf, 1), -UNI_EFAULT); /* never read */
		assert_int_equal(read_at(t, BASE, buf, 1), -UNI_ERANGE); /* in a block, no memory */
		assert_int_equal(t->ops->release(t), 0);
	}
	assert_int_equal(t->ops->snap(t, VCPUS(3), regs, 0), -UNI_EGONE);
	assert_false(t->ops->alive(t));
	uni_target_detach(t);
	close_fixture(&f);
}

static void it_starts_again(void **state)
{
	struct uni_regs regs[2];
	struct uni_target *t;
	struct fixture f;
	char spec[96];
	uint8_t b;

	open_fixture(&f);
	save(&f);
	(void)snprintf(spec, sizeof(spec), "replay:file=%s", f.path);
	t = attach(spec);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
		assert_true(i % 3 == 1 || regs[0].pc == 0x1000 * (i % 3 + 1));
		assert_int_equal(read_at(t, BASE + 100, &b, 1), 0);
		assert_int_equal(b, i % 3);
	}
	uni_target_detach(t);
	close_fixture(&f);
}

/* A recording ends with the last moment; if attaching took that, too, it has all of them. */
static void a_recording_has_each_once(void **state)
{
	static const struct {
		const char *key;
		unsigned taken, nr;
		bool ends;
	} c[] = { { "", 1, 2, true }, { "", 3, 3, true }, { ",once=1", 3, 0, true },
		{ ",once=0", 1, 2, false } };
	struct uni_regs regs[2];
	struct uni_target *t;
	struct fixture f;
	char spec[96];
	uint8_t b;

	open_fixture(&f);
	save(&f);
	for (unsigned k = 0; k < sizeof(c) / sizeof(c[0]); k++) {
		(void)snprintf(spec, sizeof(spec), "replay:file=%s%s", f.path, c[k].key);
		t = attach(spec);
		for (unsigned i = 0; i < c[k].taken; i++)
			assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
		t->ops->begin_run(t);
		for (unsigned i = 3 - c[k].nr; i < 3; i++) {
			assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
			assert_int_equal(read_at(t, BASE + 100, &b, 1), 0);
			assert_int_equal(b, i);
		}
		assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), c[k].ends ? -UNI_EGONE : 0);
		assert_int_equal(t->ops->alive(t), !c[k].ends);
		uni_target_detach(t);
	}
	close_fixture(&f);
}

/* Unchanged blocks are written once: 500 snapshots of the same memory stay small. */
static void nothing_is_written_twice(void **state)
{
	struct uni_replay_writer *w;
	struct uni_regs regs[2] = { 0 };
	uint8_t block[BLOCK] = { 0 };
	struct fixture f;
	uint64_t first;

	open_fixture(&f);
	assert_int_equal(uni_replay_writer_create(
				 f.path, &uni_arch_x86_64, 2, f.fake.g.m, BLOCK, 0, &w, NULL),
		0);
	for (unsigned i = 0; i < 2000; i++) /* enough to make its table grow */
		uni_replay_writer_block(w, (uint64_t)i * BLOCK, block);
	first = uni_replay_writer_bytes(w);
	for (unsigned i = 0; i < 2000; i++)
		uni_replay_writer_block(w, (uint64_t)i * BLOCK, block);
	assert_int_equal(uni_replay_writer_bytes(w), first);
	uni_replay_writer_snapshot(w, regs);
	assert_int_equal(uni_replay_writer_bytes(w) - first, 8 + 2 * (96 + 17 * 8));
	assert_int_equal(uni_replay_writer_close(w, NULL), 0);
	uni_target_detach(attach(f.spec));
	close_fixture(&f);
}

/* Cut off anywhere it loads up to the last whole record, or is refused; it never crashes. */
static void cut_off_and_changed_files(void **state)
{
	struct uni_replay_file r;
	struct uni_err err = { 0 };
	struct fixture f;
	char *data, *copy;
	size_t size;

	open_fixture(&f);
	save(&f);
	assert_int_equal(uni_read_file(f.path, 1 << 20, &data, &size, &err), 0);
	for (size_t n = 0; n <= size; n++) {
		copy = malloc(n + 1);
		assert_non_null(copy);
		memcpy(copy, data, n);
		copy = realloc(copy, n > 0 ? n : 1);
		err.code = 0;
		if (uni_replay_file_init(&r, copy, n, &err) == 0) {
			assert_true(r.snap.nr >= 1);
			assert_true(n < size || !r.truncated);
			uni_replay_file_deinit(&r);
		} else {
			assert_int_not_equal(err.code, 0);
		}
		free(copy);
	}
	for (size_t bit = 0; bit < 64 * 8; bit++) { /* the header */
		data[bit / 8] ^= (char)(1 << bit % 8);
		if (uni_replay_file_init(&r, data, size, NULL) == 0)
			uni_replay_file_deinit(&r);
		data[bit / 8] ^= (char)(1 << bit % 8);
	}
	free(data);
	close_fixture(&f);
}

static void bad_specs_say_why(void **state)
{
	static const struct {
		const char *spec;
		int rc;
		const char *says;
	} t[] = {
		{ "replay:", -UNI_EUSAGE, "replay:file=PATH" },
		{ "replay:pid=1", -UNI_EUSAGE, "unknown key pid" },
		{ "replay:file=/nonexistent/x", -UNI_ENOENT, "/nonexistent/x" },
		{ "replay:file=/proc/self/status", -UNI_EFORMAT, "not a replay file" },
		{ "replay:file=/dev/null", -UNI_EFORMAT, "not a regular file" },
		{ "replay:file=/dev/null,once=x", -UNI_EUSAGE, "once is not a number" },
	};

	for (size_t i = 0; i < uni_array_len(t); i++) {
		struct uni_err err = { 0 };
		struct uni_target *target;
		struct uni_spec spec;

		assert_int_equal(uni_spec_parse(t[i].spec, &spec, &err), 0);
		assert_int_equal(uni_target_attach(&spec, NULL, &target, &err), t[i].rc);
		assert_non_null(strstr(err.msg, t[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_seen_is_served),
		cmocka_unit_test(it_starts_again),
		cmocka_unit_test(a_recording_has_each_once),
		cmocka_unit_test(nothing_is_written_twice),
		cmocka_unit_test(cut_off_and_changed_files),
		cmocka_unit_test(bad_specs_say_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
