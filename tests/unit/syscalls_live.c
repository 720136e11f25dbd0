/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls that are told while they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "syscalls_made.h"

/* The made calls as they come, an event at a time. */
struct growing {
	struct made *m;
	size_t at;
	struct uni_timeline tl;
	struct uni_sysc_told told;
	struct uni_sysc_log log;
	struct uni_sysc_reader *reader;
	struct uni_sysc_printer *printer;
	struct uni_strbuf text;
	struct uni_sink *out;
};

static int read_some(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct growing *g = ctx;

	if (g->m->given || g->at == g->m->nr)
		return 0;
	g->m->given = true;
	*ret = g->m->e + g->at++;
	*nr_ret = 1;
	return 1;
}

static const uint64_t *some_words(void *ctx, const struct uni_call_event *e)
{
	struct growing *g = ctx;

	return words(g->m, e);
}

static void on_told(void *ctx, uint32_t entry, bool end)
{
	struct growing *g = ctx;

	uni_sysc_printer_put(g->printer, entry, end);
}

static void begin(struct growing *g, struct made *m, const struct uni_sysc_filter *filter)
{
	*g = (struct growing){ .m = m,
		.tl = { .ctx = g,
			.read = read_some,
			.func = func_name,
			.thread = thread_name,
			.words = some_words },
		.told = { on_told, g } };
	uni_strbuf_init(&g->text);
	assert_int_equal(uni_sink_open_strbuf(&g->text, &g->out), 0);
	assert_int_equal(uni_sysc_log_init(&g->log, filter), 0);
	g->printer = uni_sysc_printer_create(&g->log, &plain, g->out);
	g->reader = uni_sysc_reader_create(&g->tl, &uni_sysc_prefixes, NULL, &g->log, &g->told);
	assert_true(g->printer != NULL && g->reader != NULL);
}

/* Hands over the new records. */
static void go_on(struct growing *g)
{
	for (g->at = 0; g->at != g->m->nr;) {
		g->m->given = false;
		assert_int_equal(uni_sysc_reader_read(g->reader), 0);
	}
	g->m->nr = 0;
}

static void end(struct growing *g)
{
	assert_int_equal(uni_sink_close(g->out, NULL), 0);
	uni_sysc_reader_destroy(g->reader);
	uni_sysc_printer_destroy(g->printer);
	uni_sysc_log_deinit(&g->log);
}

static void make(struct made *m)
{
	m->nr = 0;
	enter(m, 1, OPEN, 0, 1000, 0, 0, 0);
	leave(m, 1, OPEN, 0, 1500, -2);
	enter(m, 1, OPEN, 0, 2000, 0, 1, 0);
	enter(m, 9, E_CLOSE, 0, 2500, 3, 0, 0);
	leave(m, 9, E_CLOSE, 0, 3000, 0);
	leave(m, 1, OPEN, 0, 4000, -13);
	enter(m, 9, WRITE, 0, 5000, 1, 0x1000, 2);
	add(m, UNI_CALL_LEAVE, 9, WRITE, 0, 9000)->flags = UNI_CALL_CUT | UNI_CALL_OPEN;
}

static void expect(const struct uni_sysc_filter *filter, const char *want)
{
	static struct made m;
	struct growing g;

	make(&m);
	begin(&g, &m, filter);
	go_on(&g);
	/* As many places as calls were open at once. */
	assert_in_range(g.log.all.nr, 1, 2);
	end(&g);
	assert_string_equal(g.text.s, want);
	uni_strbuf_deinit(&g.text);
}

/* That there are several threads is known when the second one comes. */
static void lines(void **state)
{
	expect(NULL,
		"open(NULL, O_RDONLY)                    = -1 ENOENT (No such file or directory)\n"
		"open(NULL, O_WRONLY <unfinished ...>\n"
		"[named] close(3)                                = 0\n"
		"[pid     1] <... open resumed>)                     = -1 EACCES (Permission "
		"denied)\n"
		"[named] write(1, 0x1000, 2)                     = ?\n");
	(void)state;
}

/* How a call ends is known at its end. */
static void by_ends(void **state)
{
	struct uni_sysc_filter failed = { 0 };

	assert_int_equal(uni_sysc_filter_add(&failed, "status=failed", NULL), 0);
	expect(&failed,
		"open(NULL, O_RDONLY)                    = -1 ENOENT (No such file or directory)\n"
		"[pid     1] open(NULL, O_WRONLY)                    = -1 EACCES (Permission "
		"denied)\n");
	uni_sysc_filter_deinit(&failed);
	(void)state;
}

/* Thousands of different calls leave no texts behind, nor take any from one that stays open. */
static void for_long(void **state)
{
	static struct made m;
	struct growing g;

	m.nr = 0;
	begin(&g, &m, NULL);
	enter(&m, 1, OPEN, 0, 900, 0, 0, 0);
	for (uint64_t i = 0; i < 100000; i++) {
		enter(&m, 9, WRITE, 0, 1000 + i, 1, 0x1000 + i, 2);
		leave(&m, 9, WRITE, 0, 1000 + i, 2);
		go_on(&g);
	}
	assert_true(uni_strtab_nr(g.log.text) < 65536);
	assert_int_equal(g.log.all.nr, 2);
	leave(&m, 1, OPEN, 0, 200000, 7);
	go_on(&g);
	end(&g);
	assert_non_null(
		strstr(g.text.s, "\n[pid     1] <... open resumed>)                     = 7\n"));
	assert_non_null(
		strstr(g.text.s, "\n[named] write(1, 0x1969f, 2)                    = 2\n"));
	uni_strbuf_deinit(&g.text);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(by_ends),
		cmocka_unit_test(for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
