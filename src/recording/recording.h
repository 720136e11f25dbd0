/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording on disk: NAME.uniscope/ with session.json, symbols/ and, for each guest, guest-N/ (a
 * CTF 1.8 trace). docs/formats/session.md describes every file. The writer gives the folder its
 * final name at once and flushes whole packets, so a crash loses at most the packet being filled.
 */
#ifndef UNI_RECORDING_RECORDING_H
#define UNI_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/only.h"
#include "obj/image.h"
#include "recording/traced.h"
#include "backend/target.h"
#include "unwind/unwind.h"

#define UNI_GUEST_MAX	      64   /* of a session */
#define UNI_SESSION_VCPUS_MAX 4096 /* of all its guests; each has a file */

struct uni_sample {
	uint64_t t_ns;	 /* host CLOCK_MONOTONIC */
	uint64_t weight; /* number of periods that it stands for; 1 */
	uint32_t guest;	 /* number in the session, from 0 */
	uint32_t vcpu;
	uint32_t thread;      /* guest thread: uni_record_thread.id, 0 = unknown */
	uint32_t pause_ns;    /* how long the guest was stopped for it, 0 = not at all */
	uint8_t stop;	      /* enum uni_stop */
	uint8_t state;	      /* enum uni_vcpu_state; off-CPU ones are of the thread, and vcpu says
				 nothing */
	uint16_t nr;	      /* frames */
	const uint64_t *pc;   /* leaf first, nr of them; borrowed */
	const uint8_t *flags; /* enum uni_frame_flags, nr of them; borrowed */
};

/* Percentiles of the pauses, ns. */
struct uni_pause_stats {
	uint64_t nr, sum_ns, p50_ns, p99_ns, max_ns;
};

/* Numbers of one guest, or the sums of a session (percentiles of pauses: the worst guest's).
 * Numbers by chain, by state and of samples taken are weights, not entries. */
struct uni_record_stats {
	uint64_t samples; /* entries taken and written (all vCPUs) */
	/* periods that the samples stand for: equal to their number, if each has weight 1 */
	uint64_t weight;
	uint64_t ticks;	    /* deadlines that were served */
	uint64_t late;	    /* that a delay moved: docs/formats/session.md */
	uint64_t skipped;   /* skipped deadlines: too late, or the duty cap */
	uint64_t throttled; /* of the skipped: because the guest would have been paused too much */
	uint64_t failed;    /* ticks, or single vCPUs of a tick, without registers */
	uint64_t truncated; /* chains that did not reach their root */
	uint64_t moved;	    /* samples given to the block before (UNI_FRAME_MOVED) */
	uint64_t unsure;    /* that may be the callee's or the caller's (UNI_FRAME_UNSURE) */
	uint64_t guessed;   /* chains with a frame that was guessed (UNI_FRAME_GUESS) */
	/* For a guest with known images: chains with a frame in such an image, and chains without.
	 * outside_low and outside_high bound the last addresses of the latter; firmware counts
	 * those in a PC's firmware. */
	uint64_t inside, outside, outside_low, outside_high, firmware;
	uint64_t lost;	      /* samples that were made and not kept */
	uint64_t short_lists; /* looks whose list of threads was not read to its end */
	uint64_t
		callers; /* stops that tell who called the kernel, for time in it without samples */
	uint64_t exits, exits_lost; /* VM exits written, and seen but not kept; all by weight */
	uint64_t stop[UNI_STOP_NR];
	uint64_t state[UNI_VCPU_STATE_NR];   /* where the vCPU was */
	uint64_t squares[UNI_VCPU_STATE_NR]; /* of the same weights: sums of their squares; all 0:
						not known */
	struct uni_pause_stats pause;
	uint64_t begin_ns, end_ns;	/* of the run, CLOCK_MONOTONIC */
	uint64_t unwind_ns, own_cpu_ns; /* time spent unwinding; CPU time of the whole process */
	uint64_t busy_ns;		/* with ticks: pauses, unwinding, passing samples on */
	double max_duty; /* share of the time for which pauses were allowed; 0 not known */
	bool realtime;	 /* the thread that paused the guest was SCHED_FIFO */
	/* For samples that the kernel made: CPU time of its part, and number of its runs; 0
	 * unknown. */
	uint64_t host_ns, host_runs;
	uint64_t serve_ns; /* of a guest that samples itself: what handing them over took it */
	uint32_t silent;   /* its CPUs that had no ticks, and so no samples */
	uint32_t nr_times; /* vCPUs with known times; of a session's sum 0 */
	/* nr_times entries; owned, unless the holder says otherwise */
	struct uni_vcpu_times *times;
};

/* Makes room for at least nr entries in times[], zeroed if new. False: out of memory, and nothing
 * changed. */
bool uni_record_stats_room(struct uni_record_stats *st, uint32_t nr);
/* All of it into *to, which has its own. False: out of memory, and *to has no times. */
bool uni_record_stats_copy(struct uni_record_stats *to, const struct uni_record_stats *from);
/* Frees its times; then it has none. */
void uni_record_stats_deinit(struct uni_record_stats *st);

/* Memory at a symbol, copied at the first and at the last sample (record --watch). */
struct uni_watch {
	char name[128];
	uint64_t gva;
	uint32_t size;
	uint64_t t_first_ns, t_last_ns;
	uint8_t *first, *last; /* size bytes each; NULL: not read */
};

#define UNI_SESSION_THREADS_MAX 16384 /* of one guest, in the course of a session */

/* A guest thread that samples belong to. */
struct uni_record_thread {
	uint32_t id;	 /* uni_sample.thread: from 1 on, in the order in which they were seen */
	uint64_t object; /* address of the guest's structure for it */
	uint64_t number; /* the guest's own, where has_number */
	bool has_number;
	bool has_twin; /* set on reading: another thread of the guest has the same name */
	char name[64]; /* clean; "" it has none */
};

#define UNI_IMAGES_MAX 32 /* of one guest */

/* A program or library that a guest runs besides its main image. */
struct uni_record_image {
	char path[512];
	char id[80];
	uint64_t bias; /* AVMA - SVMA */
};

#define UNI_GAPS_MAX 64

/* The reason why a guest did not run, while its VMM had it. */
enum uni_gap_held {
	UNI_HELD_NOT,
	UNI_HELD_SIGNAL, /* a signal (SIGSTOP) had stopped the VMM */
	UNI_HELD_VMM,	 /* the VMM had paused the guest */
};

/* A guest that is followed by its name was not there, until another VMM had it. The last members
 * describe the part of the recording from then on. */
struct uni_record_gap {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	int pid;		   /* of the VMM */
	char method[16];	   /* as in uni_record_meta; "" unknown (older sessions) */
	char why[256];
	uint64_t weight, pauses; /* its samples; how often the guest was paused for them */
	/*
	 * Not 0: this is no new VMM. The same one restored a snapshot in between, which set the
	 * guest's clock back by so much. Samples may lie in between; no part begins here.
	 */
	uint64_t back_ns;
	/* Not UNI_HELD_NOT: no new VMM either. The guest did not run in between. */
	enum uni_gap_held held;
};

/* Does another part of the recording begin behind it? */
static inline bool uni_record_gap_is_part(const struct uni_record_gap *gap)
{
	return gap->back_ns == 0 && gap->held == UNI_HELD_NOT;
}

/* A command that ran while the guests were recorded: what was asked of them is known. */
struct uni_record_work {
	char command[1024]; /* its words, cleaned; "" there was none */
	uint64_t begin_ns, end_ns;
	int status; /* exit status, or 128 and its signal */
};

/* One guest of a session. The members from `frequency` on belong to the run and are the same for
 * all guests. */
struct uni_record_meta {
	char target[512]; /* spec as given */
	char method[16]; /* how it is sampled: "bpf", "perf", "pause", "read", "replay"; "" unknown.
			  * If it was followed: how its first part was */
	char why[512];	 /* why not in a better way; "" it is the best one */
	char failed[512]; /* why it could not be recorded at all; "" it was */
	bool counts;	  /* weights of equal chains: times are those of reading them out */
	bool threads;	  /* all threads were sampled, running or not */
	char model[16];	  /* by which its threads are known: "unikraft"; "" they are not */
	struct uni_target_info info;
	char arch[16];
	char image_path[4096];
	char image_id[80];
	char checked[256]; /* how the image was compared with the guest's memory; "" it was not */
	char stale[512];   /* in what way the guest ran another build; "" it did not */
	uint64_t bias;	   /* AVMA - SVMA */
	uint64_t nr_bad_rows; /* functions with invalid call frame information */
	char bad_rows[160];   /* in words */
	struct uni_record_image more[UNI_IMAGES_MAX - 1];
	uint32_t nr_more;
	struct uni_record_gap gap[UNI_GAPS_MAX];
	uint32_t nr_gap;
	uint32_t nr_vcpus;
	uint32_t left_off;	     /* vCPUs that it has besides; they were not looked at */
	double frequency;	     /* asked, Hz */
	uint32_t exits_every;	     /* one of that many VM exits was recorded; 0: none */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC at the start */
	char uniscope_version[32];
	char command[1024];
	bool aggregate;		       /* counts without times: an import */
	bool repeatable;	       /* nothing in the streams may be random; not kept */
	char unit[32];		       /* what weights count, "" = samples */
	struct uni_record_work work;   /* known when the session is closed */
	struct uni_record_trace trace; /* of functions; nr_cpus 0: there is none */
};

/* Adds it behind the others. If the same VMM restored a snapshot while it held the guest, both are
 * one gap. False: there is no room. */
bool uni_record_add_gap(struct uni_record_meta *m, const struct uni_record_gap *gap);

/* Selects samples; a zeroed one selects all. */
struct uni_sample_filter {
	struct uni_only guest, vcpu;
	bool on_cpu;		 /* the guest's time on a CPU only: uni_state_is_guest() */
	bool off_cpu;		 /* threads on no vCPU only */
	bool unseen;		 /* no sample tells of time off the CPU; does not select */
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC of the host; to_ns 0: no end */
	const struct uni_thread_set *threads; /* these only; NULL: all, also samples of none */
};

/* Threads of each guest of a session. */
struct uni_thread_set {
	uint32_t nr_guests;
	struct {
		uint32_t nr; /* ids below this */
		bool *has;   /* by id; owned */
	} guest[UNI_GUEST_MAX];
};

bool uni_thread_set_has(const struct uni_thread_set *set, uint32_t guest, uint32_t thread);
bool uni_sample_passes(const struct uni_sample_filter *f, const struct uni_sample *s);
/*
 * Did the vCPU run the guest's own code, as far as is known? Not idle, not the host's work for it,
 * nor stolen, nor a thread that was on no vCPU. This is what 100 % is, unless something else is
 * asked for.
 */
bool uni_state_is_guest(unsigned state);
/* "100 % is the guest's time on a CPU": for the heading of a report. */
const char *uni_filter_whole(const struct uni_sample_filter *f);

/* Does a PC have its firmware there: a part of the first MiB, the end of the first 4 GiB? */
bool uni_record_is_firmware(uint64_t pc);
/* None, or few, of the chains lie in the guest's images: this is no profile of them. */
bool uni_record_is_elsewhere(const struct uni_record_stats *st);

/* Adds one guest's numbers to a session's. */
void uni_record_stats_add(struct uni_record_stats *sum, const struct uni_record_stats *one);
/* Adds a later part of the same guest's run. */
void uni_record_stats_go_on(struct uni_record_stats *sum, const struct uni_record_stats *one);

struct uni_symtab;

struct uni_recorder; /* writing */

/*
 * A session with one guest, number 0. path is the folder's name; it must not exist, unless
 * `overwrite` and it is a session that nobody records: its files are replaced. Nothing else is ever
 * deleted.
 */
int uni_recorder_create(const char *path, const struct uni_record_meta *meta, bool overwrite,
	struct uni_recorder **ret, struct uni_err *err);
/* Adds a guest; *guest_ret is its number. For the thread that created r, also while others
 * record. */
int uni_recorder_add_guest(struct uni_recorder *r, const struct uni_record_meta *meta,
	uint32_t *guest_ret, struct uni_err *err);
/* Symbols of the guest's image into symbols/ID.usym. */
int uni_recorder_add_image(
	struct uni_recorder *r, uint32_t guest, const struct uni_image *img, struct uni_err *err);
/* Adds a further image to this guest, at that bias; its first one, if it has none. For any
 * thread. */
int uni_recorder_add_more(struct uni_recorder *r, uint32_t guest, const struct uni_image *img,
	uint64_t bias, struct uni_err *err);
int uni_recorder_add_more_symtab(struct uni_recorder *r, uint32_t guest,
	const struct uni_symtab *symtab, uint64_t bias, struct uni_err *err);
/* The same for symbols without an image, from an import. */
int uni_recorder_add_symtab(struct uni_recorder *r, uint32_t guest, const struct uni_symtab *symtab,
	struct uni_err *err);
/*
 * Appends a sample. Never waits for the disk: a sample that the writer thread cannot take counts as
 * lost. For any thread, while it holds no guest. A time before the vCPU's last one is raised to
 * that one.
 */
void uni_recorder_sample(struct uni_recorder *r, const struct uni_sample *s);
/* The next thread of a guest, in the order of ids, before its first sample. For any thread. */
int uni_recorder_thread(
	struct uni_recorder *r, uint32_t guest, const struct uni_record_thread *thread);
/* The same for VM exits, of a guest whose meta has exits_every; e->guest is its number. */
void uni_recorder_exit(struct uni_recorder *r, const struct uni_stream_exit *e);

struct uni_tstream;
/* Streams of function calls for a guest whose meta has a trace; borrowed until r is closed. */
int uni_recorder_trace(
	struct uni_recorder *r, uint32_t guest, struct uni_tstream **ret, struct uni_err *err);
/* Sets newly known facts about the trace: clocks, and at the end the counts of its streams. Writes
 * them. */
int uni_recorder_set_trace(struct uni_recorder *r, uint32_t guest,
	const struct uni_record_trace *trace, struct uni_err *err);
/* Writes session.json as it is known now, with the threads that came since. */
int uni_recorder_save(struct uni_recorder *r, struct uni_err *err);
/* Samples lost so far. uni_recorder_close() adds them to the statistics it writes. */
uint64_t uni_recorder_lost(struct uni_recorder *r);
/* Waits until all samples are written. Unasked for, each is written within a second. */
int uni_recorder_flush(struct uni_recorder *r, struct uni_err *err);

struct uni_json;
/* Writes the member "gaps", if there are any, into the guest's object. */
void uni_record_put_gaps(struct uni_json *j, const struct uni_record_meta *m);

/* How a guest's part of the run went; all borrowed until the recorder is closed. */
struct uni_guest_result {
	const struct uni_record_stats *stats;
	const struct uni_watch *watch;
	size_t nr_watch;
	const char *failed; /* why it could not be recorded; NULL: it was */
	const char *why;    /* how it was recorded, if only its end told; NULL: nothing new */
	const struct uni_record_gap *gap;
	uint32_t nr_gap;
	const struct uni_record_work *work; /* NULL: none */
};

/*
 * Writes the last packets and the final session.json with state "closed". Frees r in any case.
 * result[] has the guests in order; guests above nr have no statistics. -UNI_EIO also means that
 * some samples could not be written during the run; the others are readable.
 */
int uni_recorder_close(struct uni_recorder *r, const struct uni_guest_result *result, size_t nr,
	struct uni_err *err);

struct uni_recording; /* reading */

/* A guest of it; all borrowed. */
struct uni_recorded_guest {
	const struct uni_record_meta *meta;
	/* If the session was not closed: statistics from its samples, the rest 0. */
	const struct uni_record_stats *stats;
	/* The same of the part that is shown (uni_recording_choose()): only numbers of its samples
	 * and exits, and its begin and end. */
	const struct uni_record_stats *shown;
	const struct uni_watch *watch;
	size_t nr_watch;
	const struct uni_record_thread *thread; /* id n is thread[n - 1] */
	size_t nr_thread;
	const struct uni_symtab *symtab; /* travelled with it; NULL: none, or damaged */
	const char *symtab_problem;	 /* why it cannot be read; NULL: nothing is wrong */
};

int uni_recording_open(const char *path, struct uni_recording **ret, struct uni_err *err);
void uni_recording_close(struct uni_recording *r);		 /* NULL-safe */
bool uni_recording_was_closed(const struct uni_recording *r);	 /* false: the recorder died */
uint32_t uni_recording_nr_guests(const struct uni_recording *r); /* at least 1 */
struct uni_recorded_guest uni_recording_guest(const struct uni_recording *r, uint32_t guest);
/* The guest's unique name in the session: its name, its image's, or "guest-N". */
void uni_recording_guest_name(
	const struct uni_recording *r, uint32_t guest, char ret[UNI_GUEST_NAME_MAX]);
/* By number or by that name. -UNI_ENOENT, and the message lists the names. */
int uni_recording_find_guest(
	const struct uni_recording *r, const char *text, uint32_t *ret, struct uni_err *err);

/* The threads whose name or display name matches a shell-style glob; uni_thread_set_destroy() frees
 * the result. -UNI_ENOENT: there is none, and the message has the names. */
int uni_recording_find_threads(const struct uni_recording *r, const char *glob,
	struct uni_thread_set **ret, struct uni_err *err);
void uni_thread_set_destroy(struct uni_thread_set *set); /* NULL-safe */
/*
 * The display name of a thread: its name, else its number or address. If several have the name, the
 * number or address follows it: "init 3". id 0: "[no thread]".
 */
void uni_record_thread_name(const struct uni_record_thread *thread, size_t nr, uint32_t id,
	char ret[UNI_GUEST_NAME_MAX]);

/* A part of a recording, as a user names it. */
struct uni_record_part {
	double from, to; /* seconds since the first sample; to 0: no end */
	struct uni_only vcpu;
	const char *thread; /* glob of names; NULL: all */
};

struct uni_json;

/* Its member "part"; none for NULL. */
void uni_record_part_json(struct uni_json *j, const struct uni_record_part *part);

/* Samples and exits of the chosen guests, of all vCPUs and threads. */
struct uni_record_choice {
	uint64_t all, in_time; /* in the time of the part */
	uint64_t first_ns, last_ns;
};

/* From now on a part is shown. The filter selects it; its on_cpu and off_cpu do not count here. */
int uni_recording_choose(struct uni_recording *r, const struct uni_record_part *part,
	const struct uni_sample_filter *filter, struct uni_record_choice *ret, struct uni_err *err);
const struct uni_record_part *uni_recording_part(const struct uni_recording *r); /* NULL: all */
/* The sum of all guests' .shown. */
const struct uni_record_stats *uni_recording_shown(const struct uni_recording *r);

const char *uni_recording_path(const struct uni_recording *r); /* as it was opened */
const struct uni_record_meta *uni_recording_meta(const struct uni_recording *r);   /* guest 0's */
const struct uni_record_stats *uni_recording_stats(const struct uni_recording *r); /* the sum */
/*
 * Calls fn for each sample, in time order across vCPUs and guests; fn returns non-zero to stop
 * (passed on). Torn and corrupt packets are skipped and counted in *torn_ret (may be NULL).
 */
int uni_recording_each(struct uni_recording *r, int (*fn)(void *ctx, const struct uni_sample *s),
	void *ctx, uint64_t *torn_ret, struct uni_err *err);
/* The same for VM exits. */
int uni_recording_each_exit(struct uni_recording *r,
	int (*fn)(void *ctx, const struct uni_stream_exit *e), void *ctx, uint64_t *torn_ret,
	struct uni_err *err);

#endif
