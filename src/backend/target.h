/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target is a way to reach a running (or dead) guest. Backends are folders below this one. Each
 * is a const ops table in the registry. An absent op is NULL and has no capability bit; there are
 * no stubs.
 */
#ifndef UNI_BACKEND_TARGET_H
#define UNI_BACKEND_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"
#include "mem/gmem.h"
#include "backend/breaks.h"
#include "backend/hostway.h"
#include "backend/method.h"
#include "backend/spec.h"
#include "backend/stream.h"
#include "backend/vcpuset.h"

enum uni_target_caps {
	UNI_CAP_HOLD = 1u << 0,	    /* snap() can keep the guest stopped until release() */
	UNI_CAP_NO_PAUSE = 1u << 1, /* without HOLD, snap() does not stop the guest at all */
	UNI_CAP_STREAM = 1u << 2,   /* samples made in the kernel: stream_*() */
	UNI_CAP_EXITS = 1u << 3,    /* VM exits can be streamed */
	UNI_CAP_WRITE_TEXT = 1u << 4,
	UNI_CAP_SYSREGS = 1u << 5,    /* registers come with the system registers for paging */
	UNI_CAP_DEAD = 1u << 6,	      /* a snapshot: nothing runs, so nothing is paused */
	UNI_CAP_WHOLE_STOP = 1u << 7, /* a hold stops all vCPUs, even if the set has only one */
	UNI_CAP_STILL = 1u << 8,      /* one moment only: each snap() shows the same */
	/*
	 * Only the guest's own tracer and sampler are reached. gmem() has their memory only, a hold
	 * stops the tracer's rings and no vCPU, and there are no registers.
	 */
	UNI_CAP_INSIDE = 1u << 9,
	UNI_CAP_KERNEL = 1u << 10, /* its samples have frames of the host's kernel */
};

enum uni_snap_flags {
	UNI_SNAP_HOLD = 1u << 0, /* keep stopped until release() */
	/*
	 * With HOLD: one of several vCPUs may not stop at once, as it waits for a CPU of the host.
	 * Then the others are not held until it has one. All vCPUs go on, -UNI_EAGAIN is returned,
	 * and stood_ns says how long they were stopped. Backends that stop all vCPUs by one request
	 * have no such wait.
	 */
	UNI_SNAP_BRIEF = 1u << 1,
};

/* Bytes that memory at gva must have: loadable read-only segments of the image. Plain data. */
struct uni_text_hint {
	uint64_t gva;	      /* link address + bias */
	uint64_t paddr;	      /* ELF p_paddr */
	const uint8_t *bytes; /* borrowed for the duration of attach */
	size_t size;
	bool exec;
	/*
	 * Places where a tracer may have put other bytes: offsets in `bytes`, rising, each of
	 * UNI_TEXT_PATCH_BYTES; may be NULL. Borrowed as well.
	 */
	const uint64_t *patched;
	size_t nr_patched;
};
#define UNI_TEXT_PATCH_BYTES 5

struct uni_attach_opts {
	const struct uni_arch *arch; /* from the image; NULL: as the guest says, else x86_64 */
	const struct uni_text_hint *text;
	size_t nr_text;
	bool anywhere;	 /* the text may be mapped and loaded at other addresses than these */
	bool rest_ok;	 /* a guest that its VMM has paused is fine: its registers are not needed */
	const char *qmp; /* path of a QMP socket, or NULL */
	/*
	 * Has the guest ended, so that attaching is of no use? Asked now and then where it takes
	 * long; nothing of the guest may be asked for it. NULL: not known.
	 */
	bool (*over)(void *ctx);
	void *over_ctx;
	/* Shared by the guests of one run (programs in the kernel); NULL: not shared. */
	struct uni_target_shared *shared;
};

/* The properties of a target; strings are cleaned text. */
struct uni_target_info {
	int pid;		/* VMM process, 0 = none or unknown */
	char vmm[32];		/* "qemu", "firecracker", ... "" unknown */
	char accel[16];		/* "kvm", "tcg", "process" (none: the host's own), "" */
	char name[128];		/* guest's name */
	char image[4096];	/* kernel image on the command line, "" unknown */
	char counts[4096];	/* file in which our plugin counts (uniscope/exact.h), "" none */
	uint32_t nr_vcpus;	/* 0 unknown */
	uint64_t mem_bytes;	/* 0 unknown */
	uint64_t missing_bytes; /* part of mem_bytes that a truncated core lacks */
	char gdb[256];		/* keys for its gdb stub: "unix=/run/q.sock", "" none */
	char qmp[256];		/* path of its QMP socket, "" none */
	char qmp_tcp[64];	/* address of its QMP monitor on TCP, "" none */
	uint32_t uid;		/* owner of the process */
	int ns_pid;	/* its number in its own pid namespace (a container); 0: it is in ours */
	bool denied;	/* not permitted to look into the process: the rest is its own statement */
	uint32_t domid; /* for a Xen domain; 0: it is none */
	bool stopped;	/* a signal (SIGSTOP) or a debugger has stopped its process */
	char rest[16];	/* why none of its vCPUs runs: "paused", "crashed", ...; "": they may run */
	bool absent;	/* there is nothing (yet); note says what is missing */
	char note[256]; /* how it is reached, for reports: "sync registers, RAM by scan" */
	char ended[240];   /* for an attached one: how it ended, if its backend knows; else "" */
	char build_id[72]; /* build-id of the image, hexadecimal, from an attached guest; "" unknown
			    */
	uint64_t trace_head; /* address of its uni_trace_head, from the guest; 0 unknown */
	char why[512]; /* for an attached one: why its backend's best way is not used; "": it is
			  used */
};

struct uni_target;
struct uni_target_shared;
struct uni_patch_job;

/* A mapped file with code; its first byte is at gva. name: the path that it had when it was mapped.
 * path NULL: it is no file, but `size` bytes in memory. */
typedef void (*uni_target_file_fn)(
	void *ctx, const char *path, const char *name, uni_gva gva, uint64_t size);

typedef void (*uni_target_range_fn)(void *ctx, uint64_t start, uint64_t size);

struct uni_target_ops {
	const char *scheme;   /* "kvm" */
	const char *summary;  /* one line for --help and doctor */
	const char *keys;     /* "pid=N[,qmp=PATH]" */
	bool reads_cost_time; /* the guest may have to stop while its memory is read */
	bool may_sleep;	      /* it may sleep as a whole, and then there is nothing to sample */
	const char *units;    /* the word for its vCPUs; NULL: "vCPUs" */

	/*
	 * Can this backend work on this host at all? Returns 0, or the reason and the remedy in
	 * err. Optional.
	 */
	int (*host_check)(struct uni_err *err);
	/*
	 * For doctor: fills up to cap ways of this backend, the plain one first, and returns their
	 * number. Optional: without it, host_check() is enough.
	 */
	uint32_t (*host_ways)(struct uni_host_way *ret, uint32_t cap);
	/*
	 * Asks the VMM for what its process does not show, and claims() needs. Takes at most about
	 * a second. Optional.
	 */
	void (*complete)(struct uni_target_info *info);
	/*
	 * Would it reach this guest? Writes the keys for a spec ("pid=12") to keys_ret, or returns
	 * false. Optional.
	 */
	bool (*claims)(const struct uni_target_info *info, char *keys_ret, size_t cap);
	/*
	 * Which of the ways of host_ways() would reach it? Returns the way's index and the reason
	 * (short text in why_ret); or -UNI_EPERM, -UNI_ENOTSUP and why not. Optional.
	 */
	int (*choose)(const struct uni_target_info *info, const struct uni_host_way *ways,
		uint32_t nr, char *why_ret, size_t cap);

	bool is_file; /* the guest is a file: without rights it is attached all the same */

	/* Can a guest be sampled as the user wants? Returns 0, or why not. Optional. */
	int (*check_wish)(
		const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_err *err);
	/* Gives the key that makes attach() do so. Optional, for backends with a choice. */
	void (*choose_key)(const struct uni_spec *spec, const struct uni_way_wish *wish,
		struct uni_way_key *ret);

	/*
	 * Lists guests of this host that are no processes. The caller frees *ret with free().
	 * Optional.
	 */
	int (*list)(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);

	/*
	 * Describes what attach() would reach, without attaching. May leave fields empty. Optional.
	 */
	int (*probe)(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err);

	/*
	 * Optional: makes all for which attaching and streaming need rights. Then they work in a
	 * process that gave up its own and watches the process of the key "pid" (base/privilege.h).
	 * Otherwise returns why not. Reads no image. exits: VM exits are wanted.
	 */
	int (*hand_over)(const struct uni_spec *spec, struct uni_target_shared *shared, bool exits,
		struct uni_err *err);

	/*
	 * Optional: makes a child or a connection by which attach() reaches the guest without
	 * rights, and reads the memory of this process (0: of none). Otherwise returns why not.
	 * Reads nothing of it.
	 */
	int (*hand_line)(const struct uni_spec *spec, struct uni_target_shared *shared,
		int *pid_ret, struct uni_err *err);

	/*
	 * Without rights, it attaches in each way, if the observer looks into this process and
	 * stops it.
	 */
	int (*observed_pid)(const struct uni_spec *spec, int *ret, struct uni_err *err);
	/*
	 * The same where the guest is stopped by whoever may trace this process, its user at least.
	 * -UNI_ENOTSUP: attaching takes more.
	 */
	int (*stopped_pid)(const struct uni_spec *spec, int *ret, struct uni_err *err);
	/* Is the guest stopped for each sample, whatever its image is? Optional: it is not. */
	bool (*stops)(const struct uni_spec *spec, const struct uni_way_wish *wish);

	int (*attach)(const struct uni_spec *spec, const struct uni_attach_opts *opts,
		struct uni_target **ret, struct uni_err *err);
	unsigned (*caps)(struct uni_target *t);
	int (*nr_vcpus)(struct uni_target *t); /* at least 1 */

	/* May it be sampled, not only looked at? Returns 0, or why not. Optional. */
	int (*may_sample)(struct uni_target *t, struct uni_err *err);

	/*
	 * Reads registers of the vCPUs in the set, at one moment, into ret[vcpu]. With HOLD the
	 * guest (or those vCPUs) stays stopped until release(). On failure nothing is held. Returns
	 * 0, -UNI_EGONE, -UNI_EIO, or -UNI_EAGAIN (no sample this time; the guest was not harmed).
	 * No allocation, no printing.
	 */
	int (*snap)(struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret,
		unsigned flags);
	/*
	 * Optional, of a target with a number of moments: a recording begins, so the guest ends
	 * after the last one. A moment that is taken twice says nothing new.
	 */
	void (*begin_run)(struct uni_target *t);
	/*
	 * Optional. After a snap() that gave nothing: does somebody else prevent it? Returns 0 (not
	 * known), or -UNI_EBUSY with the reason. May take some 100 ms; nothing is held.
	 */
	int (*blocked)(struct uni_target *t, struct uni_err *err);
	int (*release)(struct uni_target *t); /* idempotent; the pause guard calls it */

	/* Optional: more registers to show, from the last snap(). False: that vCPU has none. */
	bool (*more_regs)(struct uni_target *t, uint32_t vcpu, struct uni_more_regs *ret);

	struct uni_gmem *(*gmem)(struct uni_target *t); /* borrowed */
	/*
	 * Optional: the files whose code is mapped, if somebody knows that (an operating system
	 * below the guest). Returns 0 or -UNI_EGONE.
	 */
	int (*files)(struct uni_target *t, uni_target_file_fn fn, void *ctx);
	/*
	 * Optional, where memory is virtual: the parts of it that are mapped, may be read and
	 * written, and are no devices. Returns 0 or -UNI_EGONE.
	 */
	int (*mapped)(struct uni_target *t, uni_target_range_fn fn, void *ctx);
	/*
	 * Optional: a copy of the memory that the guest itself offers under a name ("mprof": the
	 * trace ring of MirageOS). The caller owns *ret. -UNI_ENOENT: the guest offers none.
	 */
	int (*granted)(struct uni_target *t, const char *what, uint8_t **ret, size_t *size_ret,
		struct uni_err *err);
	/*
	 * Optional: the rate of the guest's counter, as its hypervisor tells it; 0: it does not.
	 * May stop the guest for a moment.
	 */
	uint64_t (*counter_hz)(struct uni_target *t);
	void (*info)(struct uni_target *t, struct uni_target_info *ret);
	/* Is the guest still there? False once it has ended: then the run closes cleanly. */
	bool (*alive)(struct uni_target *t);
	/* Optional. Between holds: does no vCPU stop late for a hold that is over? Otherwise its
	 * VMM may wait for it and cannot answer, or stops the guest for us after that. */
	bool (*settled)(struct uni_target *t);
	/*
	 * Optional. Do all threads of its VMM wait outside of the guest now, which a guest that
	 * sleeps does not cause? Then it has paused the guest; one look proves nothing. False, too:
	 * not known. By its pid, attached or not.
	 */
	bool (*stands)(const struct uni_target_info *info);
	/*
	 * Optional. After -UNI_EGONE, or when it is no longer alive(): is the guest still there,
	 * and only our way to it lost? Returns 0 (not known: it ended), or the reason.
	 */
	int (*lost)(struct uni_target *t, struct uni_err *err);

	/*
	 * Optional: CPU time that the host has given to this vCPU, ns. The kernel's count may be a
	 * tick old. It includes no other host work. Returns 0, or -UNI_ENOTSUP.
	 */
	int (*on_cpu)(struct uni_target *t, uint32_t vcpu, uint64_t *ret);
	/* Optional, with on_cpu: how long it could run, and the host ran something else, ns. */
	int (*ready)(struct uni_target *t, uint32_t vcpu, uint64_t *ret);
	/*
	 * Optional: CPU time as well, but never less than this vCPU had. It may include work of the
	 * VMM and of other vCPUs. Returns 0, or -UNI_ENOTSUP.
	 */
	int (*cpu_most)(struct uni_target *t, uint32_t vcpu, uint64_t *ret);
	/*
	 * Optional: both for the thread that runs this vCPU and no other. CPU time, and time in
	 * which it could run and the host ran something else. Exact while it is held or asleep.
	 * Returns 0, or -UNI_ENOTSUP.
	 */
	int (*host_times)(
		struct uni_target *t, uint32_t vcpu, uint64_t *on_ret, uint64_t *ready_ret);
	bool tells_waiting; /* snap() of one vCPU has RUNNING only if it was on a CPU, else STOLEN
			     */

	/*
	 * Optional, with UNI_CAP_STREAM: samples or exits that the kernel makes without stopping
	 * anything. The hints are copied.
	 * stream_read() delivers what has gathered, in time order for each vCPU, and does not wait.
	 * It returns -UNI_EGONE after the guest's end, once everything was delivered.
	 * stream_stop() is idempotent; the rest can still be read.
	 * vCPUs that are plugged in later are followed, and get the next numbers. stream_times() of
	 * a vCPU that is not there (yet) is -UNI_ENOENT.
	 */
	const char *stream_method; /* maker of the samples: "bpf", "perf" (backend/method.h) */
	int (*stream_start)(struct uni_target *t, const struct uni_stream_cfg *cfg,
		const struct uni_unwind_hints *hints, struct uni_err *err);
	int (*stream_read)(struct uni_target *t, const struct uni_stream_sink *sink);
	void (*stream_stats)(struct uni_target *t, struct uni_stream_stats *ret);
	/* While the stream runs, vCPUs that are asked for in rising order have one moment. */
	int (*stream_times)(struct uni_target *t, uint32_t vcpu, struct uni_vcpu_times *ret);
	int (*stream_stop)(struct uni_target *t);
	/*
	 * Optional: takes the next time that the guest's clock was set back, also after
	 * stream_stop(). False: there is none. In the thread that reads the stream.
	 */
	bool (*stream_back)(struct uni_target *t, struct uni_stream_back *ret);

	/*
	 * Optional: the guest's time-stamp counter, at some moment in [*from_ns_ret, *to_ns_ret].
	 */
	int (*tsc)(struct uni_target *t, uint64_t *ret, uint64_t *from_ns_ret, uint64_t *to_ns_ret);

	/*
	 * Optional, with UNI_CAP_WRITE_TEXT: the only writer of guest memory (backend/patch.h).
	 * Stops all vCPUs once; all or nothing. Returns as uni_patch_run(). While vCPUs are left
	 * off, uni_patch_run() calls it only if write_stops_left_off: it finds and stops these as
	 * well.
	 */
	int (*write_text)(struct uni_target *t, struct uni_patch_job *job);
	bool write_stops_left_off;
	/* So many places it writes in well under a millisecond. 0: their number does not matter. */
	uint32_t write_places;

	const struct uni_break_ops *breaks; /* optional */

	void (*detach)(struct uni_target *t); /* resumes held vCPUs, frees everything */
};

/* The common part; a backend's own struct has it as first member. */
struct uni_target {
	const struct uni_target_ops *ops;
	const struct uni_arch *arch;
	/*
	 * Set by a successful snap() that knows it: the earliest time since which we hold the guest
	 * (uni_now_ns() clock). 0: since the call of snap().
	 */
	uint64_t stop_ns;
	uint64_t stood_ns; /* see UNI_SNAP_BRIEF */
	/*
	 * Number of known vCPUs beyond nr_vcpus(): no snap() reads or holds them. While there are
	 * any, code is not patched.
	 */
	uint32_t nr_left_off;
};

/* All backends of this build, in order of preference; ends with NULL. */
extern const struct uni_target_ops *const uni_target_backends[];
const struct uni_target_ops *uni_target_backend(const char *scheme);
const char *uni_target_units(const char *spec); /* what it has in place of vCPUs: "threads" */

#define UNI_GUEST_NAME_MAX 128

/* The name of a guest, else its image's name without folder and .elf; "" if it has neither. */
void uni_guest_name(const struct uni_target_info *info, char ret[UNI_GUEST_NAME_MAX]);

/* A guest on this host, and how to reach it. */
struct uni_found {
	struct uni_target_info info;
	char spec[512]; /* "kvm:pid=12", "" if no backend of this build reaches it */
	char way[16];	/* doctor's name for the way: "kvm-bpf", "kvm", "gdb"; "" none */
	char why[1024]; /* why this way; or why there is none, by each backend that claims it */
};

/*
 * Finds every visible guest, each with the first backend in order of preference that claims it and
 * works on this host. One that ends meanwhile is left out. The caller frees *ret with free().
 */
int uni_target_discover(struct uni_found **ret, size_t *nr_ret, struct uni_err *err);
/* Only those that are wanted: finding the way to a guest may take a while. */
int uni_target_discover_if(bool (*wanted)(const void *ctx, const struct uni_target_info *info),
	const void *ctx, struct uni_found **ret, size_t *nr_ret, struct uni_err *err);
/* Every visible guest, without the way to it; this takes no longer than a look at each process. */
int uni_target_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);

/* Is it settled, now or within wait_ns? True for a target without that op. */
bool uni_target_settled(struct uni_target *t, uint64_t wait_ns);

/* By the spec's scheme; errors list the known schemes. */
int uni_target_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err);
int uni_target_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err);
/* For a backend's probe(), if attaching does nothing to the guest: attaches, and asks. */
int uni_target_look(const struct uni_target_ops *ops, const struct uni_spec *spec,
	struct uni_target_info *ret, struct uni_err *err);
void uni_target_detach(struct uni_target *t); /* NULL-safe */

#endif
