/* SPDX-License-Identifier: BSD-2-Clause */
/* Patching a domain's code, and the memory that it grants, with a made-up hypervisor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/xen_domain.h"
#include "base/clock.h"
#include "backend/patch.h"
#include "backend/xen/xen.h"

#define FRAME(n) ((HV_FIRST + (n)) * (uint64_t)HV_PAGE)
#define TEXT_VA	 0xffffffff80200000ull

static uint8_t *ram(uint64_t gpa)
{
	return hv->ram + (gpa - FRAME(0));
}

/* Replaces len bytes by others at each of the addresses. */
static void make_patches(struct uni_patch *p, size_t nr, const uint64_t *gpa, uint8_t len)
{
	for (size_t i = 0; i < nr; i++) {
		p[i] = (struct uni_patch){
			.va = TEXT_VA + gpa[i], .gpa = gpa[i], .len = len, .pieces = true
		};
		for (unsigned k = 0; k < len; k++) {
			p[i].old_bytes[k] = (uint8_t)(0x10 + k);
			p[i].new_bytes[k] = (uint8_t)(0x80 + 0x10 * i + k);
		}
		memcpy(ram(gpa[i]), p[i].old_bytes, len);
	}
}

/* In the middle of a page, at its very end, across two, at one's start, across two again, in the
 * last one. */
static const uint64_t places[] = { FRAME(8) + 0x123, FRAME(8) + 0xffb, FRAME(9) + 0xffe,
	FRAME(10) + 3, FRAME(10) + 0xffe, FRAME(20) + 0xff8 };
enum { NR = sizeof(places) / sizeof(places[0]) };

static void writes_all(void **state)
{
	struct uni_target *t = attached("xen:dom=7");
	struct uni_patch p[NR];
	struct uni_patch_job job = { .patch = p, .nr = NR };
	uint8_t *before = malloc(HV_FRAMES * HV_PAGE);

	memset(hv->ram, 0xee, HV_FRAMES * HV_PAGE);
	make_patches(p, NR, places, 5);
	memcpy(before, hv->ram, HV_FRAMES * HV_PAGE);
	for (size_t i = 0; i < NR; i++)
		memcpy(before + (places[i] - FRAME(0)), p[i].new_bytes, 5);
	assert_true(t->ops->caps(t) & UNI_CAP_WRITE_TEXT);
	assert_int_equal(uni_patch_run(t, &job), 0);
	assert_int_equal(job.nr_written, NR);
	assert_memory_equal(hv->ram, before, HV_FRAMES * HV_PAGE); /* and nothing else */
	assert_int_equal(hv->nr_pauses, 1);
	assert_int_equal(hv->pauses, 0);
	/* Again: it is there already. */
	assert_int_equal(uni_patch_run(t, &job), 0);
	assert_int_equal(job.nr_written, 0);
	uni_target_detach(t);
	free(before);
}

static void all_or_nothing(void **state)
{
	struct uni_target *t = attached("xen:dom=7");
	uint64_t at[NR];
	struct uni_patch p[NR];
	struct uni_patch_job job = { .patch = p, .nr = NR };
	uint8_t *before = malloc(HV_FRAMES * HV_PAGE);

	memcpy(at, places, sizeof(at));
	make_patches(p, NR, at, 5);
	ram(at[3])[4] ^= 1;
	memcpy(before, hv->ram, HV_FRAMES * HV_PAGE);
	assert_int_equal(uni_patch_run(t, &job), -UNI_EMISMATCH);
	assert_int_equal(job.bad, 3);
	ram(at[3])[4] ^= 1;
	/* A frame that is not the domain's. */
	p[NR - 1].gpa = FRAME(HV_FRAMES) + 0x10;
	assert_int_equal(uni_patch_run(t, &job), -UNI_EFAULT);
	assert_int_equal(job.bad, NR - 1);
	p[NR - 1].gpa = at[NR - 1];
	/* A vCPU among the instructions that go. */
	hv_ctx_put(2, HV_CTX_REG + 16 * 8, p[1].va + 2);
	assert_int_equal(uni_patch_run(t, &job), -UNI_EAGAIN);
	hv_ctx_put(2, HV_CTX_REG + 16 * 8, 0);
	ram(at[3])[4] ^= 1;
	assert_memory_equal(hv->ram, before, HV_FRAMES * HV_PAGE);
	assert_int_equal(hv->pauses, 0);
	uni_target_detach(t);
	free(before);
}

/* Not in an operator's pause, which may end; not where nothing may be paused. */
static void only_in_a_pause_of_ours(void **state)
{
	struct uni_patch p[NR];
	struct uni_patch_job job = { .patch = p, .nr = NR };
	struct uni_target *t;

	make_patches(p, NR, places, 5);
	hv->pauses = 1;
	t = attached("xen:dom=7");
	assert_int_equal(uni_patch_run(t, &job), -UNI_EAGAIN);
	assert_int_equal(hv->pauses, 1);
	uni_target_detach(t);
	hv->pauses = 0;
	t = attached("xen:dom=7,pause=no");
	assert_int_equal(uni_patch_run(t, &job), -UNI_ENOTSUP);
	uni_target_detach(t);
	assert_memory_equal(ram(places[0]), p[0].old_bytes, 5);
}

static void reads_grants(void **state)
{
	static const char *const bad[] = { ",", "101,", "101,,102", "x", "-1", "101 ", "4294967296",
		"99999999999", "99", "101\n" };
	struct uni_target *t = attached("xen:dom=7,pause=no");
	struct uni_err err = { 0 };
	uint8_t *ring = NULL;
	uint32_t ref[4];
	size_t size = 0;

	assert_int_equal(t->ops->granted(t, "mprof", &ring, &size, &err), -UNI_ENOENT);
	assert_non_null(strstr(err.msg, "/local/domain/7/data/mprof/ring-ref"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(hv->refs, sizeof(hv->refs), "%s", bad[i]);
		err = (struct uni_err){ 0 };
		assert_true(t->ops->granted(t, "mprof", &ring, &size, &err) < 0);
		assert_true(err.msg[0] != '\0');
	}
	*ram(FRAME(3)) = 0x33;
	*ram(FRAME(1)) = 0x11;
	(void)snprintf(hv->refs, sizeof(hv->refs), "103,101");
	assert_int_equal(t->ops->granted(t, "mprof", &ring, &size, &err), 0);
	assert_int_equal(size, 2 * HV_PAGE);
	assert_int_equal(ring[0], 0x33);
	assert_int_equal(ring[HV_PAGE], 0x11);
	assert_int_equal(hv->mapped, 0); /* the domain can have its pages back */
	assert_int_equal(uni_xen_grant_refs("1,2,3,4", ref, 4), 4);
	assert_int_equal(uni_xen_grant_refs("1,2,3,4,5", ref, 4), -UNI_EINVAL);
	uni_target_detach(t);
	free(ring);
}

/* More than the mappings that are kept at most: all of it is right, and nothing stays. */
static void reads_across_frames(void **state)
{
	struct uni_target *t = attached("xen:dom=7,pause=no");
	uint8_t *all = malloc(HV_FRAMES * HV_PAGE);
	unsigned maps = hv->nr_maps;

	for (size_t i = 0; i < HV_FRAMES; i++)
		memset(hv->ram + i * HV_PAGE, (int)i, HV_PAGE);
	assert_int_equal(uni_gmem_read(t->ops->gmem(t), uni_gpa_of(FRAME(0) + 7), all,
				 HV_FRAMES * HV_PAGE - 7),
		0);
	assert_memory_equal(all, hv->ram + 7, HV_FRAMES * HV_PAGE - 7);
	assert_true(hv->nr_maps - maps <= 2 * HV_FRAMES / UNI_XEN_BATCH);
	uni_target_detach(t);
	free(all);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writes_all),
		TEST(all_or_nothing),
		TEST(only_in_a_pause_of_ours),
		TEST(reads_grants),
		TEST(reads_across_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
