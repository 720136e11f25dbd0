/* SPDX-License-Identifier: BSD-2-Clause */
/* Patching the memory of a VMM, which is this process here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "backend/patch.h"
#include "backend/vmm/write.h"

#define PAGE   4096
#define PAGES  4
#define BYTES  5
#define EXTENT 8192

static uint8_t *ram;

static int read_ram(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	memcpy(buf, ram + offset, len);
	return 0;
}

static struct uni_gmem *guest(void)
{
	static const struct uni_gmem_ops ops = { .read = read_ram };
	struct uni_gmem_region region = { 0, PAGES * PAGE, (uintptr_t)ram };
	struct uni_gmem *m = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_gmem_create(&ops, NULL, UNI_GMEM_PHYSICAL, &region, 1, &m, &err), 0);
	return m;
}

static int set_up(void **state)
{
	ram = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ram == MAP_FAILED)
		return -1;
	memset(ram, 0x90, PAGES * PAGE);
	return 0;
}

static int tear_down(void **state)
{
	return munmap(ram, PAGES * PAGE);
}

/* In a page that may be written, across the edge to one that may not, and within that one. */
static const uint64_t places[] = { 100, PAGE - 2, PAGE + 200 };
enum { NR = sizeof(places) / sizeof(places[0]) };

static int patch(struct uni_patch *p, struct uni_patch_job *job)
{
	struct uni_gmem *m = guest();
	struct uni_vmm_forced f = { 0 };
	struct uni_patch_plan plan;
	int rc;

	for (size_t i = 0; i < NR; i++) {
		p[i] = (struct uni_patch){ .va = places[i], .gpa = places[i], .len = BYTES };
		memset(p[i].old_bytes, 0x90, BYTES);
		memset(p[i].new_bytes, 0xc0 + (int)i, BYTES);
	}
	*job = (struct uni_patch_job){ .patch = p, .nr = NR };
	assert_int_equal(uni_patch_plan(job, EXTENT, &plan), 0);
	uni_vmm_patch_rehearse(getpid(), m, &plan, &f);
	rc = uni_vmm_patch(getpid(), m, &plan, &f);
	uni_vmm_forced_deinit(&f);
	uni_patch_plan_deinit(&plan);
	uni_gmem_destroy(m);
	return rc;
}

static void code_that_the_vmm_protects(void **state)
{
	struct uni_patch p[NR];
	struct uni_patch_job job;
	uint8_t want[PAGES * PAGE];

	memset(want, 0x90, sizeof(want));
	for (size_t i = 0; i < NR; i++)
		memset(want + places[i], 0xc0 + (int)i, BYTES);
	assert_int_equal(mprotect(ram + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(patch(p, &job), 0);
	assert_int_equal(job.nr_written, NR);
	assert_memory_equal(ram, want, sizeof(want));
}

/* The second page of RAM is of a file, shared, as all of solo5-hvt's is. */
static void share_a_page(int fd, int prot)
{
	uint8_t page[PAGE];

	memset(page, 0x90, PAGE);
	assert_int_equal(pwrite(fd, page, PAGE, 0), PAGE);
	assert_ptr_equal(mmap(ram + PAGE, PAGE, prot, MAP_SHARED | MAP_FIXED, fd, 0), ram + PAGE);
}

static void shared_code_that_the_vmm_protects(void **state)
{
	_cleanup_close_ int fd = memfd_create("ram", MFD_CLOEXEC);
	struct uni_patch p[NR];
	struct uni_patch_job job;
	uint8_t want[PAGES * PAGE];

	if (geteuid() != 0)
		skip(); /* the files of mappings are root's */
	memset(want, 0x90, sizeof(want));
	for (size_t i = 0; i < NR; i++)
		memset(want + places[i], 0xc0 + (int)i, BYTES);
	share_a_page(fd, PROT_READ);
	assert_int_equal(patch(p, &job), 0);
	assert_int_equal(job.nr_written, NR);
	assert_memory_equal(ram, want, sizeof(want));
}

/* A write to memory that nobody can write is refused, and the bytes before it are as they were. */
static void a_file_that_is_sealed(void **state)
{
	_cleanup_close_ int fd = memfd_create("ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct uni_patch p[NR];
	struct uni_patch_job job;
	uint8_t want[PAGES * PAGE];

	memset(want, 0x90, sizeof(want));
	share_a_page(fd, PROT_READ);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_int_equal(patch(p, &job), -UNI_EFAULT);
	assert_int_equal(job.nr_written, 0);
	assert_memory_equal(ram, want, sizeof(want));
}

/* Nor what is a file that others read. */
static void a_file_with_a_name(void **state)
{
	char name[] = "/tmp/vmmwrite-XXXXXX";
	_cleanup_close_ int fd = mkstemp(name);
	struct uni_patch p[NR];
	struct uni_patch_job job;
	uint8_t want[PAGES * PAGE];

	memset(want, 0x90, sizeof(want));
	share_a_page(fd, PROT_READ);
	assert_int_equal(patch(p, &job), -UNI_EFAULT);
	assert_memory_equal(ram, want, sizeof(want));
	assert_int_equal(unlink(name), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(code_that_the_vmm_protects, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			shared_code_that_the_vmm_protects, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_sealed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_with_a_name, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
