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

/* The user typed a pid, or a name. */
struct typed {
	const char *text;
	uint64_t pid; /* 0: it is no number */
};

static struct typed typed_of(const char *text)
{
	struct typed t = { .text = text };

	if (!uni_parse_u64(text, &t.pid))
		t.pid = 0; /* no process on this host has it */
	return t;
}

static bool is_meant(const void *ctx, const struct uni_target_info *info)
{
	const struct typed *t = ctx;
	char name[UNI_GUEST_NAME_MAX];

	if (t->pid != 0)
		return info->pid > 0 && (uint64_t)info->pid == t->pid;
	uni_guest_name(info, name);
	return strcmp(name, t->text) == 0;
}

/* The only guest with that pid or name; several of one name are an error, not a choice. */
static int resolve_found(const char *target, struct uni_spec *ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_found *found = NULL;
	const struct typed typed = typed_of(target);
	size_t nr = 0;
	int rc = uni_target_discover_if(is_meant, &typed, &found, &nr, err);

	if (rc != 0)
		return rc;
	if (nr > 1)
		return uni_err_set(err, UNI_EUSAGE,
			"%s names several guests: give the target, %s or %s", target, found[0].spec,
			found[1].spec);
	if (nr == 0 && typed.pid != 0)
		return resolve_process(target, ret, err);
	if (nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"no guest named %s; `uniscope ls` lists the guests, or give a target such "
			"as kvm:pid=4121",
			target);
	if (found[0].spec[0] == '\0')
		return uni_err_set(
			err, UNI_ENOTSUP, "guest %s cannot be reached: %s", target, found[0].why);
	return uni_spec_parse(found[0].spec, ret, err);
}

/* Does `ls` show it as this target? */
static bool is_target(const struct uni_target_info *info, const char *target)
{
	char keys[300], spec[512];

	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		const struct uni_target_ops *ops = uni_target_backends[i];

		if (ops->claims == NULL || !ops->claims(info, keys, sizeof(keys)))
			continue;
		(void)snprintf(spec, sizeof(spec), "%s:%s", ops->scheme, keys);
		if (strcmp(spec, target) == 0)
			return true;
	}
	return false;
}

int uni_guest_pid(const char *name)
{
	_cleanup_free_ struct uni_target_info *info = NULL;
	const struct typed typed = typed_of(name);
	struct uni_err ignored = { 0 };
	size_t nr = 0;

	if (uni_target_list(&info, &nr, &ignored) != 0)
		return 0;
	for (size_t i = 0; i < nr; i++) {
		if (is_meant(&typed, &info[i]) || is_target(&info[i], name))
			return info[i].pid;
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
