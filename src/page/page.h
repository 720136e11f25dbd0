/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as one HTML file that opens from disk: the viewer (viewer/, made into one script), and
 * what it shows as compressed columns. docs/formats/page.md describes them.
 */
#ifndef UNI_PAGE_PAGE_H
#define UNI_PAGE_PAGE_H

#include "base/err.h"
#include "base/sink.h"
#include "profile/build.h"
#include "promise/model.h"
#include "trace/timeline.h"

#define UNI_PAGE_CALLS_MAX (UINT64_C(20) << 20) /* more of them are left out, and that is said */

/* What there is to show; each may be NULL. All borrowed. */
struct uni_page_input {
	const char *title;
	const char *version;		     /* of this program */
	const char *quality;		     /* text: how good the recording is */
	struct uni_recording *rec;	     /* its samples and exits, by opts */
	const struct uni_build_opts *opts;   /* with rec */
	const struct uni_profile *profile;   /* instead of rec: without times */
	const struct uni_timeline *timeline; /* is read to its end */
	const struct uni_promise_model *promises;
};

/* What did not get into the page. */
struct uni_page_left {
	uint64_t torn;	/* packets of samples */
	uint64_t calls; /* above UNI_PAGE_CALLS_MAX */
};

/* left_ret may be NULL. */
int uni_page_write(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err);

#endif
