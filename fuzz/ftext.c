/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of ftrace. A text that was read can be written, and reads the same again. As calls, each
 * leave belongs to the newest call that was entered, and no part is longer than the whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/ftrace/fcalls.h"
#include "format/ftrace/ftext.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void write_text(const struct uni_ftext *t, struct uni_strbuf *b)
{
	struct uni_sink *out;

	uni_strbuf_init(b);
	require(uni_sink_open_strbuf(b, &out) == 0);
	uni_ftext_write(t, out);
	require(uni_sink_close(out, NULL) == 0);
}

static void round_trip(const struct uni_ftext *t)
{
	struct uni_strbuf first, second;
	struct uni_ftext_stats st;
	struct uni_ftext again;

	write_text(t, &first);
	require(uni_ftext_parse(first.s, first.len, &again, &st, NULL) == 0);
	require(st.bad_lines == 0 && st.outside == 0 && st.unreadable == 0);
	require(again.events.nr == t->events.nr);
	write_text(&again, &second);
	told(first.s, first.len);
	require(first.len == second.len && memcmp(first.s, second.s, first.len) == 0);
	uni_ftext_deinit(&again);
	uni_strbuf_deinit(&first);
	uni_strbuf_deinit(&second);
}

static void check_calls(const struct uni_ftext *t)
{
	struct uni_fcalls *c = uni_fcalls_open(t);
	uint64_t enters = 0, leaves = 0, lines = 0, last[UNI_FTEXT_CPUS_MAX] = { 0 };
	const struct uni_call_event *e;
	struct uni_timeline tl;
	size_t nr;

	require(c != NULL);
	tl = uni_fcalls_timeline(c);
	while (tl.read(tl.ctx, &e, &nr) == 1) {
		for (; nr != 0; nr--, e++) {
			uint64_t number;

			require(e->self <= e->duration);
			require(tl.thread(tl.ctx, e->thread, &number)[0] != '\0');
			told_text(tl.func(tl.ctx, e->func));
			told_u64(e->ns);
			told_u64(e->self);
			told_u64(e->duration);
			told_u64((uint64_t)e->type << 32 | e->depth);
			told_u64(number);
			lines += e->type == UNI_CALL_SWITCH;
			enters += e->type == UNI_CALL_ENTER;
			leaves += e->type == UNI_CALL_LEAVE && (e->flags & UNI_CALL_BEGAN) == 0;
			require(leaves <= enters);
			require(e->ns >= last[e->cpu] || t->tracer == UNI_FTEXT_FUNCTION);
			last[e->cpu] = e->ns;
		}
	}
	require(enters == leaves);
	require(lines <= t->events.nr);
	uni_fcalls_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_ftext_stats st = { 0 };
	struct uni_ftext t;

	told_u64((uint64_t)uni_ftext_sniff((const char *)data, size));
	if (uni_ftext_parse((const char *)data, size, &t, &st, NULL) == 0) {
		told_u64(st.lines);
		told_u64(st.headers);
		told_u64(st.bad_lines);
		told_u64(st.outside);
		require(st.lines == st.headers + st.bad_lines + st.outside + t.events.nr);
		round_trip(&t);
		check_calls(&t);
	}
	uni_ftext_deinit(&t);
	return 0;
}
