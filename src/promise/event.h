/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of light threads and promises, from the guest's rings or a trace file of MirageOS. A
 * thread and the promise of its result are one thing here, called promise. It is created, runs,
 * waits for others, and is resolved, fails or becomes another one.
 *
 * Kinds 0 to 13 and their fields are those of MirageOS' trace (mirage-profile, event ids), so that
 * its files convert without loss.
 */
#ifndef UNI_PROMISE_EVENT_H
#define UNI_PROMISE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNI_PROMISE_NOBODY 0xffffffffffffffffULL /* an id: no thread, the idle loop */

enum uni_promise_kind {
	UNI_PE_CREATE = 0,	/* thread made other, of `type` */
	UNI_PE_READ = 1,	/* thread took the value of other, which is resolved */
	UNI_PE_RESOLVE = 2,	/* thread gave other its value */
	UNI_PE_FAIL = 3,	/* thread made other fail, with text */
	UNI_PE_BECOME = 4,	/* thread will be what other will be */
	UNI_PE_LABEL = 5,	/* thread is called text */
	UNI_PE_INCREASE = 6,	/* counter text grew by value, in thread */
	UNI_PE_SWITCH = 7,	/* thread runs from now on */
	UNI_PE_GC = 8,		/* a pause of value ns ended now */
	UNI_PE_SIGNAL = 9,	/* thread runs from now on, for other was resolved or signalled */
	UNI_PE_TRY_READ = 10,	/* thread wanted other's value: not there, it waits */
	UNI_PE_COUNTER = 11,	/* counter text is value now, in thread */
	UNI_PE_READ_LATER = 12, /* thread waits for other, while another one runs */
	/* other was signalled to thread, or to NOBODY; the running thread runs on */
	UNI_PE_NOTIFY = 13,
	UNI_PE_OPEN_NOW = 14, /* other, of `type`, made by thread, is open at the beginning */
	UNI_PE_ALL_OPEN = 15, /* the last of these; value: number of changes that were missed */
	UNI_PE_SHOULD_RESOLVE = 16, /* thread is meant to end */
	UNI_PE_HIATUS = 17,	    /* nothing runs: value is enum uni_promise_hiatus */
	UNI_PE_RESUME = 18,	    /* the end of that */
	/* thread waits for other, called text, at the end; since when is not told */
	UNI_PE_WAITS_NOW = 19,
	UNI_PE_ALL_WAIT =
		20,	  /* the last of these; value: threads that wait for something unknown */
	UNI_PE_LOST = 21, /* value events are missing before the next one of this CPU */
	UNI_PE_NR
};

enum uni_promise_hiatus { UNI_HIATUS_WORK, UNI_HIATUS_SUSPEND, UNI_HIATUS_HIBERNATE };

#define UNI_PROMISE_TYPE_UNKNOWN   99
#define UNI_PROMISE_TYPE_GONE	   98 /* of OPEN_NOW: a thread that has ended before */
#define UNI_PROMISE_TYPE_WAIT	   0
#define UNI_PROMISE_TYPE_CONDITION 8
#define UNI_PROMISE_TYPE_ASYNC	   14
#define UNI_PROMISE_TYPE_SEMAPHORE 16
#define UNI_PROMISE_TYPE_MVAR	   18
#define UNI_PROMISE_TYPE_THREAD	   19
#define UNI_PROMISE_TYPE_LOCK	   20

struct uni_promise_event {
	uint64_t time; /* ns */
	uint64_t thread, other;
	int64_t value;
	const char *text; /* borrowed, not cleaned; NULL: the kind has none */
	uint32_t text_len;
	uint32_t cpu;
	uint8_t kind;
	uint8_t type; /* of READ, TRY_READ and NOTIFY: UNI_PROMISE_TYPE_LOCK, or 0 */
};

/* A thread takes a lock, waits for it, or gives it back. */
bool uni_promise_names_lock(const struct uni_promise_event *e);
/* Static text; "?" for invalid numbers. */
const char *uni_promise_kind_name(unsigned kind);
const char *uni_promise_type_name(unsigned type);

#endif
