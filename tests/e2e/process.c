/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process to look at: position independent, with shared libraries. Its main thread sorts all the
 * time through the C library, others sleep. One sleeps in a condition variable, one in
 * epoll_wait(), which would notice a stop. Prints how often that happened when it is told to end (a
 * byte).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define NR 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static atomic_uint interrupted;

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	for (volatile int i = 0; i < 20; i++) {
	}
	return (x > y) - (x < y);
}

__attribute__((noinline)) static void sort_some(unsigned *v)
{
	static unsigned seed = 1;

	for (unsigned i = 0; i < NR; i++)
		v[i] = seed = seed * 1103515245u + 12345u;
	qsort(v, NR, sizeof(*v), compare);
	__asm__ volatile(""); /* something left to do: this stays a call */
}

__attribute__((noinline)) static void wait_for_ever(void)
{
	(void)pthread_mutex_lock(&lock);
	for (;;)
		(void)pthread_cond_wait(&never, &lock);
}

static void *waiter(void *arg)
{
	wait_for_ever();
	return arg;
}

static void *poller(void *arg)
{
	int fd = epoll_create1(0);
	struct epoll_event e;

	for (;;) {
		if (epoll_wait(fd, &e, 1, -1) < 0 && errno == EINTR)
			interrupted++;
	}
	return arg;
}

/* A call that gives up after a time is not begun again after a stop, as signal(7) says. */
static void *receiver(void *arg)
{
	const struct timeval long_time = { .tv_sec = 1000000 };
	int fd[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0 ||
		setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof(long_time)) != 0)
		interrupted++;
	for (;;) {
		if (recv(fd[0], &byte, 1, 0) < 0 && errno == EINTR)
			interrupted++;
	}
	return arg;
}

#define BUSY(n)                                                    \
	__attribute__((noinline)) static void *busy_##n(void *arg) \
	{                                                          \
		for (volatile unsigned i = n;; i++) {              \
		}                                                  \
		return arg;                                        \
	}
BUSY(0)
BUSY(1)
BUSY(2)
BUSY(3)
BUSY(4)
BUSY(5)
BUSY(6)
BUSY(7)
BUSY(8)
BUSY(9)

static void compute(void)
{
	static void *(*const all[])(void *) = { busy_1, busy_2, busy_3, busy_4, busy_5, busy_6,
		busy_7, busy_8, busy_9 };
	pthread_t t;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		(void)pthread_create(&t, NULL, all[i], NULL);
	(void)busy_0(NULL);
}

int main(int argc, char **argv)
{
	struct pollfd told = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned *v = malloc(NR * sizeof(*v));
	pthread_t t;

	(void)argv;
	if (argc > 1)
		compute();
	if (v == NULL || pthread_create(&t, NULL, waiter, NULL) != 0 ||
		pthread_create(&t, NULL, poller, NULL) != 0 ||
		pthread_create(&t, NULL, receiver, NULL) != 0)
		return 1;
	while (poll(&told, 1, 0) == 0)
		sort_some(v);
	printf("interrupted %u times\n", interrupted);
	return 0;
}
