/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that --watch names, in a guest. */
#ifndef UNI_APP_WATCHES_H
#define UNI_APP_WATCHES_H

#include "app/attach.h"
#include "app/options.h"
#include "recording/recording.h"

#define UNI_WATCHES_MAX 16

struct uni_watches { /* zeroed is empty */
	struct uni_watch watch[UNI_WATCHES_MAX];
	size_t nr;
};

/* From the words "SYMBOL" or "SYMBOL:BYTES"; the guest's image knows them. */
int uni_watches_find(const struct uni_guest *g, const struct uni_opt_list *words,
	struct uni_watches *ret, struct uni_err *err);
void uni_watches_deinit(struct uni_watches *w); /* frees the parsed watches */

#endif
