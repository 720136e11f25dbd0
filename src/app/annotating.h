/* SPDX-License-Identifier: BSD-2-Clause */
/* A function of a session with its code and numbers: the image is found, all is read. */
#ifndef UNI_APP_ANNOTATING_H
#define UNI_APP_ANNOTATING_H

#include "annotate/annotation.h"
#include "app/source.h"

struct uni_annotating_args {
	struct uni_source_args src;
	/* Its name, or an address in it (0x...): of the running guest, or as it is linked. */
	const char *function;
	const char *image; /* ELF; NULL: where the session says */
};

struct uni_annotating {
	struct uni_source s;
	struct uni_image *image;
	struct uni_debug *debug; /* NULL: none */
	struct uni_annotation a;
};

/* The image that a session names: the build with this id ("": any). -UNI_EMISMATCH: another one. */
int uni_annotating_load(const char *path, const char *id, const struct uni_image_search *search,
	struct uni_image **ret, struct uni_err *err);
/* Close it whenever this returned 0. */
int uni_annotating_open(
	struct uni_annotating_args *args, struct uni_annotating *ret, struct uni_err *err);
void uni_annotating_close(struct uni_annotating *x);

#endif
