/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a uftrace folder: their contents one after the other, each ended by a line "=". */
#include <stdlib.h>
#include <string.h>

#include "format/uftrace/data_read.h"
#include "files.h"
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_cursor all = uni_cursor_make(data, size), part[5];
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st = { 0 };
	struct uni_uftrace_events events = { 0 };
	struct uni_uftrace_syms syms;
	struct uni_uftrace_thread thread = { &syms, &events, 1 };
	struct uni_stack stack;
	size_t at = 0;

	if (p == NULL || !uni_uftrace_syms_init(&syms) || !uni_stack_init(&stack, p))
		abort();
	for (size_t i = 0; i < 5; i++)
		part[i] = next_part(&all);
	(void)uni_uftrace_info((const char *)part[0].data, part[0].size, &syms);
	if (!uni_uftrace_map(&syms, (const char *)part[1].data, part[1].size) ||
		!uni_uftrace_sym(&syms, 0x400000, (const char *)part[2].data, part[2].size))
		abort();
	uni_uftrace_syms_sort(&syms);
	if (!uni_uftrace_perf(&events, (const char *)part[4].data, part[4].size, &st.damaged))
		abort();
	uni_uftrace_events_sort(&events);
	(void)uni_uftrace_dat(&stack, &thread, (const char *)part[3].data, part[3].size, &st, &at);
	if (at > part[3].size || uni_profile_finish(p) != 0)
		abort();
	told_u64(at);
	fuzz_tell_stats(&st);
	fuzz_tell_profile(p);
	uni_stack_deinit(&stack);
	uni_uftrace_syms_deinit(&syms);
	uni_vec_free(&events.all);
	uni_profile_destroy(p);
	return 0;
}
