/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small client of QEMU's monitor (QMP over a unix socket). The other side is hostile: sizes are
 * bounded, every wait has a deadline, text is cleaned.
 */
#ifndef UNI_BACKEND_VMM_QMP_H
#define UNI_BACKEND_VMM_QMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define UNI_QMP_MESSAGE_MAX 262144 /* bytes of one message */

struct uni_qmp; /* opaque */

/* Connects, takes the greeting, leaves negotiation. timeout_ms holds for each wait; 0: 10 s. */
int uni_qmp_open(const char *path, unsigned timeout_ms, struct uni_qmp **ret, struct uni_err *err);
void uni_qmp_close(struct uni_qmp *q); /* NULL-safe */

/*
 * Where the VMM has a guest physical address in its own memory. Fits struct uni_vmm_ram_opts: ctx
 * is the struct uni_qmp. 0, -UNI_EFAULT when it is not RAM, -UNI_EGONE, -UNI_ETIMEDOUT,
 * -UNI_EPROTO.
 */
int uni_qmp_gpa2hva(void *ctx, uint64_t gpa, uint64_t *hva_ret);

/* Is the guest running? status_ret (cap bytes, may be NULL): "running", "paused", "prelaunch" ...
 */
int uni_qmp_status(struct uni_qmp *q, bool *running_ret, char *status_ret, size_t cap);

/* The guest's name, cleaned; "" when it has none. */
int uni_qmp_name(struct uni_qmp *q, char *ret, size_t cap);

/* What happens in the VMM by itself: {"event": "SHUTDOWN", "data": {"reason": "guest-reset"}}. */
struct uni_qmp_event {
	char name[48];
	char reason[48];  /* or "action"; "" none */
	uint64_t wall_ns; /* by the VMM's clock of the day; 0 unknown */
};

/* Who gets the events: also those that come before an answer. Without it they are dropped. */
void uni_qmp_on_event(
	struct uni_qmp *q, void (*fn)(void *ctx, const struct uni_qmp_event *e), void *ctx);
/* Hands over those that are there; does not wait. 0, -UNI_EGONE, -UNI_EPROTO. */
int uni_qmp_poll(struct uni_qmp *q);

/* Lets a guest run that was started with -S. */
int uni_qmp_cont(struct uni_qmp *q);

/*
 * Switches on a gdb stub that talks over fd, one end of a pair; -UNI_EBUSY if the VMM has one. The
 * guest stands from now on; *runs_ret: it ran before. Off: the stub is gone, and what it has
 * stopped stays so.
 */
int uni_qmp_gdb_on(struct uni_qmp *q, int fd, bool *runs_ret, struct uni_err *err);
int uni_qmp_gdb_off(struct uni_qmp *q);

/* Where a vCPU of x86 is, as the VMM's `info registers` tells. */
struct uni_qmp_cpu {
	uint64_t pc; /* linear: with the base of the code segment */
	bool paging, halted;
	bool interrupts; /* it takes them */
	uint64_t key;	 /* of all its registers: the same, if none has changed */
};

/* vCPU 0. -UNI_ENOTSUP: not of x86. */
int uni_qmp_cpu(struct uni_qmp *q, struct uni_qmp_cpu *ret);

/* What kind of message one line of QMP is: the parser below the client, for tests and fuzzing. */
enum uni_qmp_kind {
	UNI_QMP_GREETING, /* {"QMP": ...} */
	UNI_QMP_RETURN,	  /* {"return": ...} */
	UNI_QMP_ERROR,	  /* {"error": {"desc": ...}} */
	UNI_QMP_EVENT,	  /* {"event": ...} */
	UNI_QMP_OTHER,
};

struct uni_qmp_message {
	enum uni_qmp_kind kind;
	void *json;	/* whole message (a json_t of jansson), for uni_qmp_message_free() */
	char desc[160]; /* of an error, cleaned */
};

/* 0, or -UNI_EFORMAT when it is not a JSON object. */
int uni_qmp_parse(const void *data, size_t size, struct uni_qmp_message *ret);
void uni_qmp_message_free(struct uni_qmp_message *m);

/* Extractors of the queries above; 0 or -UNI_EPROTO (gpa2hva also -UNI_EFAULT). */
int uni_qmp_take_gpa2hva(const struct uni_qmp_message *m, uint64_t *hva_ret);
int uni_qmp_take_status(
	const struct uni_qmp_message *m, bool *running_ret, char *status_ret, size_t cap);
int uni_qmp_take_name(const struct uni_qmp_message *m, char *ret, size_t cap);
/* Has the VMM a character device of that name, says the answer to query-chardev? */
bool uni_qmp_has_chardev(const struct uni_qmp_message *m, const char *label);
int uni_qmp_take_event(const struct uni_qmp_message *m, struct uni_qmp_event *ret);
int uni_qmp_take_cpu(const struct uni_qmp_message *m, struct uni_qmp_cpu *ret);

#endif
