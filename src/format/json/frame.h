/* SPDX-License-Identifier: BSD-2-Clause */
/* Members that documents of profiles have in common. */
#ifndef UNI_FORMAT_JSON_FRAME_H
#define UNI_FORMAT_JSON_FRAME_H

#include "base/json.h"
#include "profile/profile.h"

/* A member; a whole number without a fraction. */
void uni_json_value(struct uni_json *j, const char *key, double v);
/* An object: name, kind, place and values. */
void uni_json_function(
	struct uni_json *j, const struct uni_profile *p, const struct uni_func_row *row);

#endif
