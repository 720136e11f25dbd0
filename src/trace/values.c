/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/values.h"

#include <inttypes.h>
#include <stdio.h>

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

static int put_value(const struct uni_param *p, uint64_t v, char *buf, size_t size)
{
	switch (p->form) {
	case UNI_PARAM_SIGNED:
		return snprintf(buf, size, "%" PRId64, signed_bytes(v, p->size));
	case UNI_PARAM_UNSIGNED:
		return snprintf(buf, size, "%" PRIu64, low_bytes(v, p->size));
	case UNI_PARAM_BOOL:
		return snprintf(buf, size, "%s", low_bytes(v, 1) != 0 ? "true" : "false");
	default:
		return snprintf(buf, size, "0x%" PRIx64, v);
	}
}

void uni_trace_args_text(
	const struct uni_params *p, const uint64_t *reg, size_t nr, char *buf, size_t size)
{
	static const struct uni_param hex = { .form = UNI_PARAM_POINTER };
	size_t count = p != NULL ? p->nr : nr, at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < count && at < size; i++) {
		const struct uni_param *one = p != NULL ? &p->param[i] : &hex;
		size_t from = p != NULL ? (size_t)one->reg : i;

		at += (size_t)snprintf(buf + at, size - at, "%s%s%s", i != 0 ? ", " : "", one->name,
			one->name[0] != '\0' ? "=" : "");
		if (at >= size)
			return;
		at += one->reg == UNI_PARAM_NO_REG || from >= nr
			      ? (size_t)snprintf(buf + at, size - at, "?")
			      : (size_t)put_value(one, reg[from], buf + at, size - at);
	}
}

void uni_trace_value_text(const struct uni_params *p, uint64_t reg, char *buf, size_t size)
{
	static const struct uni_param hex = { .form = UNI_PARAM_POINTER };
	int n;

	buf[0] = '\0';
	if (p != NULL && (!p->returns || p->value.reg == UNI_PARAM_NO_REG))
		return;
	n = snprintf(buf, size, "ret=");
	(void)put_value(p != NULL ? &p->value : &hex, reg, buf + n, size - (size_t)n);
}
