/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the addresses at which images run, of a guest whose memory cannot be read: by the return
 * addresses in its samples. Each of them is behind a call of some image. Only at the right address
 * is nearly each one behind a call of that image.
 */
#ifndef UNI_SAMPLING_PLACER_H
#define UNI_SAMPLING_PLACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"

struct uni_placer;

/* Looks for the image's calls, which takes up to some seconds for large ones. The image is
 * borrowed. */
int uni_placer_create(const struct uni_image *img, struct uni_placer **ret, struct uni_err *err);
void uni_placer_destroy(struct uni_placer *p); /* NULL-safe */

/*
 * A return address that was sampled. True: it is new, and it is worth to ask uni_placer_find()
 * again. Each address counts once. Room is for some thousand.
 */
bool uni_placer_saw(struct uni_placer *p, uint64_t ret_addr);

/* Return addresses that are in the image at an address, and those of them behind its calls. */
struct uni_placed {
	size_t inside, behind;
};

/* The bias; false: what was seen so far does not tell. */
bool uni_placer_find(const struct uni_placer *p, uint64_t *bias_ret, struct uni_placed *ret);
/* The same of a bias that is known. */
void uni_placer_count(const struct uni_placer *p, uint64_t bias, struct uni_placed *ret);

#endif
