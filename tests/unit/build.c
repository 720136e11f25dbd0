/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of recordings: a session is written, opened and aggregated. */
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

#include "base/checked.h"
#include "base/clock.h"
#include "format/export.h"
#include "obj/usym.h"
#include "profile/aggregate.h"
#include "profile/build.h"
#include "profile/copy.h"
#include "recording/recording.h"

#define BIAS 0xffffffff80000000ull
#define T0   (100 * UNI_NSEC_PER_SEC)

struct place {
	char dir[32], path[64];
	struct uni_err err;
	struct uni_recording *rec;
};

/* Functions a, b, c at 0x1000, 0x1010, 0x1020. */
static struct uni_symtab *symbols(struct uni_err *err)
{
	static const char *const names[] = { "a", "b", "c\x1b[31m" };
	struct uni_symtab *s;

	assert_int_equal(uni_symtab_of_names("/boot/app.elf", names, 3, &s, err), 0);
	return s;
}

static void sample(struct uni_recorder *r, uint64_t ms, uint32_t vcpu, uint8_t stop,
	const uint64_t *pc, uint16_t nr)
{
	static const uint8_t flags[8] = { 0, 0, 0, UNI_FRAME_EXACT };
	uint64_t addr[8];
	struct uni_sample s = { .t_ns = T0 + ms * UNI_NSEC_PER_MSEC,
		.weight = 1,
		.vcpu = vcpu,
		.stop = stop,
		.nr = nr,
		.pc = addr,
		.flags = flags };

	for (size_t i = 0; i < nr; i++)
		addr[i] = BIAS + pc[i];
	uni_recorder_sample(r, &s);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	struct uni_record_stats st = { .samples = 5, .begin_ns = T0 };
	const struct uni_guest_result result = { .stats = &st };
	struct uni_recorder *r;
	struct uni_symtab *sym;

	if (p == NULL || meta == NULL)
		return 1;
	*state = p;
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/uni-build-XXXXXX");
	if (mkdtemp(p->dir) == NULL)
		return 1;
	(void)snprintf(p->path, sizeof(p->path), "%s/a.uniscope", p->dir);
	(void)snprintf(meta->target, sizeof(meta->target), "kvm:pid=7\n#evil");
	(void)snprintf(meta->arch, sizeof(meta->arch), "x86_64");
	(void)snprintf(meta->image_path, sizeof(meta->image_path), "/boot/app.elf");
	meta->bias = BIAS;
	meta->nr_vcpus = 2;
	meta->realtime_offset_ns = (1700000000 - 100) * UNI_NSEC_PER_SEC;
	assert_int_equal(uni_recorder_create(p->path, meta, false, &r, &p->err), 0);
	sym = symbols(&p->err);
	assert_int_equal(uni_recorder_add_symtab(r, 0, sym, &p->err), 0);
	/* The leaf at its first byte; callers return to the byte behind their last call. */
	sample(r, 0, 0, UNI_STOP_ROOT, (const uint64_t[]){ 0x1010, 0x1010 }, 2);
	/* An exact frame (index 3) is looked up as it is. */
	sample(r, 10, 1, UNI_STOP_ROOT, (const uint64_t[]){ 0x1021, 0x1011, 0x1005, 0x1010 }, 4);
	sample(r, 20, 0, UNI_STOP_FAULT, (const uint64_t[]){ 0x1025 }, 1);
	sample(r, 30, 0, UNI_STOP_ROOT, (const uint64_t[]){ 0x9999, 0x1005 }, 2);
	sample(r, 40, 1, UNI_STOP_NOREGS, NULL, 0);
	assert_int_equal(uni_recorder_close(r, &result, 1, &p->err), 0);
	uni_symtab_destroy(sym);
	free(meta);
	assert_int_equal(uni_recording_open(p->path, &p->rec, &p->err), 0);
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	pid_t pid;

	uni_recording_close(p->rec);
	pid = fork();
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", p->dir, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
	free(p);
	return 0;
}

static void exports(const struct uni_view *v, const char *format, const struct uni_export_opt *opts,
	size_t nr, const char *want)
{
	struct uni_err err = { 0 };
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_exporter_by_name(format)->write(v, opts, nr, out, &err), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
}

static void folds_to(struct place *p, struct uni_build_opts opts, const char *want)
{
	struct uni_view v = { 0 };
	struct uni_profile *profile;

	assert_int_equal(uni_profile_build(p->rec, &opts, &profile, NULL, &p->err), 0);
	v.profile = profile;
	exports(&v, "folded", NULL, 0, want);
	uni_profile_destroy(profile);
}

static void names_and_filters(void **state)
{
	struct place *p = *state;

	folds_to(p, (struct uni_build_opts)UNI_BUILD_DEFAULTS,
		"[no registers] 1\n"
		"a;0xffffffff80009999 1\n"
		"a;b 1\n"
		"b;[interrupted];a;b;c\xef\xbf\xbd[31m 1\n"
		"c\xef\xbf\xbd[31m 1\n");
	folds_to(p, (struct uni_build_opts){ .per_vcpu = true, .mark_truncated = true },
		"vcpu 0;[truncated];c\xef\xbf\xbd[31m 1\n"
		"vcpu 0;a;0xffffffff80009999 1\n"
		"vcpu 0;a;b 1\n"
		"vcpu 1;[no registers] 1\n"
		"vcpu 1;b;[interrupted];a;b;c\xef\xbf\xbd[31m 1\n");
	folds_to(p,
		(struct uni_build_opts){
			.filter = { .vcpu = uni_only(1) }, .naming.offsets = true },
		"[no registers] 1\n"
		"b+0x0;[interrupted];a+0x5;b+0x1;c\xef\xbf\xbd[31m+0x1 1\n");
	folds_to(p,
		(struct uni_build_opts){ .filter = { .vcpu = uni_only(0),
						 .from_ns = T0 + 10 * UNI_NSEC_PER_MSEC,
						 .to_ns = T0 + 30 * UNI_NSEC_PER_MSEC },
			.naming.addresses = true },
		"0xffffffff80001025 1\n");
}

/* A function that has just returned, called by a pointer (unwind/skid.c). */
static void unknown_callee_is_its_own_frame(void **state)
{
	struct place *p = *state;
	const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct uni_symtab *sym = symbols(&p->err);
	const struct uni_build_guest guest = {
		.symtab = sym, .bias = BIAS, .image_path = "/boot/app.elf"
	};
	const uint8_t flags[] = { UNI_FRAME_EXACT | UNI_FRAME_MOVED, 0 };
	const uint64_t pc[] = { 0, BIAS + 0x1010 };
	const struct uni_sample s = {
		.weight = 1, .stop = UNI_STOP_ROOT, .nr = 2, .pc = pc, .flags = flags
	};
	struct uni_view v = { 0 };
	struct uni_builder *b;
	struct uni_profile *profile;

	assert_int_equal(uni_builder_create(&opts, &guest, 1, &b), 0);
	assert_int_equal(uni_builder_add(b, &s), 0);
	assert_int_equal(uni_builder_finish(b, &profile), 0);
	v.profile = profile;
	exports(&v, "folded", NULL, 0, "a;[unknown callee] 1\n");
	uni_profile_destroy(profile);
	uni_builder_destroy(b);
	uni_symtab_destroy(sym);
}

static const char *mark_of(const struct uni_profile *p, const char *name)
{
	for (uint32_t i = 0; i < uni_profile_nr_frames(p); i++) {
		if (strcmp(uni_profile_str(p, uni_profile_get_frame(p, i)->name), name) == 0)
			return uni_profile_mark(p, i);
	}
	return NULL;
}

/* Over a tenth of its own samples; in profiles that are made of it, too. */
static void unsure_functions_are_marked(void **state)
{
	static const struct {
		uint64_t weight;
		uint8_t flags, state;
		unsigned fn;
	} of[] = { { 90, 0, UNI_VCPU_RUNNING, 0 }, { 10, UNI_FRAME_UNSURE, UNI_VCPU_RUNNING, 0 },
		{ 89, 0, UNI_VCPU_RUNNING, 1 }, { 11, UNI_FRAME_UNSURE, UNI_VCPU_RUNNING, 1 },
		{ 9, UNI_FRAME_UNSURE, UNI_VCPU_STOLEN, 0 } };
	struct place *p = *state;
	const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct uni_symtab *sym = symbols(&p->err);
	const struct uni_build_guest guest = {
		.symtab = sym, .bias = BIAS, .image_path = "/boot/app.elf"
	};
	struct uni_profile *made[3] = { 0 };
	struct uni_builder *b;

	assert_int_equal(uni_builder_create(&opts, &guest, 1, &b), 0);
	for (size_t i = 0; i < uni_array_len(of); i++) {
		const uint64_t pc = BIAS + 0x1000 + 16 * of[i].fn;
		const struct uni_sample s = { .weight = of[i].weight,
			.state = of[i].state,
			.nr = 1,
			.pc = &pc,
			.flags = &of[i].flags };

		assert_int_equal(uni_builder_add(b, &s), 0);
	}
	assert_int_equal(uni_builder_finish(b, &made[0]), 0);
	assert_int_equal(uni_profile_reversed(made[0], &made[1]), 0);
	assert_int_equal(uni_profile_diff(made[0], made[1], false, &made[2]), 0);
	for (size_t i = 0; i < uni_array_len(made); i++) {
		assert_string_equal(mark_of(made[i], "a"), "");
		assert_string_equal(mark_of(made[i], "b"), UNI_UNSURE_MARK);
		assert_string_equal(mark_of(made[i], "[stolen]"), "");
		uni_profile_destroy(made[i]);
	}
	uni_builder_destroy(b);
	uni_symtab_destroy(sym);
}

static void functions_know_where_they_are(void **state)
{
	struct place *p = *state;
	struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct uni_profile *profile;
	const struct uni_frame *f;
	struct uni_func_row *rows;
	size_t nr;

	assert_int_equal(uni_profile_build(p->rec, &opts, &profile, NULL, &p->err), 0);
	assert_int_equal(uni_profile_functions(profile, &rows, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		f = uni_profile_get_frame(profile, rows[i].frame);
		if (strcmp(uni_profile_str(profile, f->name), "b") != 0)
			continue;
		assert_true(f->addr == BIAS + 0x1010);
		assert_string_equal(uni_profile_str(profile, f->image), "app.elf");
		assert_int_equal(f->kind, UNI_FK_GUEST);
		free(rows);
		uni_profile_destroy(profile);
		return;
	}
	fail_msg("no function b");
}

static void uniprof_text(void **state)
{
	struct place *p = *state;
	struct uni_view v = { .samples = p->rec };
	const struct uni_export_opt symbols_on = { "symbols", "1" };

	exports(&v, "uniprof", NULL, 0,
		"#unikernel stack tracer using uniscope\n"
		"#tracing kvm:pid=7\xef\xbf\xbd#evil on 2023-11-14 22:13:20 UTC (+0000)\n\n"
		"0xffffffff80001010\n0xffffffff80001010\n1\n\n"
		"0xffffffff80001021\n0xffffffff80001011\n0xffffffff80001005\n"
		"0xffffffff80001010\n1\n\n"
		"0xffffffff80001025\n0\n\n"
		"0xffffffff80009999\n0xffffffff80001005\n1\n\n"
		"0\n\n");
	exports(&v, "uniprof", &symbols_on, 1,
		"#unikernel stack tracer using uniscope\n"
		"#tracing kvm:pid=7\xef\xbf\xbd#evil on 2023-11-14 22:13:20 UTC (+0000)\n\n"
		"b+0x0\na+0x10\n1\n\n"
		"c\xef\xbf\xbd[31m+0x1\nb+0x1\na+0x5\nb+0x0\n1\n\n"
		"c\xef\xbf\xbd[31m+0x5\n0\n\n"
		"0xffffffff80009999\na+0x5\n1\n\n"
		"0\n\n");
}

/* A stream that was cut short gives what is left, and the count says that it is not all. */
static void damage_is_counted(void **state)
{
	struct place *p = *state;
	struct uni_build_opts opts = { .filter = { .vcpu = uni_only(1) } };
	struct uni_build_read read = { 0 };
	struct uni_profile *profile;
	char file[128];

	assert_int_equal(uni_profile_build(p->rec, &opts, &profile, &read, &p->err), 0);
	uni_profile_destroy(profile);
	assert_int_equal(read.samples, uni_recording_stats(p->rec)->samples);
	assert_int_equal(read.torn, 0);
	(void)snprintf(file, sizeof(file), "%s/guest-0/samples-vcpu0", p->path);
	assert_int_equal(truncate(file, 100), 0);
	assert_int_equal(uni_profile_build(p->rec, &opts, &profile, &read, &p->err), 0);
	uni_profile_destroy(profile);
	assert_int_equal(read.samples, 2); /* those of vCPU 1 */
	assert_int_equal(read.torn, 1);
}

/* Symbols that cannot be read cost the names, not the samples. */
static void damaged_symbols_are_done_without(void **state)
{
	struct place *p = *state;
	struct uni_build_opts opts = { .filter = { .vcpu = uni_only(1) } };
	struct uni_view v = { 0 };
	struct uni_symtab *sym;
	struct uni_profile *profile;
	struct uni_recording *rec;
	char file[256];

	assert_null(uni_recording_guest(p->rec, 0).symtab_problem);
	(void)snprintf(file, sizeof(file), "%s/symbols/%s.usym", p->path,
		uni_recording_meta(p->rec)->image_id);
	assert_int_equal(truncate(file, 20), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_null(uni_recording_guest(rec, 0).symtab);
	assert_non_null(strstr(uni_recording_guest(rec, 0).symtab_problem, ".usym"));
	assert_int_equal(uni_profile_build(rec, &opts, &profile, NULL, &p->err), 0);
	v.profile = profile;
	exports(&v, "folded", NULL, 0,
		"0xffffffff80001010;[interrupted];0xffffffff80001005;0xffffffff80001011;"
		"0xffffffff80001021 1\n"
		"[no registers] 1\n");
	uni_profile_destroy(profile);
	/* Names from elsewhere. */
	opts.symtab = sym = symbols(&p->err);
	assert_int_equal(uni_profile_build(rec, &opts, &profile, NULL, &p->err), 0);
	uni_profile_destroy(profile);
	uni_symtab_destroy(sym);
	uni_recording_close(rec);
}

/* A profile that an import wrote is read back with the same stacks, and without the addresses that
 * it made up. */
static void aggregates_come_back(void **state)
{
	struct place *p = *state;
	struct uni_profile *from = uni_profile_create(), *to;
	struct uni_build_opts opts = { .naming.offsets = true };
	struct uni_view v = { 0 };
	struct uni_recording *rec;
	const struct uni_aggregate_origin origin = { "x.folded", "9.8", "uniscope import" };
	char path[80];
	uint32_t f[2] = { uni_profile_frame_named(from, "[truncated]", 11, UNI_FK_SYNTHETIC),
		uni_profile_frame_named(from, "work", 4, UNI_FK_GUEST) };

	uni_profile_set_unit(from, "us");
	assert_int_equal(uni_profile_add(from, f, 2, 40, 0), 0);
	assert_int_equal(uni_profile_add(from, f + 1, 1, 2, 0), 0);
	assert_int_equal(uni_profile_finish(from), 0);
	(void)snprintf(path, sizeof(path), "%s/b.uniscope", p->dir);
	assert_int_equal(uni_aggregate_write(from, &origin, path, false, &p->err), 0);
	assert_int_equal(uni_recording_open(path, &rec, &p->err), 0);
	assert_string_equal(uni_recording_meta(rec)->uniscope_version, "9.8");
	assert_string_equal(uni_recording_meta(rec)->arch, ""); /* nobody knows */
	assert_string_equal(uni_recording_meta(rec)->command, "uniscope import");
	assert_int_equal(uni_profile_build(rec, &opts, &to, NULL, &p->err), 0);
	assert_string_equal(uni_profile_unit(to), "us");
	v.profile = to;
	v.samples = rec;
	exports(&v, "folded", NULL, 0, "[truncated];work 40\nwork 2\n");
	for (uint32_t i = 0; i < uni_profile_nr_frames(to); i++)
		assert_true(uni_profile_get_frame(to, i)->addr == 0);
	exports(&v, "uniprof", NULL, 0,
		"#unikernel stack tracer using uniscope\n"
		"#tracing x.folded on 1970-01-01 00:00:00 UTC (+0000)\n\n"
		"work\n[truncated]\n40\n\nwork\n2\n\n");
	uni_recording_close(rec);
	uni_profile_destroy(to);
	uni_profile_destroy(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_filters),
		cmocka_unit_test(unknown_callee_is_its_own_frame),
		cmocka_unit_test(unsure_functions_are_marked),
		cmocka_unit_test(functions_know_where_they_are),
		cmocka_unit_test(uniprof_text),
		cmocka_unit_test(aggregates_come_back),
		cmocka_unit_test(damage_is_counted),
		cmocka_unit_test(damaged_symbols_are_done_without),
	};

	return cmocka_run_group_tests_name("build", tests, setup, teardown);
}
