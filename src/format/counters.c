/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/counters.h"

#include "base/err.h"

static bool brings_variables(uint16_t cls)
{
	return cls == UNI_TRACE_CLASS_ENTRY_ARGS || cls == UNI_TRACE_CLASS_EXIT_VALUE ||
	       cls == UNI_TRACE_CLASS_CALL_ARGS;
}

/* The variable's counter; the number of counters: it has none yet. */
static size_t find_counter(const struct uni_counters *c, uint32_t address)
{
	size_t i = 0;

	while (i < c->last.nr && c->last.v[i].address != address)
		i++;
	return i;
}

int uni_counters_take(struct uni_counters *c, const struct uni_timeline *tl,
	const struct uni_call_event *e, struct uni_counted ret[UNI_TRACE_READS_OF])
{
	struct uni_trace_got got[UNI_TRACE_READS_OF];
	size_t nr;
	int n = 0;

	if (e->type != UNI_CALL_EXT || !brings_variables(e->cls) || tl->words == NULL ||
		tl->variable == NULL)
		return 0;
	nr = uni_trace_reads(
		tl->words(tl->ctx, e), e->nr, e->cls == UNI_TRACE_CLASS_EXIT_VALUE, got);
	for (size_t i = 0; i < nr; i++) {
		size_t at = find_counter(c, got[i].address);
		bool is_new = at == c->last.nr;

		if (at == UNI_COUNTERS_MAX || (!is_new && c->last.v[at].value == got[i].value))
			continue;
		if (is_new && !uni_vec_push(&c->last, got[i]))
			return -UNI_ENOMEM;
		c->last.v[at] = got[i];
		ret[n++] = (struct uni_counted){ .nr = at,
			.name = tl->variable(tl->variables, got[i].address),
			.is_new = is_new,
			.is_signed = got[i].is_signed,
			.value = got[i].value };
	}
	return n;
}

void uni_counters_deinit(struct uni_counters *c)
{
	uni_vec_free(&c->last);
}
