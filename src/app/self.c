/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/self.h"

#include "base/io.h"
#include "base/text.h"

void uni_self_command(char *out, size_t cap)
{
	char line[UNI_TEXT_MAX];
	int len = uni_read_small("/proc/self/cmdline", line, sizeof(line));

	out[0] = '\0';
	if (len <= 0)
		return;
	/* Each word ends with a NUL, the last one too. */
	for (int i = 0; i < len - 1; i++) {
		if (line[i] == '\0')
			line[i] = ' ';
	}
	(void)uni_text_clean(out, cap, line, (size_t)len);
}
