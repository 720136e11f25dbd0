/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/door.h"
#include "base/io.h"
#include "base/text.h"

/* The number in field n (from 1) of /proc/self/stat, 0 if there is none. */
static uint64_t stat_field(const char *stat, int n)
{
	const char *p =
		strrchr(stat, ')'); /* the name before it, field 2, may contain any characters */
	char word[24];
	uint64_t v;

	for (int i = 2; i < n && p != NULL; i++)
		p = strchr(p + 1, ' ');
	if (p == NULL)
		return 0;
	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(p + 1, " \n"), p + 1);
	return uni_parse_u64(word, &v) ? v : 0;
}

static void rename_self(const char *name)
{
	size_t size = strlen(name) + 1;
	uint64_t start, end;
	char stat[1024];

	(void)prctl(PR_SET_NAME, name);
	if (uni_read_small("/proc/self/stat", stat, sizeof(stat)) < 0)
		return;
	/* The arguments are still where the kernel put them, in our own copy. */
	start = stat_field(stat, 48);
	end = stat_field(stat, 49);
	if (start == 0 || end < start || end - start < size)
		return;
	memset((void *)(uintptr_t)start, 0, end - start);
	memcpy((void *)(uintptr_t)start, name, size);
}

/* Closes all descriptors from 3 on, except these. */
static void close_others(const int *fd, size_t nr)
{
	int from = 3;

	for (;;) {
		int next = -1;

		for (size_t i = 0; i < nr; i++) {
			if (fd[i] >= from && (next < 0 || fd[i] < next))
				next = fd[i];
		}
		if (next < 0)
			break;
		if (next > from)
			(void)close_range((unsigned)from, (unsigned)next - 1, 0);
		from = next + 1;
	}
	(void)close_range((unsigned)from, ~0u, 0);
}

void uni_helper_begin(const char *name, int *fd, size_t nr)
{
	sigset_t all;
	int null;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	rename_self(name);
	for (size_t i = 0; i < nr; i++) {
		if (fd[i] < 3)
			fd[i] = fcntl(fd[i], F_DUPFD, 3); /* the old one is overlaid below */
	}
	null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3 && null >= 0; i++)
		(void)dup2(null, i);
	close_others(fd, nr);
	uni_door_leave();
}
