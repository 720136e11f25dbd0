/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/values.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"

/* The register may hold anything above the value's own bytes. */
static uint64_t low_bytes(uint64_t v, unsigned size)
{
	return size == 0 || size >= 8 ? v : v & ((UINT64_C(1) << size * 8) - 1);
}

static int64_t signed_bytes(uint64_t v, unsigned size)
{
	unsigned shift = size == 0 || size >= 8 ? 0 : 64 - size * 8;

	return (int64_t)(v << shift) >> shift;
}

static void put_value(const struct uni_param *p, uint64_t v, struct uni_strbuf *out)
{
	switch (p->form) {
	case UNI_PARAM_SIGNED:
		uni_strbuf_addf(out, "%" PRId64, signed_bytes(v, p->size));
		break;
	case UNI_PARAM_UNSIGNED:
		uni_strbuf_addf(out, "%" PRIu64, low_bytes(v, p->size));
		break;
	case UNI_PARAM_BOOL:
		uni_strbuf_adds(out, low_bytes(v, 1) != 0 ? "true" : "false");
		break;
	default:
		uni_strbuf_addf(out, "0x%" PRIx64, v);
		break;
	}
}

__int128 uni_trace_value(const struct uni_param *p, uint64_t reg)
{
	if (p != NULL && p->form == UNI_PARAM_SIGNED)
		return signed_bytes(reg, p->size);
	return p != NULL ? low_bytes(reg, p->form == UNI_PARAM_BOOL ? 1 : p->size) : reg;
}

void uni_trace_copied(const uint64_t *words, size_t nr, struct uni_trace_copied ret[UNI_TRACE_ARGS])
{
	memset(ret, 0, UNI_TRACE_ARGS * sizeof(*ret));
	/* The last word is the function. */
	for (size_t i = UNI_TRACE_ARGS; nr > i && i < nr - 1;) {
		const uint64_t head = words[i++];
		size_t len = UNI_TRACE_TEXT_BYTES(head), more = (len + 7) / 8;

		if (UNI_TRACE_TEXT_ARG(head) >= UNI_TRACE_ARGS || more > nr - 1 - i)
			return;
		ret[UNI_TRACE_TEXT_ARG(head)] = (struct uni_trace_copied){
			.text = (const char *)&words[i],
			.len = (uint16_t)len,
			.flags = (uint8_t)UNI_TRACE_TEXT_FLAGS(head),
		};
		i += more;
	}
}

size_t uni_trace_reads(const uint64_t *words, size_t nr, bool is_value,
	struct uni_trace_got ret[UNI_TRACE_READS_OF])
{
	size_t got = 0;

	/* The last word is the function, or the stack pointer. */
	for (size_t i = is_value ? 2 : UNI_TRACE_ARGS; nr > i && i < nr - 1;) {
		const uint64_t head = words[i++];
		size_t more = (UNI_TRACE_TEXT_BYTES(head) + 7) / 8;

		if (more > nr - 1 - i)
			break;
		if (UNI_TRACE_TEXT_ARG(head) == UNI_TRACE_READ && more == 1 &&
			got < UNI_TRACE_READS_OF)
			ret[got++] = (struct uni_trace_got){
				.address = (uint32_t)(head >> 32),
				.is_signed =
					(UNI_TRACE_TEXT_FLAGS(head) & UNI_TRACE_READ_SIGNED) != 0,
				.value = words[i],
			};
		i += more;
	}
	return got;
}

__int128 uni_trace_got_number(const struct uni_trace_got *g)
{
	return g->is_signed ? (__int128)(int64_t)g->value : (__int128)g->value;
}

static void put_copied(const struct uni_trace_copied *t, struct uni_strbuf *out)
{
	uni_strbuf_quote(out, t->text, t->len, t->len);
	if ((t->flags & UNI_TRACE_TEXT_CUT) != 0)
		uni_strbuf_adds(out, "...");
}

void uni_trace_args_text(
	const struct uni_params *p, const uint64_t *words, size_t nr, struct uni_strbuf *out)
{
	static const struct uni_param hex = { .form = UNI_PARAM_POINTER };
	const size_t regs = uni_min(nr, (size_t)UNI_TRACE_ARGS), count = p != NULL ? p->nr : regs;
	struct uni_trace_copied copied[UNI_TRACE_ARGS];

	uni_trace_copied(words, nr, copied);
	for (size_t i = 0; i < count; i++) {
		const struct uni_param *one = p != NULL ? &p->param[i] : &hex;
		size_t from = p != NULL ? (size_t)one->reg : i;

		uni_strbuf_addf(out, "%s%s%s", i != 0 ? ", " : "", one->name,
			one->name[0] != '\0' ? "=" : "");
		if (one->reg == UNI_PARAM_NO_REG || from >= regs)
			uni_strbuf_adds(out, "?");
		else if (copied[from].text == NULL ||
			 (copied[from].flags & UNI_TRACE_TEXT_BAD) != 0)
			put_value(one, words[from], out);
		else
			put_copied(&copied[from], out);
	}
}

void uni_trace_value_text(const struct uni_params *p, uint64_t reg, struct uni_strbuf *out)
{
	static const struct uni_param hex = { .form = UNI_PARAM_POINTER };

	if (p != NULL && (!p->returns || p->value.reg == UNI_PARAM_NO_REG))
		return;
	uni_strbuf_adds(out, "ret=");
	put_value(p != NULL ? &p->value : &hex, reg, out);
}
