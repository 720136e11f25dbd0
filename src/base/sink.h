/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink is an output: a file under a temporary name, a descriptor, or memory. Writes are buffered.
 * The first failure is remembered and reported by uni_sink_close(), so writers need not check each
 * call. An output file appears under its name only when it is whole.
 */
#ifndef UNI_BASE_SINK_H
#define UNI_BASE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

struct uni_sink;

/*
 * Writes PATH.tmp-RANDOM in the same folder, for its owner only. A successful close renames it to
 * PATH. A link is followed as uni_outdir_open() says. "-" is stdout.
 */
int uni_sink_open_file(const char *path, struct uni_sink **ret, struct uni_err *err);
/*
 * The same below an open folder (path: relative); the last name must not be a link. `shown` is its
 * name in messages.
 */
int uni_sink_open_below(int dir_fd, const char *path, const char *shown, struct uni_sink **ret,
	struct uni_err *err);
void uni_sink_set_mode(struct uni_sink *s, unsigned mode); /* for a file: its permissions */
/* After a successful close, a crash of the host does not lose the file. */
void uni_sink_set_durable(struct uni_sink *s);
/* Borrows fd. */
int uni_sink_open_fd(int fd, const char *name, struct uni_sink **ret, struct uni_err *err);
/* Appends to a borrowed strbuf. */
int uni_sink_open_strbuf(struct uni_strbuf *b, struct uni_sink **ret);

void uni_sink_write(struct uni_sink *s, const void *data, size_t len);
void uni_sink_puts(struct uni_sink *s, const char *str);
void uni_sink_putc(struct uni_sink *s, char c);
void uni_sink_printf(struct uni_sink *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes all accepted bytes now, for readers that wait. */
void uni_sink_flush(struct uni_sink *s);
uint64_t uni_sink_bytes(const struct uni_sink *s); /* accepted so far */
bool uni_sink_failed(const struct uni_sink *s);

/*
 * Flushes, renames and frees. On failure the final name is as it was before, and err says which
 * write failed and why.
 */
int uni_sink_close(struct uni_sink *s, struct uni_err *err);
/* Drops all that was written, and frees. NULL-safe. */
void uni_sink_abort(struct uni_sink *s);

#endif
