/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of a session that is being recorded, for a page that is made repeatedly. */
#ifndef UNI_APP_LIVE_CALLS_H
#define UNI_APP_LIVE_CALLS_H

#include "app/source.h"
#include "page/page.h"

struct uni_live_calls; /* opaque */

/*
 * rec is one that is followed (recording/follow.h), and must outlive it, as symtab, NULL: the
 * session's own. -UNI_ENOENT: it has no calls. -UNI_ENOTSUP: it has to be read whole.
 */
int uni_live_calls_open(const struct uni_recording *rec, const struct uni_source_args *args,
	struct uni_symtab *symtab, const struct uni_page_whole *whole, uint64_t patience_ns,
	struct uni_live_calls **ret, struct uni_err *err);
void uni_live_calls_close(struct uni_live_calls *c); /* NULL-safe */
/* Reads new data. -UNI_EAGAIN: new data is older than data that was read; open it again.
 * -UNI_ENOTSUP: it has to be read whole now. */
int uni_live_calls_look(struct uni_live_calls *c, struct uni_err *err);
struct uni_page_calls *uni_live_calls_page(const struct uni_live_calls *c);

#endif
