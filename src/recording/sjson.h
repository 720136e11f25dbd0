/* SPDX-License-Identifier: BSD-2-Clause */
/* session.json: everything of a session that is not a sample. */
#ifndef UNI_RECORDING_SJSON_H
#define UNI_RECORDING_SJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/ctf.h"
#include "recording/recording.h"

#define UNI_SESSION_VERSION   2		  /* 1 had one guest, and its statistics at the root */
#define UNI_SESSION_JSON_MAX  (32u << 20) /* bytes of the file */
#define UNI_SESSION_WATCH_MAX (64u << 10) /* bytes of one watch */
#define UNI_SESSION_WATCHES   64u

struct uni_session_guest {	     /* large */
	struct uni_record_meta meta; /* its trace is owned */
	uint8_t uuid[UNI_CTF_UUID];
	/* A parsed session owns the times and watches; otherwise they are borrowed. */
	struct uni_record_stats stats;
	struct uni_watch *watch;
	size_t nr_watch;
	/* Owned. */
	struct uni_record_thread *thread;
	size_t nr_thread, cap_thread;
};

struct uni_session { /* zeroed is empty */
	bool closed;
	uint32_t nr_guests;
	struct uni_session_guest *guest[UNI_GUEST_MAX]; /* owned */
};

/* A zeroed guest more; NULL: out of memory. There is room. */
struct uni_session_guest *uni_session_add_guest(struct uni_session *s);
void uni_session_deinit(struct uni_session *s);	     /* of a session that borrows */
void uni_session_free_parsed(struct uni_session *s); /* of a parsed one */
/* All guests' numbers together. */
void uni_session_sum(const struct uni_session *s, struct uni_record_stats *ret);

/* Replaces session.json of a folder that is open, called `path` in messages. `durable`: a crash of
 * the host does not lose it, and the call takes the time of a disk. */
int uni_session_write(int dir_fd, const char *path, const struct uni_session *s, bool durable,
	struct uni_err *err);
/* ret is filled only on success; the message does not name the file. */
int uni_session_parse(const char *text, size_t size, struct uni_session *ret, struct uni_err *err);
int uni_session_load(const char *path, struct uni_session *ret, struct uni_err *err);
/* Does the folder have a session.json that claims to be one, of any version? */
bool uni_session_is_one(int dir_fd);
/* May the id be part of a file name? Lower-case hex, an "x" in front allowed. */
bool uni_session_id_ok(const char *id);

#endif
