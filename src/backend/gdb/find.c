/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a stub and its VMM, for a process with rights; and keeps a way to them for one without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/privilege.h"
#include "backend/gdb/gdb.h"
#include "backend/listener.h"
#include "backend/shared.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/qmp.h"

static const char keys[] = "unix tcp pid qmp mem";

static int spec_pid(const struct uni_spec *spec, int *ret, struct uni_err *err)
{
	uint64_t pid;
	int rc = uni_spec_get_u64(spec, "pid", &pid, err);

	if (rc == -UNI_ENOENT)
		return 0;
	if (rc == 0 && (pid == 0 || pid > INT32_MAX))
		rc = uni_err_set(err, UNI_EUSAGE, "target %s: no such pid", spec->text);
	if (rc == 0)
		*ret = (int)pid;
	return rc;
}

/* Finds the stub's address; or *monitor_ret is the path of the monitor that can switch one on. */
static int find_stub(const struct uni_spec *spec, struct uni_net_addr *ret,
	const char **monitor_ret, struct uni_err *err)
{
	const char *qmp = uni_spec_get(spec, "qmp");

	*monitor_ret = NULL;
	if (qmp == NULL || uni_spec_get(spec, "unix") != NULL || uni_spec_get(spec, "tcp") != NULL)
		return uni_net_parse(spec, ret, err);
	*monitor_ret = qmp;
	if (qmp[0] != '/' && strchr(qmp, ':') != NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: uniscope needs a monitor on a unix socket "
			"(-qmp unix:PATH,server=on,wait=off); or type `gdbserver "
			"tcp:127.0.0.1:1234` at this monitor, and take gdb:tcp=127.0.0.1:1234",
			spec->text);
	return uni_net_unix(spec, qmp, ret, err);
}

/* Finds the process that listens there, without connecting; all of it may stay unknown. */
static int look_at_listener(const struct uni_spec *spec, const struct uni_net_addr *addr,
	struct uni_target_info *ret, struct uni_err *err)
{
	struct uni_net_listener l = { 0 };
	int pid = 0, rc = spec_pid(spec, &pid, err);

	memset(ret, 0, sizeof(*ret));
	if (rc != 0)
		return rc;
	if (pid == 0) {
		uni_net_find_listener(addr, &l);
		pid = l.local ? uni_net_socket_owner(l.inode) : 0;
	}
	if (pid != 0)
		(void)uni_vmm_describe(pid, ret);
	ret->pid = pid;
	if (pid == 0 && uni_gdb_missing(addr)) {
		ret->absent = true;
		(void)snprintf(ret->note, sizeof(ret->note), "there is no %.200s", addr->text);
	} else if (pid == 0 && l.local)
		(void)snprintf(ret->note, sizeof(ret->note),
			"this user may not look at the process behind it");
	else if (pid == 0 && addr->nr != 0 && addr->at[0].sa.ss_family == AF_UNIX)
		/* One of another network namespace may. */
		(void)snprintf(ret->note, sizeof(ret->note),
			"no process that can be seen listens at %.200s", addr->text);
	return 0;
}

#define ASK_MS 400 /* a monitor that is free answers at once */

/*
 * The command line does not show a stub that somebody has switched on by the monitor's command
 * gdbserver. A QEMU that has one listens there. Only such a QEMU is asked: while we are connected,
 * nobody else can use the monitor. The monitor has to be its own: a command line may name any.
 */
void uni_gdb_complete(struct uni_target_info *info)
{
	struct uni_net_listener l;
	struct uni_err ignored = { 0 };
	struct uni_qmp *q = NULL;
	char at[sizeof(info->gdb)];

	if (info->gdb[0] != '\0' || info->qmp[0] == '\0' || info->stopped)
		return;
	uni_net_find_unix(info->qmp, &l);
	if (l.has_client || !uni_net_listens_beside(info->pid, l.inode) ||
		uni_net_check_path(info->qmp, "the VMM's monitor", &ignored) != 0 ||
		uni_qmp_open(info->qmp, ASK_MS, &q, &ignored) != 0)
		return;
	if (uni_qmp_gdb_keys(q, at, sizeof(at)) == 0) {
		if (strncmp(at, "unix=", 5) == 0)
			uni_vmm_resolve_socket(info->pid, at + 5, sizeof(at) - 5);
		memcpy(info->gdb, at, sizeof(at));
	}
	uni_qmp_close(q);
}

/* A guest as it was found before the rights went, and the way to its stub. */
struct kept {
	struct uni_gdb_guardian guardian;
	char *spec;
	int pid;
	char note[sizeof(((struct uni_target_info *)NULL)->note)]; /* why no process is known */
	struct kept *next;
};
static struct kept *all_kept;

static struct kept *find_kept(const struct uni_spec *spec)
{
	struct kept *k = all_kept;

	while (k != NULL && strcmp(k->spec, spec->text) != 0)
		k = k->next;
	return k;
}

struct uni_gdb_guardian *uni_gdb_kept(const struct uni_spec *spec)
{
	struct kept *k = find_kept(spec);

	return k != NULL ? &k->guardian : NULL;
}

/* A process that gave up its rights has found out before which process it may look at. */
int uni_gdb_look(const struct uni_spec *spec, struct uni_net_addr *addr_ret,
	const char **monitor_ret, struct uni_target_info *ret, struct uni_err *err)
{
	int rc = uni_spec_check_keys(spec, keys, err);

	if (rc == 0 && uni_privilege_is_dropped()) {
		const struct kept *k = find_kept(spec);

		memset(ret, 0, sizeof(*ret));
		*monitor_ret = NULL;
		if (k != NULL) {
			ret->pid = k->pid;
			memcpy(ret->note, k->note, sizeof(k->note));
		}
		if (ret->pid != 0)
			(void)uni_vmm_describe(ret->pid, ret);
		return 0;
	}
	if (rc == 0)
		rc = find_stub(spec, addr_ret, monitor_ret, err);
	return rc != 0 ? rc : look_at_listener(spec, addr_ret, ret, err);
}

static void free_one(struct kept *k)
{
	if (k != NULL)
		free(k->spec);
	free(k);
}

static void free_kept(void *unused)
{
	(void)unused;
	while (all_kept != NULL) {
		struct kept *k = all_kept;

		all_kept = k->next;
		uni_gdb_guardian_end(&k->guardian);
		free_one(k);
	}
}

static int keep_line(const struct uni_spec *spec, struct kept *k, struct uni_err *err)
{
	_cleanup_free_ struct uni_net_addr *addr = calloc(1, sizeof(*addr));
	_cleanup_free_ struct uni_target_info *info = calloc(1, sizeof(*info));
	const char *monitor = NULL;
	int rc = k->spec == NULL || addr == NULL || info == NULL
			 ? uni_err_nomem(err)
			 : uni_gdb_look(spec, addr, &monitor, info, err);

	if (rc != 0)
		return rc;
	if (info->absent || uni_spec_get(spec, "qmp") != NULL ||
		(info->note[0] != '\0' && !uni_privilege_has()))
		return uni_err_set(
			err, UNI_ENOTSUP, "%s is not reached without a monitor", spec->text);
	k->pid = info->pid;
	memcpy(k->note, info->note, sizeof(info->note));
	return uni_gdb_guardian_keep(&k->guardian, addr, err);
}

/* One that a monitor switches on is switched off by this process, if its guardian is killed. */
int uni_gdb_hand_line(const struct uni_spec *spec, struct uni_target_shared *shared, int *pid_ret,
	struct uni_err *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	int rc;

	if (k == NULL)
		return uni_err_nomem(err);
	k->spec = strdup(spec->text);
	rc = keep_line(spec, k, err);
	if (rc != 0) {
		free_one(k);
		return rc;
	}
	*pid_ret = k->pid;
	k->next = all_kept;
	all_kept = k;
	shared->gdb = k;
	shared->gdb_free = free_kept;
	return 0;
}
