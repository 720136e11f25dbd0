/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a session: made, locked while it is recorded, replaced only if it is one. */
#ifndef UNI_RECORDING_FOLDER_H
#define UNI_RECORDING_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/usym.h"

#define UNI_SDIR_JSON	 "session.json"
#define UNI_SDIR_SYMBOLS "symbols"
#define UNI_SDIR_GUEST	 "guest-%u"
#define UNI_SDIR_STREAM	 "guest-%u/samples-vcpu%u"
#define UNI_SDIR_EXITS	 "guest-%u/exits-vcpu%u"
#define UNI_SDIR_EVENTS	 "guest-%u/events-vcpu%u"
#define UNI_SDIR_EXACT	 "guest-%u/exact"

/*
 * Makes path with its empty symbols folder and locks it; *fd_ret is the folder, which the caller
 * closes. Refuses an existing path, unless `overwrite` and it is a session. That session may hold
 * only session files, and nobody may be recording it. Its files are then removed, except
 * session.json, which the caller replaces.
 */
int uni_sdir_create(const char *path, bool overwrite, int *fd_ret, struct uni_err *err);
/* Removes a session, if nobody records it and it holds only session files. */
void uni_sdir_remove(const char *path);
/* Removes a folder of uni_sdir_create() that is no session yet. */
void uni_sdir_abandon(const char *path, int fd);
/*
 * Keeps room in it for its last small files, until the descriptor is closed. *reserve_ret is -1 if
 * the file system cannot. An error if the disk has less.
 */
int uni_sdir_reserve(int fd, const char *path, int *reserve_ret, struct uni_err *err);
/* The same of so many bytes, for what else is written last; negative: none. */
int uni_sdir_room(int fd, uint64_t bytes);
/* In place of the `now` bytes that it keeps; false: it keeps those. */
bool uni_sdir_room_grow(int room, uint64_t now, uint64_t bytes);
/* A session's folder, to read or to add to; the last name of the path may be a link. */
int uni_sdir_open(const char *path, int *fd_ret, struct uni_err *err);
/* Writes symbols/ID.usym in it, or replaces it. */
int uni_sdir_add_symbols(
	const char *path, int fd, const struct uni_symtab *symtab, struct uni_err *err);
/* Makes guest-N in it, or takes an empty one that is there. */
int uni_sdir_add_guest(const char *path, int fd, unsigned guest, struct uni_err *err);
/* How many vCPUs have streams in guest-N, or `least` if that is more. */
unsigned uni_sdir_nr_vcpus(int fd, unsigned guest, unsigned least);

/* The names that a session is made of; `sub` is the sub-folder, NULL the session itself. */
bool uni_sdir_is_file(const char *sub, const char *name);
bool uni_sdir_is_folder(const char *name);

#endif
