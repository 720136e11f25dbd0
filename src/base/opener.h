/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The child that holds rights which the worker gave up (base/privilege.h). It is the program
 * uniscope-opener, which links nothing that parses. One kind opens files by name (base/door.h); the
 * other looks into one process (base/observer.h). Each request and reply has a fixed size; one
 * descriptor may go along.
 */
#ifndef UNI_BASE_OPENER_H
#define UNI_BASE_OPENER_H

#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/observed_map.h"

#define UNI_OPENER_PROGRAM "uniscope-opener"

enum uni_opener_kind {
	UNI_OPENER_FILES,
	UNI_OPENER_PROCESS,
	UNI_OPENER_STOPPED, /* a process whose threads may be stopped */
};

struct uni_opener_job {
	enum uni_opener_kind kind;
	uint64_t caps; /* that it keeps, as bits */
	int pid;       /* of the process */
	int rules;     /* base/confine.h, or -1 */
	int socket;    /* to the worker */
	int ready;     /* gets one byte when the other rights are gone */
	int parent;    /* the worker's process */
};
/* The program's argument: uni_opener_id, and the job in the order above. */
#define UNI_OPENER_JOB "%s %d %" PRIu64 " %d %d %d %d %d"
/* Both programs are of one build, or at least were made of the same files. */
extern const char uni_opener_id[];
#define UNI_OPENER_OTHER 3 /* its exit status if they were not */

/* Gives up what the job does not need, and serves requests until the worker is gone. */
_Noreturn void uni_opener_run(const struct uni_opener_job *job);

/* --- files ------------------------------------------------------------------------------------ */

enum uni_door_op {
	UNI_DOOR_OPEN,
	UNI_DOOR_STAT,
	UNI_DOOR_ACCESS,
	UNI_DOOR_READLINK,
	UNI_DOOR_MKDIR,
	UNI_DOOR_UNLINK,
	UNI_DOOR_RENAME,
	UNI_DOOR_CHMOD,
};

struct uni_door_request {
	uint32_t op;
	int32_t flags;
	uint32_t mode;
	char path[PATH_MAX], to[NAME_MAX + 1];
};

struct uni_door_reply {
	int64_t result; /* or -errno */
	struct stat st;
	char text[PATH_MAX];
};

void uni_door_serve(int worker);

/* --- a process -------------------------------------------------------------------------------- */

enum uni_observe_op {
	UNI_OBSERVE_OPEN,
	UNI_OBSERVE_STAT,
	UNI_OBSERVE_ACCESS,
	UNI_OBSERVE_READLINK,
	UNI_OBSERVE_READ,
	UNI_OBSERVE_EVENT,
	UNI_OBSERVE_MAP,
	UNI_OBSERVE_STOP, /* flags: 1, until it is let go */
	UNI_OBSERVE_LET_GO,
	UNI_OBSERVE_CATCH,    /* flags: a CPU; base/catch.h; the text is a struct uni_catch */
	UNI_OBSERVE_THERE,    /* flags: a CPU; base/catch.h; the text is a struct uni_there */
	UNI_OBSERVE_PRIORITY, /* flags: 1, as base/hurry.h; 0, as usual */
};

struct uni_observe_request {
	uint32_t op;
	int32_t flags, tid;
	struct uni_observer_map map;
	struct perf_event_attr attr;
	char path[PATH_MAX];
};

struct uni_observe_reply {
	int64_t result; /* or -errno */
	struct stat st;
	char text[8192];
};

void uni_observe_serve(int pid, int worker);
/* The rules and parts of this service, for the worker as well. */
bool uni_observe_may_name(int pid, const char *path);
bool uni_observe_is_of_proc(int fd);
bool uni_observe_gives_fd(uint32_t op);
int uni_observe_make_map(const struct uni_observer_map *map);

#endif
