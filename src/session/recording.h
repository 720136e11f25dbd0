/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording on disk: NAME.uniscope/ with session.json, symbols/ and guest-N/ (a CTF 1.8 trace).
 * docs/formats/session.md describes every file. The writer gives the folder its final name at
 * once and flushes whole packets, so a crash loses at most the packet being filled.
 */
#ifndef UNI_SESSION_RECORDING_H
#define UNI_SESSION_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"
#include "target/target.h"
#include "unwind/unwind.h"

struct uni_sample {
	uint64_t t_ns;	 /* host CLOCK_MONOTONIC */
	uint64_t weight; /* how many periods it stands for; 1 */
	uint32_t vcpu;
	uint32_t thread;      /* guest thread, 0 = unknown */
	uint32_t pause_ns;    /* how long the guest was stopped for it, 0 = not at all */
	uint8_t stop;	      /* enum uni_stop */
	uint8_t state;	      /* enum uni_vcpu_state */
	uint16_t nr;	      /* frames */
	const uint64_t *pc;   /* leaf first, nr of them; borrowed */
	const uint8_t *flags; /* enum uni_frame_flags, nr of them; borrowed */
};

/* Percentiles of the pauses, ns. */
struct uni_pause_stats {
	uint64_t nr, sum_ns, p50_ns, p99_ns, max_ns;
};

struct uni_record_stats {
	uint64_t samples;   /* taken and written (all vCPUs) */
	uint64_t ticks;	    /* deadlines that were served */
	uint64_t late;	    /* served more than half a period after their deadline */
	uint64_t skipped;   /* deadlines passed over: too late, or the duty cap */
	uint64_t throttled; /* of the skipped: because the guest would have been paused too much */
	uint64_t failed;    /* ticks, or single vCPUs of a tick, without registers */
	uint64_t truncated; /* chains that did not reach their root */
	uint64_t halted;    /* samples of vCPUs that waited for an interrupt */
	uint64_t lost;	    /* samples that could not be written */
	uint64_t stop[UNI_STOP_NR];
	struct uni_pause_stats pause;
	uint64_t begin_ns, end_ns;	/* of the run, CLOCK_MONOTONIC */
	uint64_t unwind_ns, own_cpu_ns; /* time spent unwinding; CPU time of the whole process */
};

/* Memory at a symbol, copied at the first and at the last sample (record --watch). */
struct uni_watch {
	char name[128];
	uint64_t gva;
	uint32_t size;
	uint64_t t_first_ns, t_last_ns;
	uint8_t *first, *last; /* size bytes each; NULL: not read */
};

struct uni_record_meta {
	char target[512]; /* spec as given */
	struct uni_target_info info;
	char arch[16];
	char image_path[4096];
	char image_id[80];
	uint64_t bias; /* AVMA - SVMA */
	uint32_t nr_vcpus;
	double frequency;	     /* asked, Hz */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC at the start */
	char uniscope_version[32];
	char command[1024];
	bool aggregate; /* counts without times: an import */
	char unit[32];	/* what weights count, "" = samples */
};

struct uni_symtab;

struct uni_recorder; /* writing */

/*
 * path is the folder's name; it must not exist, unless `overwrite` and it is a session that nobody
 * records: its files are replaced. Nothing else is ever deleted.
 */
int uni_recorder_create(const char *path, const struct uni_record_meta *meta, bool overwrite,
	struct uni_recorder **ret, struct uni_err *err);
/* Symbols of the image into symbols/ID.usym. */
int uni_recorder_add_image(
	struct uni_recorder *r, const struct uni_image *img, struct uni_err *err);
/* The same for symbols without an image: what was imported. */
int uni_recorder_add_symtab(
	struct uni_recorder *r, const struct uni_symtab *symtab, struct uni_err *err);
/*
 * Appends; never waits for the disk: what the writer thread cannot take counts as lost. Of one
 * thread only; times that go back within a vCPU are raised to the last one.
 */
void uni_recorder_sample(struct uni_recorder *r, const struct uni_sample *s);
/* Samples lost so far. uni_recorder_close() adds them to the statistics it writes. */
uint64_t uni_recorder_lost(struct uni_recorder *r);
/* Waits until all samples are written. Unasked for, each is written within a second. */
int uni_recorder_flush(struct uni_recorder *r, struct uni_err *err);
/*
 * Last packets, final session.json with state "closed". Frees r in any case. -UNI_EIO also when
 * samples could not be written in the course of the run; what was written is readable.
 */
int uni_recorder_close(struct uni_recorder *r, const struct uni_record_stats *stats,
	const struct uni_watch *watch, size_t nr_watch, struct uni_err *err);

struct uni_recording; /* reading */

int uni_recording_open(const char *path, struct uni_recording **ret, struct uni_err *err);
void uni_recording_close(struct uni_recording *r); /* NULL-safe */
const struct uni_record_meta *uni_recording_meta(const struct uni_recording *r);
/* Of a session that was not closed: what its samples tell, the rest 0. */
const struct uni_record_stats *uni_recording_stats(const struct uni_recording *r);
bool uni_recording_was_closed(const struct uni_recording *r); /* false: the recorder died */
size_t uni_recording_watches(const struct uni_recording *r, const struct uni_watch **ret);
/*
 * Calls fn for each sample, in time order across vCPUs; fn returns non-zero to stop (passed on).
 * Torn and corrupt packets are skipped and counted in *torn_ret (may be NULL).
 */
int uni_recording_each(struct uni_recording *r, int (*fn)(void *ctx, const struct uni_sample *s),
	void *ctx, uint64_t *torn_ret, struct uni_err *err);
/* Symbols that travelled with it; NULL if none, or if they are damaged. Borrowed. */
const struct uni_symtab *uni_recording_symtab(const struct uni_recording *r);
/* Why the symbols that travelled with it cannot be read; NULL if nothing is wrong. Borrowed. */
const char *uni_recording_symtab_problem(const struct uni_recording *r);

#endif
