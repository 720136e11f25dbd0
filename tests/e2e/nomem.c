// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linked into a uniscope of its own, in front of the C library's allocations (--wrap). At each
 * allocation that comes by a new way, the process forks: the child gets no memory there, and goes
 * on. The parent waits for it, writes a line about it, takes back what it printed, and goes on with
 * the memory.
 *
 * UNI_NOMEM names two files, with a blank between them. The first is a table of the ways that were
 * taken, which all commands of a test share. The second has a line for each child: its status, a
 * hash of standard output, standard error, and the way's addresses.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 4, SKIPPED = 2, NR_WAYS = 1 << 16, TRIES = 40000, NAP_US = 500 };

static uint64_t *ways; /* 0: free; NULL: nothing fails */
static int lines;
static pid_t self;
static bool threaded, lacked;

extern const char __ehdr_start[], _end[];

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t nr, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_pthread_create(void *thread, const void *attr, void *(*run)(void *), void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t nr, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **text, const char *form, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **text, int flag, const char *form, ...)
	__attribute__((format(printf, 3, 4)));
int __wrap_pthread_create(void *thread, const void *attr, void *(*run)(void *), void *arg);

__attribute__((constructor)) static void nomem_begin(void)
{
	void *at[1];
	const char *names = getenv("UNI_NOMEM");
	const char *second = names != NULL ? strchr(names, ' ') : NULL;
	char first[4096];
	int fd;

	if (second == NULL)
		return;
	(void)snprintf(first, sizeof(first), "%.*s", (int)(second - names), names);
	fd = open(first, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	lines = open(second + 1, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || lines < 0 || ftruncate(fd, NR_WAYS * (off_t)sizeof(*ways)) != 0)
		abort();
	(void)backtrace(at, 1); /* loads what it needs */
	self = getpid();
	ways = mmap(NULL, NR_WAYS * sizeof(*ways), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ways == MAP_FAILED)
		abort();
	(void)close(fd);
}

/* In place of cli/memory.c. */
bool uni_memory_lacked(void);
bool uni_memory_lacked(void)
{
	return lacked;
}

static bool is_ours(const void *at)
{
	return (const char *)at >= __ehdr_start && (const char *)at < _end;
}

static bool is_new(uint64_t way)
{
	for (size_t i = way % NR_WAYS, n = 0; n < NR_WAYS; i = (i + 1) % NR_WAYS, n++) {
		uint64_t free_place = 0;

		if (__atomic_compare_exchange_n(
			    &ways[i], &free_place, way, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (free_place == way)
			return false;
	}
	return false;
}

static off_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : -1;
}

static void cut(int fd, off_t size)
{
	if (size >= 0 && ftruncate(fd, size) == 0)
		(void)lseek(fd, size, SEEK_SET);
}

static uint64_t hash_of(int fd)
{
	char part[4096];
	off_t at = 0;
	uint64_t h = 0xcbf29ce484222325;

	for (ssize_t n; (n = pread(fd, part, sizeof(part), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ (unsigned char)part[i]) * 0x100000001b3;
	return h;
}

/* The child's end, or that of one that has none. */
static int end_of(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < TRIES; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		(void)usleep(NAP_US);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return SIGKILL;
}

static void tell(int status, void *const *at, int nr)
{
	char line[1024], said[480];
	ssize_t n = pread(STDERR_FILENO, said, sizeof(said) - 1, 0);
	int len;

	said[n > 0 ? n : 0] = '\0';
	for (char *c = said; *c != '\0'; c++)
		*c = *c == '\n' || *c == '\t' ? ' ' : *c;
	len = snprintf(line, sizeof(line), "%d\t%016jx\t%s\t", status,
		(uintmax_t)hash_of(STDOUT_FILENO), said);
	for (int i = 0; i < nr; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %tx",
			(const char *)at[i] - __ehdr_start);
	line[len++] = '\n';
	if (write(lines, line, (size_t)len) != len)
		abort();
}

/* True in the child that gets no memory. */
static __attribute__((noinline)) bool fails(void)
{
	void *at[SKIPPED + DEPTH];
	uint64_t way = 0xcbf29ce484222325;
	off_t out_size, err_size;
	pid_t pid;
	int nr, old = errno;

	if (ways == NULL || threaded || getpid() != self)
		return false;
	nr = backtrace(at, SKIPPED + DEPTH);
	while (nr > SKIPPED && !is_ours(at[nr - 1])) /* libraries are elsewhere in each process */
		nr--;
	for (int i = SKIPPED; i < nr; i++)
		if (!is_ours(at[i]))
			at[i] = (void *)(uintptr_t)__ehdr_start;
	for (int i = SKIPPED; i < nr; i++)
		way = (way ^ (uint64_t)((const char *)at[i] - __ehdr_start)) * 0x100000001b3;
	if (!is_new(way | 1))
		return false;
	(void)fflush(NULL);
	out_size = size_of(STDOUT_FILENO);
	err_size = size_of(STDERR_FILENO);
	pid = fork();
	if (pid == 0) {
		ways = NULL;
		lacked = true;
		return true;
	}
	if (pid < 0)
		abort();
	tell(end_of(pid), at + SKIPPED, nr - SKIPPED);
	cut(STDOUT_FILENO, out_size);
	cut(STDERR_FILENO, err_size);
	errno = old;
	return false;
}

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? none() : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? none() : __real_calloc(nr, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? none() : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t nr, size_t size)
{
	return fails() ? none() : __real_reallocarray(p, nr, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? none() : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails() ? none() : __real_strndup(s, n);
}

__attribute__((format(printf, 2, 0))) static int print(char **text, const char *form, va_list args)
{
	*text = NULL;
	return fails() ? -1 : vasprintf(text, form, args);
}

int __wrap_asprintf(char **text, const char *form, ...)
{
	va_list args;
	int ret;

	va_start(args, form);
	ret = print(text, form, args);
	va_end(args);
	return ret;
}

/* asprintf() with FORTIFY. */
int __wrap___asprintf_chk(char **text, int flag, const char *form, ...)
{
	va_list args;
	int ret;

	va_start(args, form);
	ret = print(text, form, args);
	va_end(args);
	return ret;
}

int __wrap_pthread_create(void *thread, const void *attr, void *(*run)(void *), void *arg)
{
	threaded = true;
	return __real_pthread_create(thread, attr, run, arg);
}
