/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a process, by its mappings: of this process itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/proc/proc.h"

#define PAGE 4096u

static struct uni_proc *open_self(void)
{
	struct uni_proc *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->pid = getpid();
	(void)pthread_mutex_init(&p->code.lock, NULL);
	return p;
}

static void close_self(struct uni_proc *p)
{
	(void)pthread_mutex_destroy(&p->code.lock);
	free(p);
}

static uint64_t at(const void *place)
{
	return (uint64_t)(uintptr_t)place;
}

static void test_code_is_what_may_be_executed(void **state)
{
	struct uni_proc *p = open_self();
	static const char constant[] = "constant";
	static char data[8];
	char word[8], *heap = malloc(8);

	assert_true(uni_proc_is_code(
		p, at((const void *)(uintptr_t)test_code_is_what_may_be_executed)));
	assert_true(uni_proc_is_code(p, at((const void *)(uintptr_t)getpid))); /* of a library */
	assert_false(uni_proc_is_code(p, at(word)));
	assert_false(uni_proc_is_code(p, at(heap)));
	assert_false(uni_proc_is_code(p, at(data)));
	assert_false(uni_proc_is_code(p, at(constant)));
	assert_false(uni_proc_is_code(p, 0));
	free(heap);
	close_self(p);
}

/* A compiler that runs in the process makes code at any time. */
static void test_code_that_is_made_later(void **state)
{
	struct uni_proc *p = open_self();
	char *page = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	assert_false(uni_proc_is_code(p, at(page + PAGE)));
	assert_int_equal(mprotect(page + PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_false(uni_proc_is_code(p, at(page + PAGE))); /* it looks only now and then */
	p->code.next_ns = 0;
	assert_true(uni_proc_is_code(p, at(page + PAGE)));
	assert_true(uni_proc_is_code(p, at(page + 2 * PAGE - 1)));
	assert_false(uni_proc_is_code(p, at(page + PAGE - 1)));
	assert_false(uni_proc_is_code(p, at(page + 2 * PAGE)));
	(void)munmap(page, 3 * PAGE);
	close_self(p);
}

/* With more mappings than there is room for, nothing is refused. */
static void test_more_code_than_there_is_room_for(void **state)
{
	const size_t nr = UNI_PROC_CODE_MAX + 8;
	struct uni_proc *p = open_self();
	char *page = mmap(NULL, 2 * nr * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(mprotect(page + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_true(uni_proc_is_code(p, at(page + PAGE)));
	(void)munmap(page, 2 * nr * PAGE);
	p->code.next_ns = 0;
	assert_false(uni_proc_is_code(p, at(page + PAGE)));
	close_self(p);
}

static void test_a_process_that_is_gone(void **state)
{
	struct uni_proc *p = open_self();

	p->pid = 4194303; /* no Linux has so many */
	assert_true(uni_proc_is_code(p, at(p)));
	close_self(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_is_what_may_be_executed),
		cmocka_unit_test(test_code_that_is_made_later),
		cmocka_unit_test(test_more_code_than_there_is_room_for),
		cmocka_unit_test(test_a_process_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
