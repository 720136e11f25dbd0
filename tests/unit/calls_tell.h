/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of a made trace as a line of text; after cmocka.h. */
#ifndef TESTS_CALLS_TELL_H
#define TESTS_CALLS_TELL_H

#include "../support/trace_make.h"
#include "trace/stats.h"

#define A 0x1000u
#define B 0x2000u
#define C 0x3000u
#define D 0x4000u

/* Names of one letter. */
static inline struct uni_funcs *letters(void)
{
	struct uni_funcs *f = uni_funcs_create(NULL);

	assert_non_null(f);
	return f;
}

static inline char letter(const struct uni_funcs *f, uint32_t func)
{
	uint64_t at = uni_funcs_address(f, func);

	return func == UNI_FUNC_NONE ? '-' : (char)('A' + (at - MAKE_WINDOW - A) / 0x1000);
}

/* Prints the events, in short: "A( B( B) A)" with durations behind leaves. */
static inline char *tell(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_calls_stats *stats)
{
	struct uni_funcs *funcs = letters();
	const struct uni_call_event *e;
	struct uni_err err = { 0 };
	struct uni_strbuf out;
	struct uni_calls *c;
	uint64_t last = 0;
	size_t nr;
	int rc;

	if (uni_calls_open(in, filter, funcs, &c, &err) != 0)
		fail_msg("%s", err.msg);
	uni_strbuf_init(&out);
	while ((rc = uni_calls_read(c, &e, &nr)) == 1) {
		for (; nr != 0; e++, nr--) {
			char f = letter(funcs, e->func);

			assert_true(e->tsc >= last);
			last = e->tsc;
			if (in->info.nr_cpus > 1)
				uni_strbuf_addf(&out, "%u", e->cpu);
			if (e->type == UNI_CALL_ENTER)
				uni_strbuf_addf(&out, "%c(%s ", f,
					(e->flags & UNI_CALL_BEGAN) != 0 ? "<" : "");
			else if (e->type == UNI_CALL_LEAVE)
				uni_strbuf_addf(&out, "%c%s)%lld:%lld ", f,
					(e->flags & UNI_CALL_OPEN) != 0	 ? "?"
					: (e->flags & UNI_CALL_CUT) != 0 ? "!"
									 : "",
					(long long)e->duration, (long long)e->self);
			else if (e->type == UNI_CALL_LEAF)
				uni_strbuf_addf(&out, "%c. ", f);
			else if (e->type == UNI_CALL_ENTRY && e->caller != UNI_FUNC_NONE)
				uni_strbuf_addf(&out, "%c'<%c ", f, letter(funcs, e->caller));
			else if (e->type == UNI_CALL_ENTRY)
				uni_strbuf_addf(&out, "%c' ", f);
			else if (e->type == UNI_CALL_RETURN)
				uni_strbuf_adds(&out, "-) ");
			else if (e->type == UNI_CALL_SWITCH)
				uni_strbuf_addf(&out, "%d>%d ",
					(int)uni_calls_thread(c, e->thread).id,
					(int)uni_calls_thread(c, e->next).id);
			else if (e->type == UNI_CALL_LOST)
				uni_strbuf_addf(&out, "lost%d ", (int)e->count);
			else
				uni_strbuf_addf(&out, "x%d:%d ", e->cls,
					(int)uni_calls_words(c, e)[e->nr - 1]);
		}
	}
	assert_int_equal(rc, 0);
	if (stats != NULL)
		*stats = *uni_calls_stats(c);
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	return uni_strbuf_detach(&out);
}

static inline void expect(struct make *m, const struct uni_calls_filter *filter, const char *want)
{
	char *got = tell(make_input(m), filter, NULL);

	assert_string_equal(got, want);
	free(got);
}

#endif
