/* SPDX-License-Identifier: BSD-2-Clause */
/* A session as one stream, for pipes: a tar archive (POSIX ustar) of its folder. The reader accepts
 * only files of a session, each once. */
#ifndef UNI_RECORDING_BUNDLE_H
#define UNI_RECORDING_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"

#define UNI_BUNDLE_BLOCK 512 /* bytes that uni_bundle_is() needs */
#define UNI_BUNDLE_FILES 20000

/* Writes the session at path, below a folder of that name. A failed write is out's. */
int uni_bundle_write(const char *path, const char *name, struct uni_sink *out, struct uni_err *err);

bool uni_bundle_is(const void *data, size_t size);

/* Receives the files of a bundle, one after the other. A negative result ends the reading and is
 * returned. */
struct uni_bundle_ops {
	/* sub: "symbols", "guest-0"; NULL: of the session itself. Both are safe as file names. */
	int (*begin)(void *arg, const char *sub, const char *name, struct uni_err *err);
	int (*data)(void *arg, const void *data, size_t size, struct uni_err *err);
	int (*end)(void *arg, struct uni_err *err);
};

struct uni_bundle_reader {
	const struct uni_bundle_ops *ops; /* borrowed */
	void *arg;
	uint64_t left; /* bytes of the file, then of its padding */
	uint32_t files;
	size_t have; /* of block */
	uint8_t state;
	uint8_t block[UNI_BUNDLE_BLOCK];
};

void uni_bundle_reader_init(
	struct uni_bundle_reader *r, const struct uni_bundle_ops *ops, void *arg);
/* Reads the next bytes, in pieces of any size. Skips bytes after the archive's end. */
int uni_bundle_feed(
	struct uni_bundle_reader *r, const void *data, size_t size, struct uni_err *err);
/* No more bytes come: -UNI_EFORMAT if that is in the middle. */
int uni_bundle_end(const struct uni_bundle_reader *r, struct uni_err *err);

/* Files that appear in the folder dir_fd (as arg); zeroed but for dir_fd. */
struct uni_bundle_files {
	int dir_fd; /* borrowed */
	int fd;	    /* of the file that is open; -1 */
	char name[160];
};
extern const struct uni_bundle_ops uni_bundle_to_folder;

#endif
