/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes an image so that its trace sites (sites.h) cost nothing while they are not traced. An
 * entry becomes one nop of five bytes, and a jump to the return thunk becomes a plain `ret`. Chosen
 * functions may be switched on in the file: they are traced from the first call.
 */
#ifndef UNI_OBJ_SITES_PREPARE_H
#define UNI_OBJ_SITES_PREPARE_H

#include <stddef.h>

#include "base/err.h"

struct uni_sites_prepared {
	size_t nr_functions;
	size_t nr_changed, nr_ready; /* sites that were rewritten; sites that were already so */
	size_t nr_on;		     /* functions that are switched on */
	size_t nr_no_exits; /* chosen, but not switched on: not all of their returns are known */
};

/*
 * Reads the image at path and writes it to out (which may be path), whole or not at all, with
 * path's permissions. Its build-id does not change. Functions that match one of the nr globs in
 * `on` are switched on, all others off.
 */
int uni_sites_prepare(const char *path, const char *out, const char *const *on, size_t nr,
	struct uni_sites_prepared *ret, struct uni_err *err);

#endif
