/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a process still run the program that was attached? A process that executes another program
 * keeps its number and its perf events. But the known image and addresses belong to the program
 * before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/door.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/proc/proc.h"
#include "backend/vmm/proc.h"

#define LOOK_NS (10 * UNI_NSEC_PER_MSEC) /* minimum time between checks */

/* Fields of /proc/PID/stat, counted after the name. */
#define FIELD_CODE  24
#define FIELD_STACK 26

/* Reads the begin of code and stack: 0 or 1 if the kernel does not say. */
static void read_places(int pid, struct uni_proc_program *ret)
{
	char path[48], text[1024];
	char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (uni_read_small(path, text, sizeof(text)) < 0 || (at = strrchr(text, ')')) == NULL)
		return;
	for (int i = 1; at != NULL && i <= FIELD_STACK; i++) {
		at = strchr(at, ' ');
		if (at == NULL)
			return;
		at++;
		if (i == FIELD_CODE)
			ret->code = strtoull(at, NULL, 10);
		if (i == FIELD_STACK)
			ret->stack = strtoull(at, NULL, 10);
	}
}

/* Returns 0 or -errno. */
static int read_program(int pid, struct uni_proc_program *ret)
{
	char path[48];
	struct stat exe;

	*ret = (struct uni_proc_program){ 0 };
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (uni_door_fstatat(AT_FDCWD, path, &exe, 0) != 0)
		return -errno;
	ret->known = true;
	ret->dev = exe.st_dev;
	ret->ino = exe.st_ino;
	read_places(pid, ret);
	return 0;
}

/* The kernel changes the file of a process a little earlier than its name. */
static void name_program(int pid, size_t cap, char *ret)
{
	char path[48], file[4096];
	const char *base;
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = uni_door_readlinkat(AT_FDCWD, path, file, sizeof(file) - 1);
	if (len <= 0) {
		uni_vmm_comm(pid, ret, cap);
		return;
	}
	file[len] = '\0';
	base = strrchr(file, '/');
	base = base != NULL ? base + 1 : file;
	(void)uni_text_clean(ret, cap, base, strlen(base));
}

void uni_proc_program_note(struct uni_proc *p)
{
	(void)read_program(p->pid, &p->program);
}

bool uni_proc_program_changed(struct uni_proc *p)
{
	struct uni_proc_program now;
	uint64_t now_ns = uni_now_ns();
	char name[64];
	int rc;

	if (p->changed || !p->program.known || now_ns < p->look_program_ns)
		return p->changed;
	p->look_program_ns = now_ns + LOOK_NS;
	rc = read_program(p->pid, &now);
	/*
	 * A process that is ending has no program. If we may not look into it any more, it has
	 * gained rights by executing another program.
	 */
	if (rc != 0 && rc != -EACCES && rc != -EPERM)
		return false;
	p->changed = rc != 0 || p->executed || now.dev != p->program.dev ||
		     now.ino != p->program.ino || now.code != p->program.code ||
		     now.stack != p->program.stack;
	if (!p->changed)
		return false;
	name_program(p->pid, sizeof(name), name);
	(void)snprintf(p->info.ended, sizeof(p->info.ended),
		"process %d runs another program now (%s): record it again to see that", p->pid,
		name);
	return true;
}
