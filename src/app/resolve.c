/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/resolve.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/signals.h"
#include "app/term.h"

#define AGAIN_NS (200 * UNI_NSEC_PER_MSEC)

/* A unikernel that was built as a process is like any other: its user says which it is. */
static int resolve_process(const char *pid, struct uni_spec *ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_target_info *info = calloc(1, sizeof(*info));
	char spec[48];
	int rc;

	if (info == NULL)
		return uni_err_nomem(err);
	(void)snprintf(spec, sizeof(spec), "proc:pid=%.20s", pid);
	rc = uni_spec_parse(spec, ret, err);
	if (rc == 0)
		rc = uni_target_probe(ret, info, err);
	if (rc == 0)
		uni_note("process %s is no VMM that can be seen: taken as %s", pid, spec);
	return rc;
}

/* The only guest with that pid or name; several of one name are an error, not a choice. */
static int resolve_found(const char *target, struct uni_spec *ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_found *found = NULL;
	const struct uni_found *hit = NULL;
	size_t nr = 0;
	uint64_t pid = 0;
	bool by_pid = uni_parse_u64(target, &pid) && pid != 0; /* 0: no process on this host */
	int rc = uni_target_discover(&found, &nr, err);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		char name[UNI_GUEST_NAME_MAX];

		uni_guest_name(&found[i].info, name);
		if (by_pid ? (uint64_t)found[i].info.pid != pid : strcmp(name, target) != 0)
			continue;
		if (hit != NULL)
			return uni_err_set(err, UNI_EUSAGE,
				"%s names several guests: give the target, %s or %s", target,
				hit->spec, found[i].spec);
		hit = &found[i];
	}
	if (hit == NULL && by_pid)
		return resolve_process(target, ret, err);
	if (hit == NULL)
		return uni_err_set(err, UNI_ENOENT,
			"no guest named %s; `uniscope ls` lists the guests, or give a target such "
			"as kvm:pid=4121",
			target);
	if (hit->spec[0] == '\0')
		return uni_err_set(
			err, UNI_ENOTSUP, "guest %s cannot be reached: %s", target, hit->why);
	return uni_spec_parse(hit->spec, ret, err);
}

int uni_guest_pid(const char *name)
{
	_cleanup_free_ struct uni_found *found = NULL;
	struct uni_err ignored = { 0 };
	char other[UNI_GUEST_NAME_MAX], pid[16];
	size_t nr = 0;

	if (uni_target_discover(&found, &nr, &ignored) != 0)
		return 0;
	for (size_t i = 0; i < nr; i++) {
		uni_guest_name(&found[i].info, other);
		(void)snprintf(pid, sizeof(pid), "%d", found[i].info.pid);
		if (strcmp(name, other) == 0 || strcmp(name, pid) == 0 ||
			strcmp(name, found[i].spec) == 0)
			return found[i].info.pid;
	}
	return 0;
}

int uni_guest_resolve(const char *target, struct uni_spec *ret, struct uni_err *err)
{
	if (target[0] == '\0')
		return uni_err_set(err, UNI_EUSAGE,
			"the target is empty: give a guest's name or pid (`uniscope ls`), or a "
			"target such as kvm:pid=4121");
	if (strchr(target, ':') != NULL)
		return uni_spec_parse(target, ret, err);
	return resolve_found(target, ret, err);
}

int uni_guest_await(const char *target, uint64_t wait_ns, struct uni_spec *ret, struct uni_err *err)
{
	const struct timespec nap = uni_ns_timespec(AGAIN_NS);
	uint64_t until_ns = uni_now_ns() + wait_ns;
	int rc = uni_guest_resolve(target, ret, err);

	while (rc == -UNI_ENOENT && uni_now_ns() < until_ns && !atomic_load(uni_signals_stop())) {
		uni_progress("waiting for the guest");
		(void)nanosleep(&nap, NULL);
		*err = (struct uni_err){ 0 };
		rc = uni_guest_resolve(target, ret, err);
	}
	if (wait_ns != 0)
		uni_progress_end();
	return rc;
}
