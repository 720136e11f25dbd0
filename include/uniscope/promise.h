/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads and promises: what a guest's scheduler and promise library tell the tracer, so that the
 * host can say who waits for whom. A thread and the promise of its result share one id: any number
 * but UNI_PROMISE_NOBODY. Creating an id again makes another promise.
 *
 * Each call is a record of a few words in this CPU's ring, and one test of a variable while it is
 * off. Safe anywhere, interrupts included. `self` is the thread that runs, UNI_PROMISE_NOBODY for
 * the idle loop.
 *
 * Kinds up to 13 and types up to 17 have the numbers of MirageOS' trace (mirage-profile). */
#ifndef UNISCOPE_PROMISE_H
#define UNISCOPE_PROMISE_H

#include <stdint.h>
#include "uniscope/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UNI_PROMISE_NOBODY 0xffffffffffffffffULL

/* Class of an extended record: UNI_TRACE_CLASS_USER + kind. Words, 64 bits each, in this order:
 * thread, other or value, text; types and reasons have a word of their own. A text is at most
 * UNI_PROMISE_TEXT bytes, NUL-padded so that the record's last word has an upper half of 0. A
 * record without text or type ends in a word of 0. READ, TRY_READ and NOTIFY of a lock end in
 * UNI_PROMISE_LOCK instead. */
enum uni_promise_event_kind {
	UNI_PROMISE_CREATE = 0,	     /* self, new one, type */
	UNI_PROMISE_READ = 1,	     /* self, whose value it took */
	UNI_PROMISE_RESOLVE = 2,     /* self, which got its value */
	UNI_PROMISE_FAIL = 3,	     /* self, which failed, why */
	UNI_PROMISE_BECOME = 4,	     /* the one that becomes another, that other one */
	UNI_PROMISE_LABEL = 5,	     /* which, its name */
	UNI_PROMISE_INCREASE = 6,    /* self, by how much, the counter's name */
	UNI_PROMISE_SWITCH = 7,	     /* the thread that runs from now on */
	UNI_PROMISE_GC = 8,	     /* cycles of the time-stamp counter that it took until now */
	UNI_PROMISE_SIGNAL = 9,	     /* the thread that runs from now on, what woke it */
	UNI_PROMISE_TRY_READ = 10,   /* self, whose value is not there: it waits from now on */
	UNI_PROMISE_COUNTER = 11,    /* self, value, the counter's name */
	UNI_PROMISE_READ_LATER = 12, /* who waits, for whom; self runs on */
	UNI_PROMISE_NOTIFY = 13,     /* who is woken (NOBODY: none waited), by which condition */
	/* Written by the host into a recording, of uni_promise_keep()'s table: */
	UNI_PROMISE_OPEN_NOW = 14,	 /* who made it, which one is open now, type */
	UNI_PROMISE_ALL_OPEN = 15,	 /* all were told; or how many changes the table missed */
	UNI_PROMISE_SHOULD_RESOLVE = 16, /* which */
	UNI_PROMISE_HIATUS = 17,	 /* enum uni_promise_why_idle */
	UNI_PROMISE_RESUME = 18,
	/* Written by the host at the end of a recording, of the guest's list of threads: */
	UNI_PROMISE_WAITS_NOW = 19, /* which thread waits, for what, that one's name */
	UNI_PROMISE_ALL_WAIT = 20,  /* all were told, but so many that wait for an unknown thing */
};

enum uni_promise_kind_of {
	UNI_PROMISE_WAIT = 0,
	UNI_PROMISE_TASK = 1,
	UNI_PROMISE_BIND = 2,
	UNI_PROMISE_TRY = 3,
	UNI_PROMISE_CHOOSE = 4,
	UNI_PROMISE_PICK = 5,
	UNI_PROMISE_JOIN = 6,
	UNI_PROMISE_MAP = 7,
	UNI_PROMISE_CONDITION = 8,
	UNI_PROMISE_ON_SUCCESS = 9,
	UNI_PROMISE_ON_FAILURE = 10,
	UNI_PROMISE_ON_TERMINATION = 11,
	UNI_PROMISE_ON_ANY = 12,
	UNI_PROMISE_IGNORE_RESULT = 13,
	UNI_PROMISE_ASYNC = 14,
	UNI_PROMISE_PROMISE = 15,
	UNI_PROMISE_SEMAPHORE = 16,
	UNI_PROMISE_SWITCH_TO = 17,
	UNI_PROMISE_MVAR = 18,
	UNI_PROMISE_THREAD = 19,
	UNI_PROMISE_LOCK = 20, /* it has one owner at a time */
};

enum uni_promise_why_idle { UNI_PROMISE_WAIT_FOR_WORK, UNI_PROMISE_SUSPEND, UNI_PROMISE_HIBERNATE };

#define UNI_PROMISE_TEXT 128

/* The calls below call these while control.promises is set. The host sets it, or the guest, after
 * uni_trace_init(). Do not call them otherwise. */
void uni_promise_word(unsigned kind, uint64_t a);
void uni_promise_two(unsigned kind, uint64_t a, uint64_t b);
void uni_promise_three(unsigned kind, uint64_t a, uint64_t b, uint32_t c);
void uni_promise_text1(unsigned kind, uint64_t a, const char *text);
void uni_promise_text2(unsigned kind, uint64_t a, uint64_t b, const char *text);

/* Keeps a table of open threads and promises in this memory from now on, even while nothing is
 * recorded. A recording that begins after something hangs can then show it. The memory is 64-byte
 * aligned: 32 bytes and 64 for each entry; a power of two of entries is used, at least 16. Each
 * call below then also updates the table. Call it after uni_trace_init(), before the first call
 * below. Returns 0, or -1: too little memory. Needs guest/promise_table.c. */
int uni_promise_keep(void *mem, uint64_t size);

static inline int uni_promise_on(void)
{
	return *(volatile uint32_t *)&uni_trace_head.control.promises != 0;
}

#define UNI_PROMISE_CALL(call)                             \
	do {                                               \
		if (__builtin_expect(uni_promise_on(), 0)) \
			call;                              \
	} while (0)

static inline void uni_promise_create(uint64_t self, uint64_t made, enum uni_promise_kind_of type)
{
	UNI_PROMISE_CALL(uni_promise_three(UNI_PROMISE_CREATE, self, made, type));
}

static inline void uni_promise_read(uint64_t self, uint64_t of)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_READ, self, of));
}

static inline void uni_promise_try_read(uint64_t self, uint64_t of)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_TRY_READ, self, of));
}

static inline void uni_promise_read_later(uint64_t who, uint64_t of)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_READ_LATER, who, of));
}

static inline void uni_promise_resolve(uint64_t self, uint64_t which)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_RESOLVE, self, which));
}

static inline void uni_promise_fail(uint64_t self, uint64_t which, const char *why)
{
	UNI_PROMISE_CALL(uni_promise_text2(UNI_PROMISE_FAIL, self, which, why));
}

static inline void uni_promise_become(uint64_t which, uint64_t other)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_BECOME, which, other));
}

static inline void uni_promise_signal(uint64_t woken, uint64_t by)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_SIGNAL, woken, by));
}

/* A condition is signalled: once for each that it wakes, or with NOBODY if nobody waits. */
static inline void uni_promise_notify(uint64_t woken, uint64_t condition)
{
	UNI_PROMISE_CALL(uni_promise_two(UNI_PROMISE_NOTIFY, woken, condition));
}

static inline void uni_promise_label(uint64_t which, const char *name)
{
	UNI_PROMISE_CALL(uni_promise_text1(UNI_PROMISE_LABEL, which, name));
}

static inline void uni_promise_switch(uint64_t to)
{
	UNI_PROMISE_CALL(uni_promise_word(UNI_PROMISE_SWITCH, to));
}

static inline void uni_promise_counter(uint64_t self, const char *name, int64_t value)
{
	UNI_PROMISE_CALL(uni_promise_text2(UNI_PROMISE_COUNTER, self, (uint64_t)value, name));
}

static inline void uni_promise_increase(uint64_t self, const char *name, int64_t by)
{
	UNI_PROMISE_CALL(uni_promise_text2(UNI_PROMISE_INCREASE, self, (uint64_t)by, name));
}

static inline void uni_promise_should_resolve(uint64_t which)
{
	UNI_PROMISE_CALL(uni_promise_word(UNI_PROMISE_SHOULD_RESOLVE, which));
}

static inline void uni_promise_hiatus(enum uni_promise_why_idle why)
{
	UNI_PROMISE_CALL(uni_promise_word(UNI_PROMISE_HIATUS, why));
}

static inline void uni_promise_resume(void)
{
	UNI_PROMISE_CALL(uni_promise_word(UNI_PROMISE_RESUME, 0));
}

/* A pause (garbage collection) of so many cycles ends now. */
static inline void uni_promise_gc(uint64_t cycles)
{
	UNI_PROMISE_CALL(uni_promise_word(UNI_PROMISE_GC, cycles));
}

/* A lock with an owner: a thread has it from "taken" to "given back". For a lock that its owner may
 * take again, only the first and the last time count. Need not be created: each call says that
 * `lock` is one. Its end, if there is any, is uni_promise_resolve(). */

/* Call it before `self` waits for the lock. */
static inline void uni_promise_lock_wait(uint64_t self, uint64_t lock)
{
	UNI_PROMISE_CALL(uni_promise_three(UNI_PROMISE_TRY_READ, self, lock, UNI_PROMISE_LOCK));
}

/* Call it as soon as `self` has the lock. */
static inline void uni_promise_lock_taken(uint64_t self, uint64_t lock)
{
	UNI_PROMISE_CALL(uni_promise_three(UNI_PROMISE_READ, self, lock, UNI_PROMISE_LOCK));
}

/* Call it before the owner, which runs, gives the lock back. */
static inline void uni_promise_lock_given_back(uint64_t lock)
{
	UNI_PROMISE_CALL(
		uni_promise_three(UNI_PROMISE_NOTIFY, UNI_PROMISE_NOBODY, lock, UNI_PROMISE_LOCK));
}

/* Created and named in one. */
static inline void uni_promise_named(
	uint64_t self, uint64_t made, enum uni_promise_kind_of type, const char *name)
{
	uni_promise_create(self, made, type);
	uni_promise_label(made, name);
}

static inline void uni_promise_named_wait(uint64_t self, uint64_t made, const char *name)
{
	uni_promise_named(self, made, UNI_PROMISE_WAIT, name);
}

static inline void uni_promise_named_task(uint64_t self, uint64_t made, const char *name)
{
	uni_promise_named(self, made, UNI_PROMISE_TASK, name);
}

static inline void uni_promise_named_condition(uint64_t self, uint64_t made, const char *name)
{
	uni_promise_named(self, made, UNI_PROMISE_CONDITION, name);
}

static inline void uni_promise_named_mvar(uint64_t self, uint64_t made, const char *name)
{
	uni_promise_named(self, made, UNI_PROMISE_MVAR, name);
}

static inline void uni_promise_named_semaphore(uint64_t self, uint64_t made, const char *name)
{
	uni_promise_named(self, made, UNI_PROMISE_SEMAPHORE, name);
}

static inline void uni_promise_named_lock(uint64_t self, uint64_t made, const char *name)
{
	uni_promise_named(self, made, UNI_PROMISE_LOCK, name);
}

#ifdef __cplusplus
}
#endif

#endif
