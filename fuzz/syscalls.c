/* SPDX-License-Identifier: BSD-2-Clause */
/* A console with system calls, printed, summed up and as JSON; behind a first byte above 0x7f: the
 * arguments of one call. */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "syscalls/source.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_memory(void *ctx, uint64_t va, void *buf, size_t cap)
{
	const struct uni_strbuf *b = ctx;
	size_t at = (size_t)va, n;

	if (at >= b->len)
		return 0;
	n = b->len - at < cap ? b->len - at : cap;
	memcpy(buf, b->s + at, n);
	return n;
}

static void one_call(const uint8_t *data, size_t size)
{
	uint64_t arg[6] = { 0 };
	struct uni_strbuf memory, out;
	const struct uni_sysc_memory m = { read_memory, &memory, 32 };
	struct uni_trace_copied copied[UNI_TRACE_ARGS];
	struct uni_trace_got got[UNI_TRACE_READS_OF];
	const size_t head = 3 + sizeof(arg);
	uint64_t *words;
	size_t i, nr;

	if (size < head)
		return;
	i = ((size_t)data[1] | (size_t)data[2] << 8) % (uni_sysc_nr + 1);
	memcpy(arg, data + 3, sizeof(arg));
	uni_strbuf_init(&memory);
	uni_strbuf_init(&out);
	uni_strbuf_add(&memory, data + head, size - head);
	/* The same bytes as the words of a record; of its own size, so that each overrun is seen.
	 */
	nr = (size - 3) / sizeof(*words);
	words = malloc(nr * sizeof(*words));
	if (words != NULL) {
		memcpy(words, data + 3, nr * sizeof(*words));
		uni_trace_copied(words, nr, copied);
		(void)uni_trace_reads(words, nr, data[0] & 1, got);
		uni_sysc_args(
			i < uni_sysc_nr ? &uni_sysc_table[i] : NULL, arg, 6, copied, &m, &out);
	}
	uni_sysc_args(i < uni_sysc_nr ? &uni_sysc_table[i] : NULL, arg, 6, NULL, &m, &out);
	free(words);
	told(out.s, out.len);
	uni_strbuf_deinit(&memory);
	uni_strbuf_deinit(&out);
}

static void tell(const struct uni_sysc_log *log)
{
	const struct uni_sysc_print how = { .column = 40, .duration = true, .relative = true };
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	if (uni_sink_open_strbuf(&b, &out) == 0) {
		(void)uni_sysc_print(log, &how, out);
		(void)uni_sysc_summary(log, UNI_SYSC_BY_TIME, out);
		uni_sysc_json(log, out);
		(void)uni_sink_close(out, NULL);
		told(b.s, b.len);
	}
	uni_strbuf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_sysc_log log;

	if (size != 0 && data[0] >= 0x80) {
		one_call(data, size);
		return 0;
	}
	if (uni_sysc_log_init(&log, NULL) != 0)
		return 0;
	if (uni_sysc_from_console((const char *)data, size, EM_X86_64, &log) == 0)
		tell(&log);
	uni_sysc_log_deinit(&log);
	return 0;
}
