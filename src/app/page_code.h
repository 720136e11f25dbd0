/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of the hottest functions of a session of samples, for its page. */
#ifndef UNI_APP_PAGE_CODE_H
#define UNI_APP_PAGE_CODE_H

#include "annotate/annotation.h"
#include "app/source.h"

#define UNI_PAGE_CODE_MAX 40 /* functions */

struct uni_page_code_image;

struct uni_page_code {
	UNI_VEC(struct uni_annotation) functions; /* the hottest first */
	UNI_VEC(struct uni_page_code_image *) images;
	struct uni_lines *lines;
};

struct uni_page_code_args {
	const struct uni_source_args *src;
	const struct uni_opt_list *source; /* folders with source files */
};

/* An image that cannot be read is named on stderr, and left out. Deinit it in any case. */
int uni_page_code_make(const struct uni_page_code_args *args, const struct uni_source *s,
	struct uni_page_code *ret, struct uni_err *err);
void uni_page_code_deinit(struct uni_page_code *c); /* also of a zeroed one */

#endif
