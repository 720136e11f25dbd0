/* SPDX-License-Identifier: BSD-2-Clause */
/* The old viewers see the same model in a trace, with every id created once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/mirage/mirage.h"
#include "promise/text.h"

/* Events of a scheduler at random, with everything that our rings can tell. */
static void random_event(struct uni_promise_event *e, uint64_t *random, uint64_t time)
{
	static const uint8_t kinds[] = { UNI_PE_CREATE, UNI_PE_READ, UNI_PE_RESOLVE, UNI_PE_FAIL,
		UNI_PE_BECOME, UNI_PE_LABEL, UNI_PE_INCREASE, UNI_PE_SWITCH, UNI_PE_GC,
		UNI_PE_SIGNAL, UNI_PE_TRY_READ, UNI_PE_COUNTER, UNI_PE_READ_LATER, UNI_PE_NOTIFY,
		UNI_PE_SHOULD_RESOLVE, UNI_PE_HIATUS, UNI_PE_RESUME };
	static const char *const texts[] = { "a", "b", "longer name" };
	uint64_t r;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	r = *random >> 20;
	*e = (struct uni_promise_event){ .time = time,
		.kind = kinds[r % sizeof(kinds)],
		.thread = 1 + r / 32 % 40,
		.other = r / 2048 % 8 == 0 ? UNI_PROMISE_NOBODY : 1 + r / 16384 % 40,
		.value = (int64_t)(r / 65536 % 3),
		.type = (uint8_t)(r / 131072 % 20) };
	/* As our rings are decoded: who is not told is nobody. */
	if (e->kind >= UNI_PE_LABEL && e->kind != UNI_PE_SIGNAL && e->kind != UNI_PE_TRY_READ &&
		e->kind != UNI_PE_READ_LATER && e->kind != UNI_PE_NOTIFY)
		e->other = UNI_PROMISE_NOBODY;
	if (e->kind == UNI_PE_GC || e->kind == UNI_PE_HIATUS || e->kind == UNI_PE_RESUME)
		e->thread = UNI_PROMISE_NOBODY;
	if (e->kind == UNI_PE_LABEL || e->kind == UNI_PE_FAIL || e->kind == UNI_PE_INCREASE ||
		e->kind == UNI_PE_COUNTER) {
		e->text = texts[r / 262144 % 3];
		e->text_len = (uint32_t)strlen(e->text);
	}
}

static int build(void *arg, const struct uni_promise_event *e)
{
	return uni_promise_builder_add(arg, e);
}

/* The whole model as its JSON, but for how many events it was made of, or without the ids. */
static char *model_text(struct uni_promise_builder *b, bool ids)
{
	const struct uni_promise_model *m = uni_promise_builder_finish(b);
	struct uni_promise_model shown = *m;
	struct uni_findings f = { 0 };
	struct uni_strbuf text;
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };

	uni_strbuf_init(&text);
	shown.events = 0;
	for (size_t i = 0; !ids && i < m->all.nr; i++)
		m->all.v[i].id = 0;
	assert_int_equal(uni_promise_findings(m, 50, &f), 0);
	assert_int_equal(uni_sink_open_strbuf(&text, &out), 0);
	uni_promise_json(out, &shown, &f);
	assert_int_equal(uni_sink_close(out, &err), 0);
	uni_findings_deinit(&f);
	return uni_strbuf_detach(&text);
}

/* Ends both. */
static void same_model(
	struct uni_promise_builder *first, struct uni_promise_builder *second, bool ids)
{
	char *x = model_text(first, ids), *y = model_text(second, ids);

	assert_true(strlen(x) > 100000);
	if (strcmp(x, y) != 0) {
		size_t at = 0;

		while (x[at] == y[at])
			at++;
		fail_msg("differ at %zu: %.80s | %.80s", at, x + (at > 40 ? at - 40 : 0),
			y + (at > 40 ? at - 40 : 0));
	}
	free(x);
	free(y);
	uni_promise_builder_destroy(first);
	uni_promise_builder_destroy(second);
}

static void equal_model(void **state)
{
	struct uni_promise_builder *first = uni_promise_builder_create(),
				   *second = uni_promise_builder_create();
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_mirage_writer *w = NULL;
	struct uni_mirage_stats st;
	struct uni_err err = { 0 };
	uint64_t random = 7;

	(void)state;
	assert_true(first != NULL && second != NULL);
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_mirage_writer_open(out, 1000, &w, &err), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		struct uni_promise_event e;

		random_event(&e, &random, 1000 + 5 * i);
		assert_int_equal(uni_promise_builder_add(first, &e), 0);
		assert_int_equal(uni_mirage_writer_add(w, &e), 0);
	}
	assert_int_equal(uni_mirage_writer_close(w, NULL), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(uni_mirage_read(b.s, b.len, build, second, &st, &err), 0);
	assert_int_equal(st.damaged + st.missing, 0);
	same_model(first, second, true);
	uni_strbuf_deinit(&b);
}

/* An old viewer takes an id to be created once, before anything else is said of it. */
static void is_new(uint64_t *seen, size_t *nr, const struct uni_promise_event *e)
{
	const uint64_t ids[] = { e->thread, e->other };

	for (unsigned k = 0; k < 2; k++) {
		size_t i = 0;

		while (i < *nr && seen[i] != ids[k])
			i++;
		if (e->kind == UNI_PE_CREATE && k == 1 && ids[k] != UNI_PROMISE_NOBODY)
			assert_true(i == *nr);
		if (i == *nr)
			seen[(*nr)++] = ids[k];
	}
}

/* Ids that a guest uses again, and one that looks like those which replace them. */
static void ids_once(void **state)
{
	struct uni_promise_builder *first = uni_promise_builder_create(),
				   *second = uni_promise_builder_create();
	struct uni_mirage_ids *ids = uni_mirage_ids_create();
	uint64_t *seen = calloc(20000, sizeof(*seen)), random = 3;
	size_t nr = 0, kept = 0;

	(void)state;
	assert_true(first != NULL && second != NULL && ids != NULL && seen != NULL);
	for (uint64_t i = 0; i < 10000; i++) {
		struct uni_promise_event e, was;
		bool keep;

		random_event(&e, &random, 1000 + 5 * i);
		if (e.other == 7)
			e.other = 0x1000000000000001;
		if (e.other < 3 && e.kind == UNI_PE_CREATE)
			e.other = 1000 + i;
		was = e;
		assert_int_equal(uni_mirage_ids_replace(ids, &e, &keep), 0);
		if (!keep)
			continue;
		assert_int_equal(uni_promise_builder_add(first, &was), 0);
		is_new(seen, &nr, &e);
		kept += e.kind == UNI_PE_CREATE && e.other == was.other;
		assert_int_equal(uni_promise_builder_add(second, &e), 0);
	}
	assert_true(nr > 300 && kept > 20);
	same_model(first, second, false);
	free(seen);
	uni_mirage_ids_destroy(ids);
}

/* An old viewer follows what a promise became, and has no nobody to create. */
static void chains_end(void **state)
{
	static const struct {
		uint8_t kind;
		uint64_t thread, other;
		bool kept;
	} events[] = {
		{ UNI_PE_BECOME, 1, 1, false },
		{ UNI_PE_BECOME, 1, 2, true },
		{ UNI_PE_BECOME, 2, 3, true },
		{ UNI_PE_BECOME, 3, 1, false },
		{ UNI_PE_BECOME, 1, 2, false },
		{ UNI_PE_BECOME, 1, 4, true },
		{ UNI_PE_BECOME, 5, UNI_PROMISE_NOBODY, false },
		{ UNI_PE_BECOME, UNI_PROMISE_NOBODY, 5, false },
		{ UNI_PE_CREATE, 5, UNI_PROMISE_NOBODY, true },
		{ UNI_PE_CREATE, UNI_PROMISE_NOBODY, 1,
			true }, /* another one, that is nobody's heir */
		{ UNI_PE_BECOME, 4, 1, true },
	};
	struct uni_mirage_ids *ids = uni_mirage_ids_create();

	(void)state;
	assert_non_null(ids);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct uni_promise_event e = {
			.kind = events[i].kind, .thread = events[i].thread, .other = events[i].other
		};
		bool keep;

		assert_int_equal(uni_mirage_ids_replace(ids, &e, &keep), 0);
		assert_int_equal(keep, events[i].kept);
		assert_true(e.kind != UNI_PE_CREATE || e.other != UNI_PROMISE_NOBODY);
	}
	uni_mirage_ids_destroy(ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_model),
		cmocka_unit_test(ids_once),
		cmocka_unit_test(chains_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
