/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Removes the analyzer's macro, to define the function itself. */
#undef uni_err_set

static void flatten_controls(char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
	}
}

int uni_err_set(struct uni_err *err, enum uni_errcode code, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL || err->code != 0)
		return -(int)code;
	err->code = (int)code;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	flatten_controls(err->msg);
	return -(int)code;
}

int uni_err_prefix(struct uni_err *err, const char *fmt, ...)
{
	char head[256], old[sizeof(err->msg)];
	va_list ap;

	if (err == NULL)
		return -UNI_EINVAL;
	va_start(ap, fmt);
	(void)vsnprintf(head, sizeof(head), fmt, ap);
	va_end(ap);
	memcpy(old, err->msg, sizeof(old));
	/* A message that does not fit is cut at its end: the cause at the front stays. */
	(void)snprintf(err->msg, sizeof(err->msg), "%s: %.380s", head, old);
	flatten_controls(err->msg);
	return -err->code;
}

static const char *const names[] = {
	[UNI_OK] = "ok",
	[UNI_EINVAL] = "invalid argument",
	[UNI_ENOMEM] = "out of memory",
	[UNI_EIO] = "input/output error",
	[UNI_ENOENT] = "not found",
	[UNI_EPERM] = "not permitted",
	[UNI_EFAULT] = "guest address not mapped",
	[UNI_ERANGE] = "out of range",
	[UNI_EBUDGET] = "budget exhausted",
	[UNI_EGONE] = "the target is gone",
	[UNI_EBUSY] = "busy",
	[UNI_ETIMEDOUT] = "timed out",
	[UNI_EPROTO] = "protocol error",
	[UNI_EFORMAT] = "malformed input",
	[UNI_ENOTSUP] = "not supported",
	[UNI_EMISMATCH] = "does not match",
	[UNI_EAGAIN] = "try again",
	[UNI_ESTALE] = "stale",
	[UNI_EUSAGE] = "usage error",
};

const char *uni_strerror(int code)
{
	if (code < 0)
		code = -code;
	if (code < 0 || (size_t)code >= sizeof(names) / sizeof(names[0]) || names[code] == NULL)
		return "unknown error";
	return names[code];
}
