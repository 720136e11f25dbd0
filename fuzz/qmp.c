/* SPDX-License-Identifier: BSD-2-Clause */
/* A QMP message, and every value that is taken out of one. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "backend/vmm/qmp.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static bool clean(const char *s, size_t cap)
{
	size_t n = strnlen(s, cap);

	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)s[i] < 32)
			return false;
	}
	return n < cap;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_qmp_message m;
	struct uni_qmp_event e;
	struct uni_qmp_cpu cpu;
	char text[24] = "";
	uint64_t v;
	bool running;

	if (uni_qmp_parse(data, size, &m) != 0)
		return 0;
	require(clean(m.desc, sizeof(m.desc)));
	told_text(m.desc);
	if (uni_qmp_take_gpa2hva(&m, &v) == 0)
		told_u64(v);
	if (uni_qmp_take_status(&m, &running, text, sizeof(text)) == 0)
		require(clean(text, sizeof(text)));
	if (uni_qmp_take_name(&m, text, sizeof(text)) == 0)
		require(clean(text, sizeof(text)));
	if (uni_qmp_take_event(&m, &e) == 0) {
		require(clean(e.name, sizeof(e.name)) && clean(e.reason, sizeof(e.reason)));
		told_text(e.name);
		told_text(e.reason);
	}
	(void)uni_qmp_take_cpu(&m, &cpu);
	told_u64((uint64_t)uni_qmp_take_chardev(&m, "gdb"));
	told_text(text);
	uni_qmp_message_free(&m);
	return 0;
}
