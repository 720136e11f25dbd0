/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors. Hot paths return int: 0 or a negative -UNI_E* code. Set-up functions also take a struct
 * uni_err. It is filled once, at the place that knows the cause, with what was tried and what to do
 * next. The caller passes it on unchanged, and main() prints it.
 */
#ifndef UNI_BASE_ERR_H
#define UNI_BASE_ERR_H

enum uni_errcode {
	UNI_OK = 0,
	UNI_EINVAL = 1,	    /* the request makes no sense */
	UNI_ENOMEM = 2,	    /* out of memory */
	UNI_EIO = 3,	    /* reading or writing failed */
	UNI_ENOENT = 4,	    /* no such thing */
	UNI_EPERM = 5,	    /* not permitted */
	UNI_EFAULT = 6,	    /* guest address not mapped or not backed by memory */
	UNI_ERANGE = 7,	    /* a range wraps or lies outside */
	UNI_EBUDGET = 8,    /* a per-sample budget is used up */
	UNI_EGONE = 9,	    /* the target ended or went away */
	UNI_EBUSY = 10,	    /* in use by somebody else (another tracer, another client) */
	UNI_ETIMEDOUT = 11, /* no answer in time */
	UNI_EPROTO = 12,    /* the other side broke the protocol */
	UNI_EFORMAT = 13,   /* a file or packet is malformed */
	UNI_ENOTSUP = 14,   /* not possible on this host, target or architecture */
	UNI_EMISMATCH = 15, /* two things that must agree do not (image and guest, say) */
	UNI_EAGAIN = 16,    /* nothing now, try again */
	UNI_ESTALE = 17,    /* a snapshot that may be out of date */
	UNI_EUSAGE = 18,    /* bad command line: exit status 2 */
};

struct uni_err {
	int code;      /* enum uni_errcode, 0 while nothing happened */
	char msg[640]; /* one line, no newline */
};

/*
 * Fills err (may be NULL) unless it already has a cause; removes control bytes from the message.
 * Returns -code, so that a failing path is one line: `return uni_err_set(err, UNI_EIO, ...);`.
 */
int uni_err_set(struct uni_err *err, enum uni_errcode code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__
/* The analyzer does not look into other files, and would suppose that a failure may return 0. */
#define uni_err_set(err, code, ...) ((void)uni_err_set((err), (code), __VA_ARGS__), -(int)(code))
#endif

/* The same for memory that could not be allocated. */
static inline int uni_err_nomem(struct uni_err *err)
{
	return uni_err_set(err, UNI_ENOMEM, "out of memory");
}

/* Puts "context: " in front of the message that is there; returns -err->code. */
int uni_err_prefix(struct uni_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Static text for a code given as UNI_E* or -UNI_E*. Never NULL. */
const char *uni_strerror(int code);

#endif
