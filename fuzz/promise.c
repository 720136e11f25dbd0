/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of threads and promises as a guest's ring has them. Each is a byte for the kind, one for
 * the number of words and one for the time that passes, then the words. An event that becomes a
 * record again is the same record. All questions are asked of the model that they make.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "promise/record.h"
#include "promise/text.h"
#include "told.h"

#define MAX_WORDS  40u
#define BUSY_NS	   1000
#define MAX_ASKED  64u
#define HEAD_BYTES 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct uni_promise_event *e)
{
	static uint64_t words[UNI_PROMISE_WORDS], again[UNI_PROMISE_WORDS];
	struct uni_promise_event back;
	uint16_t cls, cls2;
	unsigned nr = uni_promise_to_record(e, words, &cls);

	if (!uni_promise_of_record(cls, words, nr, e->cpu, e->time, 1.0, &back) ||
		back.kind != e->kind || back.value != e->value || back.text_len != e->text_len ||
		(e->text_len != 0 && memcmp(back.text, e->text, e->text_len) != 0) ||
		uni_promise_to_record(&back, again, &cls2) != nr || cls2 != cls ||
		memcmp(words, again, nr * sizeof(words[0])) != 0)
		abort();
}

/* The words behind an event's are not its own. */
static bool take_record(uint16_t cls, const uint8_t *data, unsigned nr, uint32_t cpu, uint64_t time,
	struct uni_promise_event *ret)
{
	static uint64_t words[2][MAX_WORDS];
	struct uni_promise_event e[2];
	bool ok[2];

	for (unsigned i = 0; i < 2; i++) {
		memset(words[i], i != 0 ? 0x81 : 0, sizeof(words[i]));
		memcpy(words[i], data, (size_t)nr * 8);
		ok[i] = uni_promise_of_record(cls, words[i], nr, cpu, time, 1.0, &e[i]);
	}
	if (ok[0] != ok[1])
		abort();
	if (!ok[0])
		return false;
	*ret = e[0];
	if (e[0].kind != e[1].kind || e[0].thread != e[1].thread || e[0].other != e[1].other ||
		e[0].value != e[1].value || e[0].type != e[1].type ||
		e[0].text_len != e[1].text_len)
		abort();
	return true;
}

static void ask(const struct uni_promise_model *m)
{
	const struct uni_promise_list_opts all = { .all = true };
	struct uni_findings found = { 0 };
	struct uni_sink *out = NULL;
	struct uni_strbuf text;

	uni_strbuf_init(&text);
	if (uni_sink_open_strbuf(&text, &out) == 0) {
		if (uni_promise_findings(m, BUSY_NS, &found) == 0)
			uni_promise_text_findings(out, m, &found);
		(void)uni_promise_text_threads(out, m, &all);
		for (uint32_t i = 0; i < m->all.nr && i < MAX_ASKED; i++)
			uni_promise_text_why(out, m, i);
		(void)uni_sink_close(out, NULL);
		told(text.s, text.len);
	}
	uni_findings_deinit(&found);
	uni_strbuf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_promise_builder *b = uni_promise_builder_create();
	const struct uni_promise_model *m;
	struct uni_promise_event e;
	uint64_t now = 1;
	int rc = 0;

	while (b != NULL && rc == 0 && size >= HEAD_BYTES) {
		unsigned nr = uni_min(data[1] % MAX_WORDS, (size - HEAD_BYTES) / 8);
		uint16_t cls = (uint16_t)(UNI_TRACE_CLASS_USER - 1 + data[0] % 24);

		now += (uint64_t)data[2] * data[2];
		if (take_record(cls, data + HEAD_BYTES, nr, data[0] / 24u % 4, now, &e)) {
			check_same(&e);
			rc = uni_promise_builder_add(b, &e);
		}
		data += HEAD_BYTES + nr * 8;
		size -= HEAD_BYTES + nr * 8;
	}
	m = b != NULL && rc == 0 ? uni_promise_builder_finish(b) : NULL;
	if (m != NULL)
		ask(m);
	uni_promise_builder_destroy(b);
	return 0;
}
