/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as one HTML file that can be opened from disk: the viewer (viewer/, made into one
 * script), and its data as compressed columns. docs/formats/page.md describes them.
 */
#ifndef UNI_PAGE_PAGE_H
#define UNI_PAGE_PAGE_H

#include "annotate/annotation.h"
#include "base/err.h"
#include "base/sink.h"
#include "profile/build.h"
#include "promise/model.h"
#include "trace/timeline.h"

/* Above these numbers the rest is left out, and the page says so. */
#define UNI_PAGE_CALLS_MAX   (UINT64_C(20) << 20)
#define UNI_PAGE_SAMPLES_MAX (UINT64_C(20) << 20) /* also of exits */

#define UNI_PAGE_PROMISES_MAX (UINT64_C(1) << 20)

/* The limits of data that are served; 0: no limit. */
struct uni_page_whole {
	uint64_t calls;	  /* above that number there is a store */
	uint64_t samples; /* above that number, near ones become one; for exits, too */
	uint32_t nodes;	  /* in a tree: page/prune.h */
};

struct uni_page_growing;
struct uni_page_calls;

/* A profile with two columns that was compared (diff/compare.h). */
struct uni_page_diff {
	const char *before, *after; /* names of the sides */
	const char *const *before_file, *const *after_file;
	size_t nr_before, nr_after; /* of these */
	const char *verdict;
	const int8_t *sure; /* by frame: it is known that the function takes more (1), less (-1) */
};

/* The contents of a page; each may be NULL. All borrowed. */
struct uni_page_input {
	const char *title;
	const char *version;	 /* of this program */
	const char *quality;	 /* text: how good the recording is */
	const char *const *hide; /* globs: functions whose own time is left out at first */
	size_t nr_hide;
	struct uni_recording *rec;	   /* its samples and exits, selected by opts */
	const struct uni_build_opts *opts; /* with rec */
	uint64_t max_samples;		   /* 0: UNI_PAGE_SAMPLES_MAX */
	struct uni_page_growing *growing;  /* instead of reading rec; only this */
	const struct uni_profile *profile; /* instead of rec: without times */
	const struct uni_page_diff *diff;  /* of profile */
	const struct uni_annotation *code; /* of nr_code functions, the hottest first */
	size_t nr_code;
	struct uni_lines *lines;	     /* with code */
	const struct uni_timeline *timeline; /* read to its end */
	struct uni_page_calls *calls;	     /* instead of it; only this */
	const struct uni_promise_model *promises;
	uint64_t max_promises;		     /* 0: UNI_PAGE_PROMISES_MAX */
	const struct uni_page_input *beside; /* its timeline and promises go beside these */
	struct uni_page_whole whole;
};

struct uni_page_store; /* page/store.h */

/*
 * Samples and exits of a recording that goes on, as they come. Making the data for a page costs
 * only what is new, up to whole->samples and whole->nodes. Above these it costs what these limits
 * allow.
 */
struct uni_page_growing;

/* rec, opts and their contents must outlive it; whole must have limits. 0 or -UNI_ENOMEM. */
int uni_page_growing_create(struct uni_recording *rec, const struct uni_build_opts *opts,
	const struct uni_page_whole *whole, struct uni_page_growing **ret);
void uni_page_growing_destroy(struct uni_page_growing *g); /* NULL-safe */
/* Add each kind in the order of time. 0 or -UNI_ENOMEM. */
int uni_page_growing_sample(void *growing, const struct uni_sample *s);
int uni_page_growing_exit(void *growing, const struct uni_stream_exit *e);

/* The same for calls, while their timeline grows, up to whole->calls. */
struct uni_page_calls;

/* tl must outlive it; tl may reach its end several times. NULL: out of memory. */
struct uni_page_calls *uni_page_calls_create(
	const struct uni_timeline *tl, const struct uni_page_whole *whole);
void uni_page_calls_destroy(struct uni_page_calls *g); /* NULL-safe */
/*
 * read takes what the timeline has by now. end takes provisional ends of open calls
 * (uni_calls_ends()), which are borrowed until the next look. 0; -UNI_ENOTSUP: too many calls; or
 * -UNI_ENOMEM.
 */
int uni_page_calls_read(struct uni_page_calls *g);
int uni_page_calls_end(struct uni_page_calls *g, const struct uni_call_event *end, size_t nr);
/* Did the guest report more than calls, such as threads and promises? */
bool uni_page_calls_told(const struct uni_page_calls *g);
bool uni_page_calls_too_many(const struct uni_page_calls *g);

/* The numbers of things that did not get into the page. */
struct uni_page_left {
	uint64_t torn;	   /* packets of samples */
	uint64_t missing;  /* samples and exits that the recording mentions, but does not have */
	uint64_t calls;	   /* above UNI_PAGE_CALLS_MAX */
	uint64_t samples;  /* and exits, above UNI_PAGE_SAMPLES_MAX each */
	uint64_t promises; /* above UNI_PAGE_PROMISES_MAX */
	uint64_t promise_parts; /* runs, waits, ... of promises that are in the page */
	struct uni_page_store
		*store; /* for calls above whole.calls; the caller owns it; NULL: none */
};

/* The page without data, and the policy that lets it load them from its own server. */
void uni_page_write_shell(struct uni_sink *out);
void uni_page_put_policy(struct uni_sink *out, bool served);
/* Writes the data alone, as gzip: what uni_page_write() puts into the page, for the shell above. */
int uni_page_write_data(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err);

/* left_ret may be NULL. */
int uni_page_write(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err);

#endif
