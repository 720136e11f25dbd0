/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and inlined functions for the addresses that a session recorded. */
#ifndef UNI_RECORDING_PLACES_H
#define UNI_RECORDING_PLACES_H

#include "obj/usym.h"
#include "recording/recording.h"

/*
 * Looks up the addresses of the closed session at `path` in img's debug data. Writes the results
 * into the .usym of that image, so that they travel with the session. -UNI_ENOENT: img has no debug
 * data, and nothing changed. note_ret: the reason why some may be missing, or NULL; static.
 */
int uni_session_add_places(const char *path, const struct uni_image *img,
	const struct uni_image_search *search, const char **note_ret, struct uni_err *err);

/* Drops symbols that the session at `path` does not use from what it keeps of this source. */
int uni_session_keep_symbols(const char *path, struct uni_symtab *symtab, struct uni_err *err);

#endif
