/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places that a process may execute. A word of its stack that points elsewhere is no return
 * address, also if an unwind row says so. OCaml raises an exception by loading the stack pointer.
 * The rows of the next two instructions are those of the stack before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/door.h"
#include "backend/proc/proc.h"

#define AGE_NS	   (20 * UNI_NSEC_PER_MSEC) /* then code may have been mapped since */
#define LINE_BYTES 48			    /* "start-end perms", with 16 digits each */

/* False: there is no room. */
static bool add_range(struct uni_proc_code *c, uint64_t start, uint64_t end)
{
	if (c->nr != 0 && c->range[c->nr - 1].end == start) {
		c->range[c->nr - 1].end = end;
		return true;
	}
	if (c->nr == uni_array_len(c->range))
		return false;
	c->range[c->nr++] = (struct uni_proc_range){ start, end };
	return true;
}

static bool take_line(struct uni_proc_code *c, const char *line)
{
	char *at;
	uint64_t start = strtoull(line, &at, 16), end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;

	/* " rwxp": the kernel wrote it. */
	if (at[0] != ' ' || at[1] == '\0' || at[2] == '\0' || at[3] != 'x')
		return true;
	return add_range(c, start, end);
}

/* By rising address. False: unknown. */
static bool read_ranges(int fd, struct uni_proc_code *c)
{
	char buf[4096], line[LINE_BYTES] = "";
	bool good = true;
	size_t len = 0;
	ssize_t n;

	c->nr = 0;
	while (good && (n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n && good; i++) {
			if (buf[i] != '\n' && len < sizeof(line) - 1)
				line[len++] = buf[i];
			if (buf[i] != '\n')
				continue;
			line[len] = '\0';
			good = take_line(c, line);
			len = 0;
		}
	}
	return good && c->nr != 0;
}

static void read_code(struct uni_proc *p)
{
	_cleanup_close_ int fd = -1;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", p->pid);
	fd = uni_door_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	p->code.known = fd >= 0 && read_ranges(fd, &p->code);
}

static bool has_code(const struct uni_proc_code *c, uint64_t va)
{
	for (unsigned i = 0; i < c->nr; i++) {
		if (va >= c->range[i].start && va < c->range[i].end)
			return true;
	}
	return false;
}

bool uni_proc_is_code(void *ctx, uint64_t va)
{
	struct uni_proc *p = ctx;
	bool is;

	(void)pthread_mutex_lock(&p->code.lock);
	is = has_code(&p->code, va);
	if (!is && uni_now_ns() >= p->code.next_ns) {
		read_code(p);
		p->code.next_ns = uni_now_ns() + AGE_NS;
		is = has_code(&p->code, va);
	}
	is = is || !p->code.known;
	(void)pthread_mutex_unlock(&p->code.lock);
	return is;
}
