/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and inlined functions for the addresses that a session recorded. */
#ifndef UNI_RECORDING_PLACES_H
#define UNI_RECORDING_PLACES_H

#include "obj/usym.h"
#include "recording/recording.h"

/*
 * Looks up in img's debug data what the closed session at `path` recorded, and writes it into the
 * .usym of that image, so that it travels too. -UNI_ENOENT: img has no debug data, and nothing
 * changed. note_ret: why some may be missing, or NULL; static.
 */
int uni_session_add_places(const char *path, const struct uni_image *img,
	const struct uni_image_search *search, const char **note_ret, struct uni_err *err);

#endif
