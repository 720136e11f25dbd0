/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of `top`: guests, the thread that samples them, and the model that shows them. */
#ifndef UNI_TOP_RUN_H
#define UNI_TOP_RUN_H

#include "app/attach.h"
#include "app/images.h"
#include "app/pace.h"
#include "app/symbols.h"
#include "top/feed.h"
#include "top/model.h"

struct uni_top_args {
	double frequency, interval, window, duration; /* duration 0: until the user quits */
	bool window_given;
	uint64_t count; /* of snapshots; 0: no end */
	uint64_t rows;
	uint64_t memory_bytes;
	const char *sort, *filter, *function, *output;
	uint64_t vcpu;
	bool vcpu_given, idle, callers, json, no_exits;
	struct uni_pace pace;
	struct uni_naming naming;
	struct uni_opt_list debug_dirs;
};

/* Data of a guest besides that of record. */
struct uni_top_guest {
	char name[UNI_GUEST_NAME_MAX];
	struct uni_record_meta meta; /* of a session that is saved */
	struct uni_guest_symbols symbols;
};

struct uni_top_run {
	const struct uni_top_args *args;
	struct uni_guest *const *g; /* nr_guests, borrowed; the feed's while it runs */
	uint32_t nr_guests;
	struct uni_top_guest *guest;
	struct uni_build_guest *build;
	uint32_t *first_vcpu; /* nr_guests + 1 */
	struct uni_feed *feed;
	struct uni_feed_status status;
	struct uni_top top;
	char title[320]; /* the guests, as the screen names them */
};

/* -UNI_EUSAGE: invalid options. */
int uni_top_check_args(const struct uni_top_args *args, struct uni_err *err);

/* Starts sampling. Deinit in any case. */
int uni_top_run_init(struct uni_top_run *r, struct uni_guest *const *g, size_t nr,
	const struct uni_top_args *args, struct uni_err *err);
void uni_top_run_deinit(struct uni_top_run *r);

/* Moves the samples that have come into the model. */
void uni_top_run_drain(struct uni_top_run *r);
/* Drains, and shows everything as of now. */
int uni_top_run_refresh(struct uni_top_run *r, struct uni_err *err);
/* Ctrl-Z: stops between samples, so that no guest is held meanwhile; returns when the process goes
 * on. */
void uni_top_run_suspend(struct uni_top_run *r);

/* Writes the remembered samples as a session. path_ret: its folder, owned by the caller. */
int uni_top_run_save(struct uni_top_run *r, char **path_ret, struct uni_err *err);

/* Prints snapshots until there are enough, the guest ends, or the reader has gone away. */
int uni_top_run_batch(struct uni_top_run *r, struct uni_err *err);
/* On the terminal until the user quits. */
int uni_top_run_screen(struct uni_top_run *r, struct uni_err *err);

#endif
