/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small client of QEMU's monitor (QMP over a unix socket). The other side is hostile: sizes are
 * limited, every wait has a deadline, text is cleaned.
 */
#ifndef UNI_BACKEND_VMM_QMP_H
#define UNI_BACKEND_VMM_QMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define UNI_QMP_MESSAGE_MAX 262144 /* bytes of one message */

struct uni_qmp; /* opaque */

/* Connects, takes the greeting, and ends negotiation. timeout_ms is for each wait; 0: 10 s. */
int uni_qmp_open(const char *path, unsigned timeout_ms, struct uni_qmp **ret, struct uni_err *err);
void uni_qmp_close(struct uni_qmp *q); /* NULL-safe */

/* Would uni_qmp_open() be let in? Does not connect: a monitor serves one client at a time. */
int uni_qmp_check(const char *path, struct uni_err *err);

/*
 * The HVA of a guest physical address in the VMM. Fits struct uni_vmm_ram_opts: ctx is the struct
 * uni_qmp. Returns 0; -UNI_EFAULT: it is no RAM; -UNI_EGONE, -UNI_ETIMEDOUT, -UNI_EPROTO.
 */
int uni_qmp_gpa2hva(void *ctx, uint64_t gpa, uint64_t *hva_ret);
/* By the page tables of vCPU 0. -UNI_EFAULT: it is not mapped. */
int uni_qmp_gva2gpa(struct uni_qmp *q, uint64_t gva, uint64_t *gpa_ret);

/* Is the guest running? status_ret (cap bytes, may be NULL): "running", "paused", "prelaunch" ...
 */
int uni_qmp_status(struct uni_qmp *q, bool *running_ret, char *status_ret, size_t cap);

/* The guest's name, cleaned; "" if it has none. */
int uni_qmp_name(struct uni_qmp *q, char *ret, size_t cap);

/* An event of the VMM: {"event": "SHUTDOWN", "data": {"reason": "guest-reset"}}. */
struct uni_qmp_event {
	char name[48];
	char reason[48];  /* or "action"; "" none */
	uint64_t wall_ns; /* in the VMM's wall-clock time; 0 unknown */
};

/*
 * Sets the receiver of events, also of those that come before a reply. Without it they are dropped.
 */
void uni_qmp_on_event(
	struct uni_qmp *q, void (*fn)(void *ctx, const struct uni_qmp_event *e), void *ctx);
/* Delivers pending events; does not wait. Returns 0, -UNI_EGONE, -UNI_EPROTO. */
int uni_qmp_poll(struct uni_qmp *q);

/* Lets a guest run that was started with -S. */
int uni_qmp_cont(struct uni_qmp *q);

/*
 * On: switches on a gdb stub that uses fd, one end of a pair; -UNI_EBUSY if the VMM has a stub. The
 * guest is stopped from now on; *runs_ret: it ran before. One of ours whose other end nobody holds
 * is cleaned up first: that uniscope was killed together with its guardian. Off: the stub is gone;
 * if it has stopped the guest, the guest stays stopped.
 */
int uni_qmp_gdb_on(struct uni_qmp *q, int fd, bool *runs_ret, struct uni_err *err);
int uni_qmp_gdb_off(struct uni_qmp *q);
/* The stub that the VMM has already, as uni_qmp_take_gdb(). Returns 0, -UNI_ENOENT, ... */
int uni_qmp_gdb_keys(struct uni_qmp *q, char *ret, size_t cap);

/* The position of an x86 vCPU, from the VMM's `info registers`. */
struct uni_qmp_cpu {
	uint64_t pc; /* linear: includes the base of the code segment */
	bool paging, halted;
	bool interrupts; /* they are enabled */
	uint64_t key;	 /* a hash of all its registers: equal if none has changed */
};

/* Reads a vCPU. -UNI_ENOTSUP: it is not x86, or there is no such vCPU. */
int uni_qmp_cpu(struct uni_qmp *q, uint32_t vcpu, struct uni_qmp_cpu *ret);

/*
 * The kinds of messages, each one line of QMP. This is the parser below the client, for tests and
 * fuzzing.
 */
enum uni_qmp_kind {
	UNI_QMP_GREETING, /* {"QMP": ...} */
	UNI_QMP_RETURN,	  /* {"return": ...} */
	UNI_QMP_ERROR,	  /* {"error": {"desc": ...}} */
	UNI_QMP_EVENT,	  /* {"event": ...} */
	UNI_QMP_OTHER,
};

struct uni_qmp_message {
	enum uni_qmp_kind kind;
	void *json;	/* the whole message (a json_t of jansson), for uni_qmp_message_free() */
	char desc[160]; /* for an error, cleaned */
};

/* Returns 0, or -UNI_EFORMAT: it is not a JSON object. */
int uni_qmp_parse(const void *data, size_t size, struct uni_qmp_message *ret);
void uni_qmp_message_free(struct uni_qmp_message *m);

/* Extract the results of the queries above; 0 or -UNI_EPROTO (addresses also -UNI_EFAULT). */
int uni_qmp_take_gpa2hva(const struct uni_qmp_message *m, uint64_t *hva_ret);
int uni_qmp_take_gva2gpa(const struct uni_qmp_message *m, uint64_t *gpa_ret);
int uni_qmp_take_status(
	const struct uni_qmp_message *m, bool *running_ret, char *status_ret, size_t cap);
int uni_qmp_take_name(const struct uni_qmp_message *m, char *ret, size_t cap);
/* The character device with that name, by the reply to query-chardev. */
enum uni_qmp_chardev {
	UNI_QMP_CHARDEV_NONE,
	UNI_QMP_CHARDEV_USED,
	UNI_QMP_CHARDEV_LEFT, /* it is there, but nobody holds the other end any more */
};
enum uni_qmp_chardev uni_qmp_take_chardev(const struct uni_qmp_message *m, const char *label);
/*
 * The keys of a target for the gdb stub that -gdb or the monitor switched on: "unix=/run/q.sock" (a
 * path as the VMM names it), "tcp=127.0.0.1:1234". False: there is none, or not at a socket.
 */
bool uni_qmp_take_gdb(const struct uni_qmp_message *m, char *ret, size_t cap);
int uni_qmp_take_event(const struct uni_qmp_message *m, struct uni_qmp_event *ret);
int uni_qmp_take_cpu(const struct uni_qmp_message *m, struct uni_qmp_cpu *ret);

#endif
