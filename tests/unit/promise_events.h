/* SPDX-License-Identifier: BSD-2-Clause */
/* Events one after the other into a model, for tests of what is asked of it; after cmocka.h. */
#ifndef TESTS_PROMISE_EVENTS_H
#define TESTS_PROMISE_EVENTS_H

#include <stdlib.h>
#include <string.h>

#include "promise/text.h"

#define NOBODY UNI_PROMISE_NOBODY

static struct uni_promise_builder *b;
static uint64_t now;

static inline void put(struct uni_promise_event e)
{
	e.time = now += 1000;
	assert_int_equal(uni_promise_builder_add(b, &e), 0);
}

static inline void ev(uint8_t kind, uint64_t thread, uint64_t other)
{
	put((struct uni_promise_event){ .kind = kind, .thread = thread, .other = other });
}

static inline void create(uint64_t by, uint64_t id, uint8_t type, const char *name)
{
	put((struct uni_promise_event){
		.kind = UNI_PE_CREATE, .thread = by, .other = id, .type = type });
	put((struct uni_promise_event){ .kind = UNI_PE_LABEL,
		.thread = id,
		.other = NOBODY,
		.text = name,
		.text_len = (uint32_t)strlen(name) });
}

static inline int begin(void **state)
{
	(void)state;
	now = 1000000;
	b = uni_promise_builder_create();
	return b == NULL;
}

static inline int end(void **state)
{
	(void)state;
	uni_promise_builder_destroy(b);
	return 0;
}

static inline const struct uni_promise *of(const struct uni_promise_model *m, uint64_t id)
{
	uint32_t i = uni_promise_find(b, id);

	assert_int_not_equal(i, UNI_PROMISE_NONE);
	return &m->all.v[i];
}

static inline char *said(
	const struct uni_promise_model *m, const struct uni_findings *f, uint64_t why)
{
	struct uni_strbuf s;
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };

	uni_strbuf_init(&s);
	assert_int_equal(uni_sink_open_strbuf(&s, &out), 0);
	if (f != NULL)
		assert_int_equal(uni_promise_text_findings(out, m, f), 0);
	else
		uni_promise_text_why(out, m, uni_promise_find(b, why));
	assert_int_equal(uni_sink_close(out, &err), 0);
	return uni_strbuf_detach(&s);
}

static inline void expect_text(char *text, const char *words)
{
	if (text == NULL || strstr(text, words) == NULL)
		fail_msg("no '%s' in:\n%s", words, text == NULL ? "(nothing)" : text);
}

#endif
