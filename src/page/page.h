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

/* More of them are left out, and that is said. */
#define UNI_PAGE_CALLS_MAX   (UINT64_C(20) << 20)
#define UNI_PAGE_SAMPLES_MAX (UINT64_C(20) << 20) /* also of exits */

#define UNI_PAGE_PROMISES_MAX (UINT64_C(1) << 20)

/* How much goes into data that are served; 0: all of it. */
struct uni_page_whole {
	uint64_t calls;	  /* of more there is a store */
	uint64_t samples; /* of more those near each other become one; and of exits */
	uint32_t nodes;	  /* of a tree: page/prune.h */
};

struct uni_page_growing;
struct uni_page_calls;

/* What there is to show; each may be NULL. All borrowed. */
struct uni_page_input {
	const char *title;
	const char *version;	 /* of this program */
	const char *quality;	 /* text: how good the recording is */
	const char *const *hide; /* globs: whose own time is left out at first */
	size_t nr_hide;
	struct uni_recording *rec;	     /* its samples and exits, by opts */
	const struct uni_build_opts *opts;   /* with rec */
	uint64_t max_samples;		     /* 0: UNI_PAGE_SAMPLES_MAX */
	struct uni_page_growing *growing;    /* instead of reading rec; alone */
	const struct uni_profile *profile;   /* instead of rec: without times */
	const struct uni_timeline *timeline; /* is read to its end */
	struct uni_page_calls *calls;	     /* instead of it: alone, too */
	const struct uni_promise_model *promises;
	uint64_t max_promises;		     /* 0: UNI_PAGE_PROMISES_MAX */
	const struct uni_page_input *beside; /* whose timeline and promises go beside these */
	struct uni_page_whole whole;
};

struct uni_page_store; /* page/store.h */

/*
 * Samples and exits of a recording that goes on, as they come: each look at them as data for a page
 * costs what is new, up to whole->samples and whole->nodes, and above that what these are.
 */
struct uni_page_growing;

/* rec, opts and what they hold must outlive it; whole has limits. 0 or -UNI_ENOMEM. */
int uni_page_growing_create(struct uni_recording *rec, const struct uni_build_opts *opts,
	const struct uni_page_whole *whole, struct uni_page_growing **ret);
void uni_page_growing_destroy(struct uni_page_growing *g); /* NULL-safe */
/* In the order of time, each kind. 0 or -UNI_ENOMEM. */
int uni_page_growing_sample(void *growing, const struct uni_sample *s);
int uni_page_growing_exit(void *growing, const struct uni_stream_exit *e);

/*
 * The same of calls, as their timeline has more of them: as long as they are at most whole->calls.
 */
struct uni_page_calls;

/* tl must outlive it; it may come to its end again and again. NULL: out of memory. */
struct uni_page_calls *uni_page_calls_create(
	const struct uni_timeline *tl, const struct uni_page_whole *whole);
void uni_page_calls_destroy(struct uni_page_calls *g); /* NULL-safe */
/*
 * What the timeline has by now, and how what is open then would end (uni_calls_ends()), borrowed:
 * it stays until the next look. 0, -UNI_ENOTSUP: they are too many; or -UNI_ENOMEM.
 */
int uni_page_calls_read(struct uni_page_calls *g);
int uni_page_calls_end(struct uni_page_calls *g, const struct uni_call_event *end, size_t nr);
/* Did the guest tell of anything but calls, such as threads and promises? */
bool uni_page_calls_told(const struct uni_page_calls *g);
bool uni_page_calls_too_many(const struct uni_page_calls *g);

/* What did not get into the page. */
struct uni_page_left {
	uint64_t torn;		      /* packets of samples */
	uint64_t missing;	      /* samples and exits that the recording tells of, and lacks */
	uint64_t calls;		      /* above UNI_PAGE_CALLS_MAX */
	uint64_t samples;	      /* and exits, above UNI_PAGE_SAMPLES_MAX each */
	uint64_t promises;	      /* above UNI_PAGE_PROMISES_MAX */
	uint64_t promise_parts;	      /* runs, waits, ... of those that are in there */
	struct uni_page_store *store; /* of those above whole.calls, the caller's; NULL: none */
};

/* The page without data, and the policy under which it may fetch them from where it came from. */
void uni_page_write_shell(struct uni_sink *out);
void uni_page_put_policy(struct uni_sink *out, bool served);
/* The data alone, gzip: what uni_page_write() puts into the page, for the above. */
int uni_page_write_data(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err);

/* left_ret may be NULL. */
int uni_page_write(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err);

#endif
