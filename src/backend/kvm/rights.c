/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "backend/vmm/fds.h"

/* linux/capability.h */
#define CAP_DAC_OVERRIDE_BIT	1
#define CAP_DAC_READ_SEARCH_BIT 2
#define CAP_SYS_PTRACE_BIT	19

static bool has_cap(uint64_t caps, unsigned bit)
{
	return (caps >> bit & 1) != 0;
}

const char *uni_kvm_rights_advice(uint32_t uid, bool withheld)
{
	return uid != 0 && !withheld
		       ? "run as root"
		       : "this container or service runs without: start it with --cap-add, or "
			 "run uniscope on the host";
}

bool uni_kvm_rights_trace_all(uint64_t caps)
{
	return has_cap(caps, CAP_SYS_PTRACE_BIT);
}

bool uni_kvm_rights_read_all(uint64_t caps)
{
	return has_cap(caps, CAP_SYS_PTRACE_BIT) &&
	       (has_cap(caps, CAP_DAC_OVERRIDE_BIT) || has_cap(caps, CAP_DAC_READ_SEARCH_BIT));
}

static int of_another(const struct uni_kvm_rights *r, struct uni_err *err)
{
	bool trace = uni_kvm_rights_trace_all(r->caps);
	const char *missing = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are";

	if (uni_kvm_rights_read_all(r->caps))
		return uni_err_set(err, UNI_EPERM,
			"not permitted to look into pid %d of uid %u, although "
			"the capabilities are there: a security module or "
			"another user namespace forbids it",
			r->pid, r->theirs);
	if (trace)
		missing = "CAP_DAC_READ_SEARCH is";
	else if (r->files || has_cap(r->caps, CAP_DAC_OVERRIDE_BIT) ||
		 has_cap(r->caps, CAP_DAC_READ_SEARCH_BIT))
		missing = "CAP_SYS_PTRACE is";
	return uni_err_set(err, UNI_EPERM,
		"not permitted to look into pid %d: it belongs to uid %u, this is uid %u, and %s "
		"missing: %s",
		r->pid, r->theirs, r->mine, missing,
		r->mine != 0 && !r->withheld ? "run as that user or as root"
					     : uni_kvm_rights_advice(r->mine, r->withheld));
}

int uni_kvm_rights_judge(const struct uni_kvm_rights *r, struct uni_err *err)
{
	if (r->files && r->trace)
		return 0;
	if (r->files && r->scope == '3')
		return uni_err_set(err, UNI_EPERM,
			"not permitted to read the memory of pid %d: kernel.yama.ptrace_scope is "
			"3, "
			"nobody may trace until the next boot",
			r->pid);
	if (r->mine != r->theirs || uni_kvm_rights_trace_all(r->caps))
		return of_another(r, err);
	if (r->files && r->scope != '\0' && r->scope != '0')
		return uni_err_set(err, UNI_EPERM,
			"not permitted to read the memory of pid %d of this "
			"user: kernel.yama.ptrace_scope is %c and CAP_SYS_PTRACE "
			"is missing: %s, or: sysctl -w kernel.yama.ptrace_scope=0",
			r->pid, r->scope, uni_kvm_rights_advice(r->mine, r->withheld));
	return uni_err_set(err, UNI_EPERM,
		"not permitted to look into pid %d of this user: it has "
		"privileges that this process lacks, or hides itself, and "
		"CAP_SYS_PTRACE is missing: %s",
		r->pid, uni_kvm_rights_advice(r->mine, r->withheld));
}

/*
 * A number in the line "
 * KEY:\t": the nth, 0 is the first.
 */
static bool status_value(const char *text, const char *key, int base, unsigned nth, uint64_t *ret)
{
	const char *s = strstr(text, key);
	char *end;

	if (s == NULL)
		return false;
	s += strlen(key);
	for (unsigned i = 0; i <= nth; i++) {
		errno = 0;
		*ret = strtoull(s, &end, base);
		if (end == s || errno != 0)
			return false;
		s = end;
	}
	return true;
}

static bool read_status(const char *who, char *out, size_t cap)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/status", who);
	return uni_read_small(path, out, cap) > 0;
}

/* A set of capabilities of our own; `otherwise` if the kernel does not tell. */
static uint64_t own_caps(const char *key, uint64_t otherwise)
{
	char text[8192];
	uint64_t caps;

	if (!read_status("self", text, sizeof(text)) || !status_value(text, key, 16, 0, &caps))
		return otherwise;
	return caps;
}

uint64_t uni_kvm_rights_caps(void)
{
	return own_caps("\nCapEff:", 0);
}

bool uni_kvm_rights_no_tracing(void)
{
	return !uni_kvm_rights_trace_all(own_caps("\nCapBnd:", UINT64_MAX));
}

/* Reading a thread's current system call needs the right to attach to the thread. */
static bool may_trace(int pid)
{
	_cleanup_close_ int fd = -1;
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT; /* a kernel without this file: attaching will show it */
	return read(fd, text, sizeof(text)) >= 0 || errno == ESRCH;
}

int uni_kvm_rights_check(int pid, struct uni_err *err)
{
	struct uni_kvm_rights r = { .pid = pid, .mine = geteuid() };
	char text[8192], who[16], scope[8] = "";
	struct uni_vmm_fds fds;
	uint64_t uid = 0;

	r.files = uni_vmm_fds_read(pid, &fds) == 0;
	r.trace = may_trace(pid);
	if (r.files && r.trace)
		return 0;
	(void)snprintf(who, sizeof(who), "%d", pid);
	if (!read_status(who, text, sizeof(text)))
		return uni_err_set(err, UNI_EGONE, "there is no process %d", pid);
	if (status_value(text, "\nUid:", 10, 1, &uid))
		r.theirs = (uint32_t)uid;
	r.caps = uni_kvm_rights_caps();
	r.withheld = uni_kvm_rights_no_tracing();
	if (uni_read_small("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) > 0)
		r.scope = scope[0];
	return uni_kvm_rights_judge(&r, err);
}
