/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded part of a profile as JSON, so that a caller can walk a large one in small steps. */
#ifndef UNI_FORMAT_JSON_VIEW_H
#define UNI_FORMAT_JSON_VIEW_H

#include "base/err.h"
#include "base/sink.h"
#include "profile/profile.h"
#include "recording/recording.h"

struct uni_json_view {
	size_t top;	   /* entries of each list at most */
	const char *focus; /* function that becomes the tree's root; NULL: the whole tree */
	const char *under; /* handle of the node that is the part's root; NULL: the tree's */
	const struct uni_record_part *part; /* of the recording; NULL: all of it */
};

/* -UNI_ENOENT: there is no such function, or no node with that handle. */
int uni_json_view(const struct uni_profile *p, const struct uni_json_view *view,
	struct uni_sink *out, struct uni_err *err);

#endif
