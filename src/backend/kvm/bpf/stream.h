/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One guest sampled in the kernel: its maps, its vCPUs' events, and the handling of records. Used
 * by one thread at a time.
 */
#ifndef UNI_BACKEND_KVM_BPF_STREAM_H
#define UNI_BACKEND_KVM_BPF_STREAM_H

#include "base/vec.h"
#include "backend/kvm/bpf/object.h"
#include "backend/kvm/bpf/clocks.h"
#include "backend/kvm/bpf/scan.h"
#include "backend/kvm/bpf/text.h"
#include "backend/target.h"

struct bpf_link;
struct perf_event_attr;
struct ring_buffer;
struct uni_kvm_exits;

/* The clock of a vCPU's samples; ticks.c. */
struct uni_kvm_ticks {
	int fd;			/* borrowed from the link; -1: we do not draw its period */
	uint64_t first, turned; /* the vCPU's sample counts: at the open, and at the last draw */
	uint64_t seed;
};

/* Facts about one vCPU, besides those of the kernel side. */
struct uni_kvm_stream_vcpu {
	int index;		/* in the object's vcpu[]; -1: this vCPU is not known yet */
	uint32_t tid, host_tid; /* for us, and for programs in the kernel */
	uint32_t exit_tid;	/* its exits are watched by this host_tid; exits.c */
	uint64_t ptr;		/* struct kvm_vcpu * */
	struct bpf_link *sample, *leave;
	struct uni_kvm_ticks ticks;
	uint64_t since_ns;		/* begin of its sampling */
	uint64_t carry[UNI_BPF_STATES]; /* ns that are less than a whole period */
	uint64_t end_idle, end_stolen;	/* ns of the interval that was open at the end */
};

/* A chain that has a number. */
struct uni_kvm_chain {
	uint64_t *pc; /* owned; NULL: not defined (yet) */
	uint16_t nr;
	uint8_t stop;
	bool gap;	  /* frames are left out before frame UNI_CHAIN_INNER */
	uint8_t exact[3]; /* indexes of frames that were interrupted; 0: no more */
	uint16_t guess;	  /* index of the first frame that is a guess; 0: none */
	uint32_t vcpu;
	uint64_t seen[UNI_BPF_STATES]; /* counts that were delivered */
};

#define UNI_KVM_BACKS 4 /* one for each look at the vCPUs, and they are taken more often */

struct uni_kvm_stream {
	struct uni_kvm_bpf *bpf; /* borrowed */
	int pid, guest;
	struct uni_stream_cfg cfg;
	uint64_t period_ns;
	uint64_t start_ns, stop_ns; /* stop_ns 0: runs */
	uint64_t looked_ns;	    /* for new vCPUs and memory */
	bool running, ends_due;	    /* ends_due: open intervals must still be delivered */
	bool cycles;		    /* the hardware's counter and NMI */
	bool gone;		    /* the guest had ended when sampling stopped */
	int text_fd, cfi_fd, chains_fd, counts_fd, ring_fd;
	const uint64_t *counts; /* UNI_BPF_STATES for each chain */
	struct ring_buffer *ring;
	UNI_VEC(struct uni_kvm_chain) chains;
	UNI_VEC(struct uni_func_hint) entries; /* sorted; chains end at these */
	UNI_VEC(struct uni_func_hint) funcs;   /* all of them */
	struct uni_kvm_taken taken;
	struct uni_unwind_hints hints; /* with these functions; no text: none are known */
	uint32_t nr_vcpus;
	struct uni_kvm_stream_vcpu vcpu[UNI_VCPU_MAX];
	struct uni_kvm_scan scan; /* the latest */
	/* The look that uni_kvm_stream_times() made: when, did it succeed, and for whom last. */
	uint64_t seen_ns;
	uint32_t seen_for;
	bool seen_ok;
	struct uni_kvm_clock clock;
	struct uni_stream_back back[UNI_KVM_BACKS]; /* not taken yet */
	uint32_t nr_back;
	uint64_t delivered, cost0_ns, cost0_runs, runs0;
	uint8_t flags[UNI_BPF_FRAMES];
	struct uni_kvm_exits *exits;		 /* NULL: not wanted */
	const struct uni_stream_sink *sink;	 /* during stream_read() */
	const struct uni_kvm_unwinder *unwinder; /* only during the start */
};

/*
 * Makes the chain of a vCPU that is off the CPU when sampling begins. Its registers do not change,
 * and the kernel side has not seen it leave. Puts up to UNI_BPF_FRAMES into pc_ret, and returns
 * their number.
 */
struct uni_kvm_unwinder {
	uint16_t (*chain)(
		void *ctx, const struct uni_bpf_regs *regs, uint64_t *pc_ret, uint8_t *stop_ret);
	void *ctx;
};

/* The facts about the guest that the loader needs to start. Borrowed during the call. */
struct uni_kvm_stream_opts {
	struct uni_kvm_bpf *bpf;
	int pid;
	const struct uni_arch *arch;
	const struct uni_unwind_hints *hints; /* may be NULL */
	struct uni_kvm_code code;
	struct uni_kvm_unwinder unwinder;
	struct uni_regs sys; /* sys[]: control registers of which the kernel may have no copy */
	bool split;	     /* this KVM distinguishes guest from KVM */
};

int uni_kvm_stream_start(const struct uni_kvm_stream_opts *opts, const struct uni_stream_cfg *cfg,
	struct uni_kvm_stream **ret, struct uni_err *err);
/* Looks for new vCPUs and memory now and then, and delivers what has gathered. */
int uni_kvm_stream_read(struct uni_kvm_stream *s, const struct uni_stream_sink *sink);
void uni_kvm_stream_stats(const struct uni_kvm_stream *s, struct uni_stream_stats *ret);
int uni_kvm_stream_times(struct uni_kvm_stream *s, uint32_t vcpu, struct uni_vcpu_times *ret);
/* Stops sampling; the rest can still be read. Idempotent. */
void uni_kvm_stream_stop(struct uni_kvm_stream *s);
/* The next time that the guest's clock was set back; false: there is none. */
bool uni_kvm_stream_back(struct uni_kvm_stream *s, struct uni_stream_back *ret);
void uni_kvm_stream_destroy(struct uni_kvm_stream *s); /* NULL-safe */

/* maps.c */
int uni_kvm_stream_make_maps(
	struct uni_kvm_stream *s, const struct uni_kvm_stream_opts *opts, struct uni_err *err);
void uni_kvm_stream_free_maps(struct uni_kvm_stream *s);

/* events.c: begins or ends the sampling of the threads that the scan found, and updates memory. */
int uni_kvm_stream_follow(struct uni_kvm_stream *s, struct uni_err *err);
void uni_kvm_stream_leave(struct uni_kvm_stream *s, struct uni_kvm_stream_vcpu *v);

/*
 * ticks.c: opens a disabled event of a thread; -1 and errno on failure. The same for the ticks of a
 * vCPU's thread.
 */
int uni_kvm_event_open(uint32_t tid, struct perf_event_attr *attr);
int uni_kvm_ticks_open(struct uni_kvm_stream *s, struct uni_kvm_stream_vcpu *v);
/* Draws new periods for vCPUs with enough samples since the last time. */
void uni_kvm_ticks_turn(struct uni_kvm_stream *s);
/* With more, a tick that takes long could lock onto the guest. */
#define UNI_KVM_TURN_SAMPLES 8

/*
 * deliver.c: the chain of a number, or NULL if there is none (yet). Also delivers one record of the
 * ring, the counters, and the intervals that were open at the end.
 */
const struct uni_kvm_chain *uni_kvm_stream_chain(struct uni_kvm_stream *s, uint64_t number);
/*
 * In s->flags: marks frames that were interrupted, besides the first, and the one behind a gap; or
 * takes the marks away. c may be NULL.
 */
void uni_kvm_stream_mark(struct uni_kvm_stream *s, const struct uni_kvm_chain *c, bool on);
int uni_kvm_stream_record(void *ctx, void *data, size_t size);
/* Defines a chain that the kernel side does not know. Returns its number, or UNI_BPF_NONE. */
uint32_t uni_kvm_stream_define(
	struct uni_kvm_stream *s, uint32_t vcpu, const uint64_t *pc, uint16_t nr, uint8_t stop);
void uni_kvm_stream_counts(struct uni_kvm_stream *s);
void uni_kvm_stream_open_ends(struct uni_kvm_stream *s);

/* times.c: keeps the open intervals that the scan found at the end of sampling. */
void uni_kvm_stream_close_times(struct uni_kvm_stream *s);

#endif
