/* SPDX-License-Identifier: BSD-2-Clause */
#include "promise/record.h"

#include <string.h>

#include "base/checked.h"

static bool event_text(struct uni_promise_event *e, const uint64_t *words, unsigned nr)
{
	e->text = (const char *)words;
	e->text_len = (uint32_t)strnlen(e->text, (size_t)nr * 8);
	return nr != 0;
}

static bool event_fields(struct uni_promise_event *e, const uint64_t *words, unsigned nr, double ns)
{
	e->thread = words[0];
	switch (e->kind) {
	case UNI_PE_SWITCH:
	case UNI_PE_SHOULD_RESOLVE:
	case UNI_PE_RESUME:
		return true;
	case UNI_PE_HIATUS:
		e->value = (int64_t)(words[0] & 0xff);
		return true;
	case UNI_PE_GC:
		/* A value above a year is invalid; the product fits then. */
		e->value = words[0] >> 56 != 0 ? 0 : (int64_t)((double)words[0] * ns);
		return e->value >= 0 && e->value < INT64_MAX / 2;
	case UNI_PE_LABEL:
		return event_text(e, words + 1, nr - 1);
	case UNI_PE_INCREASE:
	case UNI_PE_COUNTER:
		e->value = (int64_t)words[1];
		return event_text(e, words + 2, nr - 2);
	case UNI_PE_FAIL:
	case UNI_PE_WAITS_NOW:
		e->other = words[1];
		return event_text(e, words + 2, nr - 2);
	case UNI_PE_ALL_OPEN:
	case UNI_PE_ALL_WAIT:
		e->value = (int64_t)(words[0] & INT64_MAX);
		return true;
	case UNI_PE_OPEN_NOW:
	case UNI_PE_CREATE:
		e->type = nr > 2 && words[2] < UINT8_MAX ? (uint8_t)words[2]
							 : UNI_PROMISE_TYPE_UNKNOWN;
		e->other = words[1];
		return nr > 2;
	case UNI_PE_READ:
	case UNI_PE_TRY_READ:
	case UNI_PE_NOTIFY:
		e->type = nr > 2 && words[2] == UNI_PROMISE_TYPE_LOCK ? UNI_PROMISE_TYPE_LOCK : 0;
		e->other = words[1];
		return true;
	default:
		e->other = words[1];
		return true;
	}
}

bool uni_promise_of_record(uint16_t cls, const uint64_t *words, unsigned nr, uint32_t cpu,
	uint64_t time, double ns_per_cycle, struct uni_promise_event *ret)
{
	unsigned kind = cls - (unsigned)UNI_TRACE_CLASS_USER;

	/* Every event has at least two words: its subject, and a last one. */
	if (cls < UNI_TRACE_CLASS_USER || kind > UNI_PE_ALL_WAIT || nr < 2)
		return false;
	*ret = (struct uni_promise_event){ .time = time,
		.cpu = cpu,
		.kind = (uint8_t)kind,
		.thread = UNI_PROMISE_NOBODY,
		.other = UNI_PROMISE_NOBODY };
	return event_fields(ret, words, nr, ns_per_cycle);
}

/* Appends the text and its padding to `nr` words. */
static unsigned put_text(const struct uni_promise_event *e, uint64_t *words, unsigned nr)
{
	size_t max = (size_t)(UNI_PROMISE_WORDS - nr - 1) * 8;
	size_t len = e->text == NULL ? 0 : uni_min((size_t)e->text_len, max);
	unsigned more = (unsigned)(len / 8 + 1);

	memset(words + nr, 0, (size_t)more * 8);
	if (len != 0)
		memcpy(words + nr, e->text, len);
	return nr + more;
}

unsigned uni_promise_to_record(
	const struct uni_promise_event *e, uint64_t words[UNI_PROMISE_WORDS], uint16_t *cls_ret)
{
	*cls_ret = (uint16_t)(UNI_TRACE_CLASS_USER + e->kind);
	words[0] = e->thread;
	words[1] = e->other;
	words[2] = 0;
	switch (e->kind) {
	case UNI_PE_HIATUS:
	case UNI_PE_GC:
	case UNI_PE_ALL_WAIT:
		words[0] = (uint64_t)e->value;
		return 2;
	case UNI_PE_LABEL:
		return put_text(e, words, 1);
	case UNI_PE_INCREASE:
	case UNI_PE_COUNTER:
		words[1] = (uint64_t)e->value;
		return put_text(e, words, 2);
	case UNI_PE_FAIL:
	case UNI_PE_WAITS_NOW:
		return put_text(e, words, 2);
	case UNI_PE_OPEN_NOW:
	case UNI_PE_CREATE:
	case UNI_PE_READ:
	case UNI_PE_TRY_READ:
	case UNI_PE_NOTIFY:
		words[2] = e->type;
		return 3;
	default:
		return 3;
	}
}

bool uni_promise_of_call(const struct uni_timeline *tl, const struct uni_call_event *e,
	struct uni_promise_event *ret)
{
	if (e->type == UNI_CALL_LOST) {
		*ret = (struct uni_promise_event){ .kind = UNI_PE_LOST,
			.time = e->ns,
			.cpu = e->cpu,
			.thread = UNI_PROMISE_NOBODY,
			.other = UNI_PROMISE_NOBODY,
			.value = (int64_t)e->count };
		return true;
	}
	return e->type == UNI_CALL_EXT && tl->words != NULL &&
	       uni_promise_of_record(
		       e->cls, tl->words(tl->ctx, e), e->nr, e->cpu, e->ns, tl->ns_per_cycle, ret);
}
