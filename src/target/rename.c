/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/rename.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/io.h"
#include "base/text.h"

/* The number in field n (from 1) of /proc/self/stat, 0 if there is none. */
static uint64_t stat_field(const char *stat, int n)
{
	const char *p = strrchr(stat, ')'); /* the name before it, field 2, may hold anything */
	char word[24];
	uint64_t v;

	for (int i = 2; i < n && p != NULL; i++)
		p = strchr(p + 1, ' ');
	if (p == NULL)
		return 0;
	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(p + 1, " \n"), p + 1);
	return uni_parse_u64(word, &v) ? v : 0;
}

void uni_target_rename(const char *name)
{
	size_t size = strlen(name) + 1;
	uint64_t start, end;
	char stat[1024];

	(void)prctl(PR_SET_NAME, name);
	if (uni_read_small("/proc/self/stat", stat, sizeof(stat)) < 0)
		return;
	/* The arguments lie where the kernel put them, in our own copy. */
	start = stat_field(stat, 48);
	end = stat_field(stat, 49);
	if (start == 0 || end < start || end - start < size)
		return;
	memset((void *)(uintptr_t)start, 0, end - start);
	memcpy((void *)(uintptr_t)start, name, size);
}
