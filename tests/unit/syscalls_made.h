/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of calls, made up; after cmocka.h. */
#ifndef TESTS_SYSCALLS_MADE_H
#define TESTS_SYSCALLS_MADE_H

#include <string.h>

#include "syscalls/source.h"
#include "uniscope/trace_abi.h"

static const struct uni_sysc_print plain = { .column = 40 };

struct made {
	struct uni_call_event e[64];
	uint64_t words[64][8];
	size_t nr;
	bool given;
};

static const char *const functions[] = { "", "uk_syscall_r_open", "uk_syscall_r_write",
	"uk_syscall_r_writev", "uk_syscall_e_close", "__uk_syscall_r_close", "helper",
	"uk_syscall_r_exit_group", "uk_syscall_r_nosuch", "open" };
enum { OPEN = 1, WRITE, WRITEV, E_CLOSE, R_CLOSE, HELPER, EXIT, NOSUCH, LIBC_OPEN };

static inline int read_made(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct made *m = ctx;

	if (m->given)
		return 0;
	m->given = true;
	*ret = m->e;
	*nr_ret = m->nr;
	return 1;
}

static inline const char *func_name(void *ctx, uint32_t func)
{
	(void)ctx;
	return functions[func];
}

static inline const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	(void)ctx;
	*number_ret = thread;
	return thread == 9 ? "named" : "tid";
}

static inline const uint64_t *words(void *ctx, const struct uni_call_event *e)
{
	struct made *m = ctx;

	return m->words[e - m->e];
}

static inline struct uni_call_event *add(
	struct made *m, unsigned type, uint32_t thread, uint32_t func, uint32_t depth, uint64_t ns)
{
	struct uni_call_event *e = &m->e[m->nr++];

	assert_true(m->nr <= 64);
	*e = (struct uni_call_event){
		.type = (uint8_t)type, .thread = thread, .func = func, .depth = depth, .ns = ns
	};
	return e;
}

static inline void enter(struct made *m, uint32_t thread, uint32_t func, uint32_t depth,
	uint64_t ns, uint64_t a, uint64_t b, uint64_t c)
{
	struct uni_call_event *e = add(m, UNI_CALL_EXT, thread, func, depth, ns);

	e->cls = UNI_TRACE_CLASS_ENTRY_ARGS;
	e->nr = 7;
	m->words[m->nr - 1][0] = a;
	m->words[m->nr - 1][1] = b;
	m->words[m->nr - 1][2] = c;
	add(m, UNI_CALL_ENTER, thread, func, depth, ns);
}

static inline void leave(
	struct made *m, uint32_t thread, uint32_t func, uint32_t depth, uint64_t ns, int64_t value)
{
	struct uni_call_event *e = add(m, UNI_CALL_EXT, thread, func, depth, ns);

	e->cls = UNI_TRACE_CLASS_EXIT_VALUE;
	e->nr = 3;
	m->words[m->nr - 1][0] = (uint64_t)value;
	add(m, UNI_CALL_LEAVE, thread, func, depth, ns);
}

static inline void expect_print(
	const struct uni_sysc_log *log, const struct uni_sysc_print *how, const char *want)
{
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_sysc_print(log, how, out), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
}

static inline void read_console(const char *text, unsigned machine, struct uni_sysc_log *log)
{
	assert_int_equal(uni_sysc_log_init(log, NULL), 0);
	assert_int_equal(uni_sysc_from_console(text, strlen(text), machine, log), 0);
}

#endif
