/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other processes (VMMs, unikernels that are processes), for a worker that gave up its rights and
 * still watches them (base/privilege.h). For each there is a child, its observer, which kept the
 * right to look into this process and no other. It opens its files in /proc for reading, and makes
 * perf events of its threads, and maps for the kernel's programs. It stops threads for their
 * registers. It parses nothing.
 *
 * base/door.h and uni_read_small() ask it by themselves.
 */
#ifndef UNI_BASE_OBSERVER_H
#define UNI_BASE_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/observed_map.h"

struct perf_event_attr;
struct uni_catch;
struct uni_there;
struct uni_thread_stop;

#define UNI_OBSERVER_MAX 64 /* processes at once */

/*
 * Starts the observer of this process, with these capabilities at most (base/caps.h). stops: it can
 * stop its threads. writes: the worker keeps the process' memory open for writing.
 */
int uni_observer_begin(int pid, bool stops, bool writes, uint64_t caps, struct uni_err *err);
bool uni_observer_is_used(void); /* this process is a worker that watches */
void uni_observer_leave(void);	 /* uni_door_leave() */

/* Is it the observer that reaches this path; or what this open folder lists? */
bool uni_observer_has(const char *path);
bool uni_observer_lists(int dir);

/* As the system calls of these names, with their results and errno. */
int uni_observer_open(const char *path, int flags);
int uni_observer_stat(const char *path, struct stat *ret);
int uni_observer_access(const char *path);
ssize_t uni_observer_readlink(int dir, const char *path, char *buf, size_t cap);

/*
 * The text of a small file, in a buffer with a final '\0'. The observer reads it, as the kernel
 * checks the reader's rights again with some of them. Returns the length, or -errno.
 */
int uni_observer_read(const char *path, char *buf, size_t cap);

/* perf_event_open() for a thread on any CPU, closed on exec. Also without an observer. */
int uni_observer_perf_event(struct perf_event_attr *attr, int tid);
int uni_observer_map_create(const struct uni_observer_map *map);

/*
 * uni_thread_stop_begin() and uni_thread_stop_end() (base/stop.h). Also without an observer. regs:
 * NULL, or room for the registers; they must have this size. If the observer hears nothing for a
 * second, it lets all threads go whose stops are not firm.
 */
int uni_observer_stop(struct uni_thread_stop *s, void *regs, size_t size);
void uni_observer_let_go(struct uni_thread_stop *s);

/* uni_catch_thread() (base/catch.h). Also without an observer. */
int uni_observer_catch(int pid, struct uni_thread_stop *s, int cpu, struct uni_catch *ret);
/* uni_catch_there(). Also without an observer. */
int uni_observer_stop_there(int pid, struct uni_thread_stop *s, int cpu, struct uni_there *ret);

/* Real-time priority for the calling thread and the observer, or no longer; false: not permitted.
 */
bool uni_observer_hurry(bool on);

/* The worker reads the memory of the process by itself, and no longer through an open file. */
void uni_observer_leave_memory(void);
/* The process' memory, open for writing. Also without an observer. Or -1 and errno; close() it. */
int uni_observer_open_writable(int pid);
/* process_vm_readv(). Also without an observer. */
ssize_t uni_observer_copy(int pid, const struct iovec *local, size_t nr_local,
	const struct iovec *remote, size_t nr_remote);

#endif
