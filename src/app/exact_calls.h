/* SPDX-License-Identifier: BSD-2-Clause */
/* A session that gets every call of a guest under QEMU's TCG, while the guest runs. */
#ifndef UNI_APP_EXACT_CALLS_H
#define UNI_APP_EXACT_CALLS_H

#include "recording/exact_calls.h"
#include "recording/recording.h"

struct uni_calls_session {
	struct uni_exact_calls *calls; /* NULL: not begun */
	struct uni_tstream *out;       /* borrowed */
	int room;		       /* kept for the tree, once room_bytes is not 0 */
	uint64_t room_bytes;
	struct uni_record_trace trace;
};

/* path: the file that the plugin has made. Adds what it says to *meta, for the recorder. only:
 * which calls are recorded; "" all. */
int uni_calls_session_open(struct uni_calls_session *c, const char *path, const char *only,
	struct uni_record_meta *meta, struct uni_err *err);
/* To the recorder that was made of it. */
int uni_calls_session_begin(
	struct uni_calls_session *c, struct uni_recorder *rec, struct uni_err *err);
/* Takes the present records; *nr_ret: packets. */
int uni_calls_session_take(struct uni_calls_session *c, uint64_t *nr_ret, struct uni_err *err);
/* Calls may fill the disk: keeps room in the session for what the tree of these counts needs now.
 */
void uni_calls_session_keep(struct uni_calls_session *c, const char *session, const char *counts);
void uni_calls_session_give(struct uni_calls_session *c); /* that room, to the tree */
/* The rest, and the numbers of it all. -UNI_EIO: not all of it could be written. */
int uni_calls_session_end(
	struct uni_calls_session *c, struct uni_recorder *rec, struct uni_err *err);
void uni_calls_session_close(struct uni_calls_session *c);

/* Entries and exits, bytes of all records, and events that are missing; of all vCPUs. */
uint64_t uni_calls_session_events(const struct uni_calls_session *c);
uint64_t uni_calls_session_bytes(const struct uni_calls_session *c);
uint64_t uni_calls_session_lost(const struct uni_calls_session *c);

#endif
