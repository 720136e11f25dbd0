/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab.h"
#include "lab_point.h"

#define STRING_MAX 80

extern char uk_trace_buffer[];
extern size_t uk_trace_buffer_free;
extern char *uk_trace_buffer_writep;

char uk_trace_buffer[LAB_POINT_BUFFER];
size_t uk_trace_buffer_free = LAB_POINT_BUFFER;
char *uk_trace_buffer_writep = uk_trace_buffer;

struct head {
	uint32_t magic, size;
	uint64_t ns, cookie;
};

static unsigned string_len(const char *s)
{
	size_t len = lab_strlen(s);

	return len < STRING_MAX ? (unsigned)len : STRING_MAX;
}

static unsigned size_of(const struct lab_point_arg *arg, unsigned nr)
{
	unsigned size = 0;

	for (unsigned i = 0; i < nr; i++)
		size += arg[i].s ? 1 + string_len(arg[i].s) : arg[i].size;
	return size;
}

static char *put(char *to, const struct lab_point_arg *a)
{
	if (!a->s) {
		memcpy(to, &a->v, a->size);
		return to + a->size;
	}
	*to = (char)string_len(a->s);
	memcpy(to + 1, a->s, string_len(a->s));
	return to + 1 + string_len(a->s);
}

LAB_FUNC int lab_point_record(uint64_t cookie, const struct lab_point_arg *arg, unsigned nr)
{
	struct head head = { .size = size_of(arg, nr), .ns = lab_tsc(), .cookie = cookie };
	char *at = uk_trace_buffer_writep, *to = at + sizeof(head);

	if (uk_trace_buffer_free < sizeof(head) + head.size) {
		uk_trace_buffer_free = 0;
		return 0;
	}
	memcpy(at, &head, sizeof(head)); /* no magic yet: nobody takes it for a record */
	for (unsigned i = 0; i < nr; i++)
		to = put(to, &arg[i]);
	uk_trace_buffer_writep = to;
	uk_trace_buffer_free -= (size_t)(to - at);
	LAB_BARRIER();
	memcpy(at, "TRhd", 4);
	return 1;
}
