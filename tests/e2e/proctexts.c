/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls with texts that are on the stack, for our tracer (a process of one CPU) and, built with
 * -DUFTRACE, for uftrace. Says "ready", waits for a line, makes its calls, prints the text of each
 * (its own book), and "done". Stays until its input ends.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UFTRACE
#include <asm/prctl.h>
#include <sys/syscall.h>
#include "uniscope/trace.h"
#endif

int texts_open(const char *path, int flags);
long texts_write(int fd, const void *buf, size_t size);
int texts_any(const char *path);
int rules_work(long size, const char *path);
void rules_short(long size);
long vars_take(long used);

#define ROUNDS 300

#ifndef UFTRACE
static struct uni_trace_cpu cpu __attribute__((aligned(64)));
static uint64_t rules[16];

/* The kernel looks: it copies the bytes, or says that it cannot. */
static int readable(uint64_t at, uint64_t bytes)
{
	static char copy[4096];
	const struct iovec to = { copy, bytes }, from = { (void *)at, bytes };

	return bytes <= sizeof(copy) &&
	       process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

static void set_up(void)
{
	const struct uni_trace_memory memory = { .readable = readable };
	struct uni_trace_cpu *const cpus[] = { &cpu };
	const uint64_t size = 4 << 20;
	void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (ring == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(ring, size, 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0 ||
		uni_trace_copy_text(rules, sizeof(rules), &memory) != 0)
		exit(1);
}
#else
static void set_up(void)
{
}
#endif

/* One that is longer each time, and ends in its number. */
static void one_round(unsigned n)
{
	char path[512];
	size_t len = n % 90;

	memset(path, 'a' + (int)(n % 26), len);
	(void)snprintf(path + len, sizeof(path) - len, "/%u", n);
	(void)texts_open(path, (int)n);
	(void)texts_write((int)n, path, strlen(path));
	(void)printf("%s\n", path);
	memset(path, 0, sizeof(path));
}

/* Calls for --rule: other sizes, other paths. */
static void work(void)
{
	static const char *const paths[] = { "/etc/hosts", "/tmp/a", "/etc/passwd" };

	for (int n = 0; n < 24; n++)
		(void)rules_work(n * 200L - 400, paths[n % 3]);
	rules_short(7);
}

/* The argument is the variable that it changes, and returns. */
static void change_variables(void)
{
	long used = 1000;

	for (int n = 0; n < 24; n++)
		used = vars_take(used);
}

int main(void)
{
	int c;

	set_up();
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
	for (unsigned n = 0; n < ROUNDS; n++)
		one_round(n);
	work();
	change_variables();
	(void)texts_any((const char *)16);
	(void)texts_any("tab\t quote\" back\\ \x01"
			"2 \xc3\xa9");
	(void)printf("done\n");
	(void)fflush(stdout);
	do {
		c = getchar();
	} while (c != EOF);
	return 0;
}
