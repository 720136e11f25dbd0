/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target is a way to reach a running (or dead) guest. Backends are folders below this one, each
 * a const ops table in the registry; absent ops are NULL and a missing capability bit, never stubs.
 */
#ifndef UNI_BACKEND_TARGET_H
#define UNI_BACKEND_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"
#include "mem/gmem.h"
#include "backend/hostway.h"
#include "backend/method.h"
#include "backend/spec.h"
#include "backend/stream.h"
#include "backend/vcpuset.h"

enum uni_target_caps {
	UNI_CAP_HOLD = 1u << 0,	    /* snap() can keep the guest stopped until release() */
	UNI_CAP_NO_PAUSE = 1u << 1, /* snap() without HOLD does not stop the guest at all */
	UNI_CAP_STREAM = 1u << 2,   /* samples made in the kernel: stream_*() */
	UNI_CAP_EXITS = 1u << 3,    /* VM exits can be streamed */
	UNI_CAP_WRITE_TEXT = 1u << 4,
	UNI_CAP_SYSREGS = 1u << 5,    /* registers come with the system registers for paging */
	UNI_CAP_DEAD = 1u << 6,	      /* snapshots: nothing runs, so nothing is paused */
	UNI_CAP_WHOLE_STOP = 1u << 7, /* a hold stops all vCPUs even if the set has one */
	UNI_CAP_STILL = 1u << 8,      /* one moment only: each snap() shows the same */
	/* Nothing of the guest is reached but its own tracer and sampler: gmem() holds no more than
	 * these, a hold stops the tracer's rings and no vCPU, there are no registers */
	UNI_CAP_INSIDE = 1u << 9,
};

enum uni_snap_flags {
	UNI_SNAP_HOLD = 1u << 0, /* keep stopped until release() */
	/* With HOLD: where one of several vCPUs does not stop at once, for it waits for a CPU of
	 * the host, the others do not stand until it has one: all go on, -UNI_EAGAIN, and stood_ns
	 * says how long they stood. Backends that stop all vCPUs by one request know no such wait.
	 */
	UNI_SNAP_BRIEF = 1u << 1,
};

/* Bytes that memory at gva must hold: loadable read-only segments of the image. Plain data. */
struct uni_text_hint {
	uint64_t gva;	      /* link address + bias */
	uint64_t paddr;	      /* ELF p_paddr */
	const uint8_t *bytes; /* borrowed for the duration of attach */
	size_t size;
	bool exec;
	/* Places where a tracer may have put other bytes: where in `bytes`, rising,
	 * UNI_TEXT_PATCH_BYTES of them each; may be NULL. Borrowed as well. */
	const uint64_t *patched;
	size_t nr_patched;
};
#define UNI_TEXT_PATCH_BYTES 5

struct uni_attach_opts {
	const struct uni_arch *arch; /* from the image; NULL: what the guest says, else x86_64 */
	const struct uni_text_hint *text;
	size_t nr_text;
	bool anywhere;	 /* the text may be mapped elsewhere, and loaded elsewhere, than it says */
	bool rest_ok;	 /* a guest that its VMM paused will do: its registers are not needed */
	const char *qmp; /* path of a QMP socket, or NULL */
	/* What the guests of one run share (programs in the kernel); NULL: this one has its own. */
	struct uni_target_shared *shared;
};

/* What is known of a target; strings are cleaned text. */
struct uni_target_info {
	int pid;		/* VMM process, 0 = none or unknown */
	char vmm[32];		/* "qemu", "firecracker", ... "" unknown */
	char accel[16];		/* "kvm", "tcg", "process" (none: the host's own), "" */
	char name[128];		/* guest's name */
	char image[4096];	/* kernel image on the command line, "" unknown */
	uint32_t nr_vcpus;	/* 0 unknown */
	uint64_t mem_bytes;	/* 0 unknown */
	uint64_t missing_bytes; /* of these: a core that is cut off */
	char gdb[256];		/* keys of its gdb stub: "unix=/run/q.sock", "" none */
	char qmp[256];		/* path of its QMP socket, "" none */
	uint32_t uid;		/* whose process it is */
	int ns_pid;	   /* its number in its own pid namespace (a container); 0: it is ours */
	bool denied;	   /* not permitted to look into the process: the rest is what it says */
	uint32_t domid;	   /* of a Xen domain; 0: it is none */
	bool stopped;	   /* its process stands still by a signal (SIGSTOP) or a debugger */
	char rest[16];	   /* why none of its vCPUs runs: "paused", "crashed", ...; "" they may */
	bool absent;	   /* nothing is there (yet); note says what is not */
	char note[256];	   /* how it is reached, for reports: "sync registers, RAM by scan" */
	char ended[240];   /* of an attached one: how it ended, if its backend can tell; else "" */
	char build_id[72]; /* of the image, hexadecimal, as an attached guest says; "" unknown */
	uint64_t trace_head; /* where it says that its uni_trace_head is; 0 unknown */
	char why[512]; /* of an attached one: why its backend's best way is not taken, "" it is */
};

struct uni_target;
struct uni_target_shared;
struct uni_patch_job;

/* A file with code that is mapped, its first byte at gva. */
typedef void (*uni_target_file_fn)(void *ctx, const char *path, uni_gva gva);

struct uni_target_ops {
	const char *scheme;   /* "kvm" */
	const char *summary;  /* one line for --help and doctor */
	const char *keys;     /* "pid=N[,qmp=PATH]" */
	bool reads_cost_time; /* the guest may have to stand while its memory is read */
	bool may_sleep;	      /* as a whole, and then there is nothing to sample */
	const char *units;    /* what its vCPUs are called; NULL: "vCPUs" */

	/* Can this backend work on this host at all? 0, or the reason and the remedy in err.
	 * Optional. */
	int (*host_check)(struct uni_err *err);
	/* Thing by thing, for doctor: fills up to cap ways of this backend, the first its plain
	 * one, and returns how many. Optional: without it host_check() says all. */
	uint32_t (*host_ways)(struct uni_host_way *ret, uint32_t cap);
	/* Would it reach this guest? The keys for a spec ("pid=12") into keys_ret, or false.
	 * Optional. */
	bool (*claims)(const struct uni_target_info *info, char *keys_ret, size_t cap);
	/* By which of the ways that host_ways() told would it be reached, and why so (short text
	 * into why_ret)? The way's index; or -UNI_EPERM, -UNI_ENOTSUP and why not. Optional. */
	int (*choose)(const struct uni_target_info *info, const struct uni_host_way *ways,
		uint32_t nr, char *why_ret, size_t cap);

	/* Can a guest be sampled as wished? 0, or why not. Optional. */
	int (*check_wish)(
		const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_err *err);
	/* The key that makes attach() do as wished. Optional, of backends with a choice. */
	void (*choose_key)(const struct uni_spec *spec, const struct uni_way_wish *wish,
		struct uni_way_key *ret);

	/* Guests of this host that are no processes. *ret is the caller's: free() it. Optional. */
	int (*list)(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);

	/* Without attaching: what would be reached. May leave fields empty. Optional. */
	int (*probe)(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err);

	int (*attach)(const struct uni_spec *spec, const struct uni_attach_opts *opts,
		struct uni_target **ret, struct uni_err *err);
	unsigned (*caps)(struct uni_target *t);
	int (*nr_vcpus)(struct uni_target *t); /* at least 1 */

	/* May it be sampled, not only looked at? 0, or why not. Optional. */
	int (*may_sample)(struct uni_target *t, struct uni_err *err);

	/*
	 * Registers of the vCPUs in the set, taken together, into ret[vcpu]. With HOLD the guest
	 * (or those vCPUs) stays stopped until release(). On failure nothing is held. 0,
	 * -UNI_EGONE, -UNI_EAGAIN (this sample cannot be had, the guest was not harmed), -UNI_EIO.
	 * No allocation, no printing.
	 */
	int (*snap)(struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret,
		unsigned flags);
	/*
	 * Optional. After a snap() that gave nothing: is somebody else in the way? 0 nobody that is
	 * known, or -UNI_EBUSY with the reason. May take some 100 ms; nothing is held.
	 */
	int (*blocked)(struct uni_target *t, struct uni_err *err);
	int (*release)(struct uni_target *t); /* idempotent; the pause guard calls it */

	/* Optional: registers to be shown, of the last snap(). False: there are none of that vCPU.
	 */
	bool (*more_regs)(struct uni_target *t, uint32_t vcpu, struct uni_more_regs *ret);

	struct uni_gmem *(*gmem)(struct uni_target *t); /* borrowed */
	/*
	 * Optional: the files whose code is mapped, where somebody knows that (an operating system
	 * below the guest). 0 or -UNI_EGONE.
	 */
	int (*files)(struct uni_target *t, uni_target_file_fn fn, void *ctx);
	/*
	 * Optional: a copy of the memory that the guest itself offers under a name ("mprof": the
	 * trace ring of MirageOS). *ret is owned by the caller. -UNI_ENOENT: it offers none.
	 */
	int (*granted)(struct uni_target *t, const char *what, uint8_t **ret, size_t *size_ret,
		struct uni_err *err);
	void (*info)(struct uni_target *t, struct uni_target_info *ret);
	/* Is the guest still there? false once it ended: the run closes cleanly. */
	bool (*alive)(struct uni_target *t);

	/*
	 * Optional: how long the host has run what stands for this vCPU, ns, as far as its kernel
	 * has counted: up to a tick ago. No other host work is in it. 0, or -UNI_ENOTSUP.
	 */
	int (*on_cpu)(struct uni_target *t, uint32_t vcpu, uint64_t *ret);

	/*
	 * Optional, with UNI_CAP_STREAM: samples or exits that the kernel side makes without
	 * stopping anything. The hints are copied. stream_read() hands over what has gathered, in
	 * time order within a vCPU, and does not wait; -UNI_EGONE after the guest's end, when
	 * everything was handed over. stream_stop() is idempotent; what is left can still be read.
	 * vCPUs that are plugged in on the way are followed and get the next numbers;
	 * stream_times() of one that is not there (yet) is -UNI_ENOENT.
	 */
	const char *stream_method; /* what makes the samples: "bpf", "perf" (backend/method.h) */
	int (*stream_start)(struct uni_target *t, const struct uni_stream_cfg *cfg,
		const struct uni_unwind_hints *hints, struct uni_err *err);
	int (*stream_read)(struct uni_target *t, const struct uni_stream_sink *sink);
	void (*stream_stats)(struct uni_target *t, struct uni_stream_stats *ret);
	int (*stream_times)(struct uni_target *t, uint32_t vcpu, struct uni_vcpu_times *ret);
	int (*stream_stop)(struct uni_target *t);

	/* Optional: the guest's time-stamp counter, at some moment of [*from_ns_ret, *to_ns_ret].
	 */
	int (*tsc)(struct uni_target *t, uint64_t *ret, uint64_t *from_ns_ret, uint64_t *to_ns_ret);

	/*
	 * Optional, with UNI_CAP_WRITE_TEXT: the only writer of guest memory (backend/patch.h).
	 * Stops all vCPUs once; all or nothing. 0 or as uni_patch_run(), which does not call it
	 * while vCPUs are left off, unless it finds and stops these as well.
	 */
	int (*write_text)(struct uni_target *t, struct uni_patch_job *job);
	bool write_stops_left_off;

	void (*detach)(struct uni_target *t); /* resumes what is held, frees everything */
};

/* Common part; a backend embeds it as the first member of its own struct. */
struct uni_target {
	const struct uni_target_ops *ops;
	const struct uni_arch *arch;
	/*
	 * Set by a successful snap() that can tell: the guest stands because of us since then at
	 * the earliest (uni_now_ns() clock). 0: since snap() was called.
	 */
	uint64_t stop_ns;
	uint64_t stood_ns; /* see UNI_SNAP_BRIEF */
	/* vCPUs of the guest beyond nr_vcpus(), as far as is known: no snap() reads or holds them.
	 * While there are any, code is not patched. */
	uint32_t nr_left_off;
};

/* All backends of this build, in order of preference; ends with NULL. */
extern const struct uni_target_ops *const uni_target_backends[];
const struct uni_target_ops *uni_target_backend(const char *scheme);

#define UNI_GUEST_NAME_MAX 128

/* What a guest is called: its name, else its image's without folder and .elf; "" if neither is. */
void uni_guest_name(const struct uni_target_info *info, char ret[UNI_GUEST_NAME_MAX]);

/* A guest on this host, and how it would be reached. */
struct uni_found {
	struct uni_target_info info;
	char spec[512]; /* "kvm:pid=12", "" if no backend of this build reaches it */
	char way[16];	/* as doctor names it: "kvm-bpf", "kvm", "gdb"; "" none */
	char why[240];	/* why this way, or why none */
};

/*
 * Every guest that can be seen; the first backend in order of preference that claims it and works
 * on this host is chosen. *ret is owned by the caller: free() it.
 */
int uni_target_discover(struct uni_found **ret, size_t *nr_ret, struct uni_err *err);

/* By the spec's scheme; errors name the schemes that exist. */
int uni_target_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err);
int uni_target_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err);
/* For a backend's probe(): attaches to what nothing happens to by that, and asks. */
int uni_target_look(const struct uni_target_ops *ops, const struct uni_spec *spec,
	struct uni_target_info *ret, struct uni_err *err);
void uni_target_detach(struct uni_target *t); /* NULL-safe */

#endif
