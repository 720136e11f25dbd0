/* SPDX-License-Identifier: BSD-2-Clause */
/* gdb: any gdb stub, over a unix socket or TCP. The guardian process owns the connection to it. */
#include "backend/gdb/gdb.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "backend/gdb/switch.h"
#include "backend/listener.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/qmp.h"

#define SWITCH_OFF_NS (10 * UNI_NSEC_PER_SEC)

static int spec_mem(const struct uni_spec *spec, enum uni_gdb_mem *ret, struct uni_err *err)
{
	static const char *const words[] = {
		[UNI_GDB_MEM_AUTO] = "auto",
		[UNI_GDB_MEM_PROCESS] = "process",
		[UNI_GDB_MEM_PACKETS] = "packets",
	};
	const char *v = uni_spec_get(spec, "mem");

	*ret = UNI_GDB_MEM_AUTO;
	for (size_t i = 0; v != NULL && i < uni_array_len(words); i++) {
		if (strcmp(words[i], v) == 0) {
			*ret = (enum uni_gdb_mem)i;
			return 0;
		}
	}
	if (v == NULL)
		return 0;
	return uni_err_set(
		err, UNI_EUSAGE, "target %s: mem= is auto, process or packets", spec->text);
}

static int gdb_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	static const char *const at[] = { "unix", "tcp" };
	struct uni_net_addr addr;
	const char *monitor, *value;
	int rc = uni_gdb_look(spec, &addr, &monitor, ret, err);

	/* Whatever the command line says, this stub is meant. */
	for (size_t i = 0; rc == 0 && i < uni_array_len(at); i++) {
		value = uni_spec_get(spec, at[i]);
		if (value != NULL)
			(void)snprintf(ret->gdb, sizeof(ret->gdb), "%s=%s", at[i], value);
	}
	return rc;
}

/* The guardian resumed the guest because we gave no sign of life: forget our state. */
static void lost_hold(struct uni_gdb_target *t)
{
	if (t->stub.state != UNI_GDB_HELD)
		return;
	t->held = false;
	uni_gdb_link_reset(&t->stub.link);
	t->stub.state = UNI_GDB_RUNNING;
	t->stub.link.acked = true;
}

int uni_gdb_begin(struct uni_gdb_target *t)
{
	bool had_lease = uni_gdb_guardian_has_lease(&t->guardian);

	if (t->stub.state == UNI_GDB_LOST)
		return -UNI_EGONE;
	if (!uni_gdb_guardian_alive(&t->guardian)) {
		/*
		 * Without a guardian, nobody would resume the guest if we died: so it must not be
		 * stopped.
		 */
		(void)uni_gdb_link_idle(&t->stub.link);
		t->orphaned = !t->stub.link.gone;
		uni_gdb_stub_leave(&t->stub);
		return -UNI_EGONE;
	}
	if (!uni_gdb_guardian_lease(&t->guardian, UNI_GDB_LEASE_OP_MS)) {
		lost_hold(t);
		return -UNI_EAGAIN;
	}
	if (t->stub.state == UNI_GDB_HELD && !had_lease)
		lost_hold(t);
	return uni_gdb_stub_idle(&t->stub);
}

void uni_gdb_end(struct uni_gdb_target *t)
{
	const struct uni_gdb_stub *s = &t->stub;

	if (s->state == UNI_GDB_LOST)
		t->held = false;
	uni_gdb_guardian_flags(&t->guardian,
		(s->qemu ? UNI_GDB_F_QEMU : 0u) | (s->phys != s->phys_was ? UNI_GDB_F_PHYS : 0u) |
			(s->state == UNI_GDB_PAUSED ? UNI_GDB_F_PAUSED : 0u) |
			(s->silent ? UNI_GDB_F_SILENT : 0u) |
			(s->state == UNI_GDB_LOST ? UNI_GDB_F_FINISHED : 0u));
	/* A guest with breakpoints may stand at any time. */
	if (s->state == UNI_GDB_HELD || uni_gdb_breaks_any(s->breaks))
		(void)uni_gdb_guardian_lease(&t->guardian, UNI_GDB_LEASE_HOLD_MS);
	else
		uni_gdb_guardian_unlease(&t->guardian);
}

static void gdb_detach(struct uni_target *base)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;

	/*
	 * If the guardian is at work, the rest cannot be done now; the guardian does it at our end.
	 */
	if (t->stub.silent && t->stub.state != UNI_GDB_LOST)
		(void)uni_gdb_stub_listen(&t->stub, 0);
	/* A stub that is still silent is left to the guardian, which has the time to wait. */
	if (t->guardian.shared != NULL && t->stub.silent && t->stub.state != UNI_GDB_LOST)
		uni_gdb_end(t);
	else if (t->guardian.shared != NULL &&
		 uni_gdb_guardian_lease(&t->guardian, UNI_GDB_LEASE_OP_MS)) {
		uni_gdb_stub_leave(&t->stub);
		uni_gdb_guardian_flags(&t->guardian, UNI_GDB_F_FINISHED);
	}
	uni_gdb_link_close(&t->stub.link);
	t->stub.breaks = NULL;
	if (t->monitor != NULL && !uni_gdb_guardian_alive(&t->guardian))
		uni_gdb_switch_off(t->monitor, uni_now_ns() + SWITCH_OFF_NS);
	if (t->spare_fd >= 0)
		(void)close(t->spare_fd);
	uni_gdb_guardian_end(&t->guardian);
	uni_gmem_destroy(t->gmem);
	free(t->monitor);
	free(t->regs);
	free(t);
}

/* monitor: the path of the monitor that is asked for a stub, or NULL. */
static int shake_hands(struct uni_gdb_target *t, const struct uni_net_addr *addr,
	const char *monitor, struct uni_gdb_guardian *kept, const struct uni_arch *arch,
	bool want_phys, struct uni_err *err)
{
	int fd, rc = kept != NULL ? uni_gdb_guardian_again(&t->guardian, kept, &fd, err)
				  : uni_gdb_guardian_start(&t->guardian, addr, monitor, &fd, err);

	if (rc != 0)
		return rc;
	if (monitor != NULL) {
		t->monitor = strdup(monitor);
		t->spare_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	(void)uni_gdb_guardian_lease(&t->guardian, UNI_GDB_LEASE_OP_MS);
	if (t->info.pid == 0 && monitor == NULL && !uni_privilege_is_dropped())
		t->info.pid = uni_gdb_peer_pid(fd);
	if (atomic_load(&t->guardian.shared->told))
		rc = uni_gdb_stub_open_told(&t->stub, fd, arch, want_phys,
			atomic_load(&t->guardian.shared->ran), &t->regs0, err);
	else
		rc = uni_gdb_stub_open(&t->stub, fd, arch, want_phys, &t->regs0, err);
	t->stub.breaks = &t->guardian.shared->breaks;
	uni_gdb_end(t);
	if (rc != 0)
		return rc;
	t->base.arch = t->stub.arch;
	t->regs = calloc((size_t)t->stub.nr_threads, sizeof(*t->regs));
	return t->regs != NULL ? 0 : uni_err_set(err, UNI_ENOMEM, "gdb: out of memory");
}

/* Its process is on another host, or another one passes packets on: then the stub says it. */
static void know_vmm(struct uni_gdb_target *t)
{
	struct uni_target_info *info = &t->info;

	if (!t->stub.qemu || info->accel[0] != '\0')
		return;
	(void)snprintf(info->vmm, sizeof(info->vmm), "qemu");
	(void)snprintf(info->accel, sizeof(info->accel), "%s", t->stub.accel);
}

static int open_target(struct uni_gdb_target *t, const struct uni_spec *spec,
	const struct uni_attach_opts *opts, struct uni_err *err)
{
	const char *qmp = uni_spec_get(spec, "qmp"), *monitor;
	struct uni_net_addr addr;
	enum uni_gdb_mem how;
	bool known;
	int rc = uni_gdb_look(spec, &addr, &monitor, &t->info, err);

	if (rc == 0)
		rc = spec_mem(spec, &how, err);
	known = t->info.pid != 0;
	if (rc == 0)
		rc = shake_hands(t, &addr, monitor, uni_gdb_kept(spec), opts->arch,
			how != UNI_GDB_MEM_PROCESS, err);
	if (rc != 0)
		return rc;
	if (!known && t->info.pid != 0)
		(void)uni_vmm_describe(t->info.pid, &t->info);
	know_vmm(t);
	t->info.nr_vcpus = (uint32_t)t->stub.nr_threads;
	t->base.nr_left_off = t->stub.nr_left_off;
	return uni_gdb_mem_open(t, how, opts, qmp != NULL ? qmp : opts->qmp, err);
}

extern const struct uni_target_ops uni_target_gdb;

static int gdb_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	struct uni_gdb_target *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return uni_err_set(err, UNI_ENOMEM, "gdb: out of memory");
	t->base.ops = &uni_target_gdb;
	t->guardian.sock = -1;
	t->stub.link.fd = -1;
	t->spare_fd = -1;
	t->stub.state = UNI_GDB_LOST;
	rc = open_target(t, spec, opts, err);
	if (rc != 0)
		gdb_detach(&t->base);
	else
		*ret = &t->base;
	return rc;
}

static unsigned gdb_caps(struct uni_target *base)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;

	return UNI_CAP_HOLD | UNI_CAP_WHOLE_STOP | UNI_CAP_WRITE_TEXT |
	       (t->stub.sysregs ? UNI_CAP_SYSREGS : 0u);
}

static int gdb_nr_vcpus(struct uni_target *base)
{
	return ((struct uni_gdb_target *)base)->stub.nr_threads;
}

static int snap_now(struct uni_gdb_target *t, const struct uni_vcpuset *set, bool hold)
{
	int rc = uni_gdb_begin(t);

	if (rc == 0)
		rc = uni_gdb_stub_snap(&t->stub, set, t->regs);
	if (rc != 0)
		t->held = false;
	else
		t->held = t->held || hold;
	/* Reading the registers does not end a hold that is in effect. */
	if (rc == 0 && !t->held)
		rc = uni_gdb_stub_resume(&t->stub);
	uni_gdb_end(t);
	return rc;
}

static int gdb_snap(struct uni_target *base, const struct uni_vcpuset *set, struct uni_regs *ret,
	unsigned flags)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	size_t n = 0;
	int rc;

	if (!uni_vcpuset_fits(set, (uint32_t)t->stub.nr_threads))
		return -UNI_EINVAL;
	rc = snap_now(t, set, (flags & UNI_SNAP_HOLD) != 0);
	if (rc != 0)
		return rc;
	for (int i = 0; i < t->stub.nr_threads; i++) {
		if (uni_vcpuset_has(set, (uint32_t)i))
			ret[i] = t->regs[n++];
	}
	return 0;
}

static int gdb_release(struct uni_target *base)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	int rc;

	if (!t->held)
		return 0;
	t->held = false;
	if (t->stub.state != UNI_GDB_HELD)
		return 0; /* paused by somebody else, who will resume it */
	/*
	 * The guest waits: do only what is needed. A dead guardian is noticed before the next stop.
	 */
	if (!uni_gdb_guardian_has_lease(&t->guardian) ||
		!uni_gdb_guardian_lease(&t->guardian, UNI_GDB_LEASE_OP_MS)) {
		lost_hold(t);
		return -UNI_EAGAIN;
	}
	rc = uni_gdb_stub_resume(&t->stub);
	uni_gdb_end(t);
	return rc;
}

static struct uni_gmem *gdb_gmem(struct uni_target *base)
{
	return ((struct uni_gdb_target *)base)->gmem;
}

static void gdb_info(struct uni_target *base, struct uni_target_info *ret)
{
	*ret = ((struct uni_gdb_target *)base)->info;
}

static bool gdb_alive(struct uni_target *base)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	int rc = uni_gdb_begin(t);

	uni_gdb_end(t);
	return rc == 0 || rc == -UNI_EAGAIN;
}

/* A stub that has not answered yet may still stop the guest, for a sample that is long over. */
static bool gdb_settled(struct uni_target *base)
{
	const struct uni_gdb_stub *s = &((struct uni_gdb_target *)base)->stub;

	if (s->silent)
		(void)gdb_alive(base); /* it may have answered meanwhile */
	return !s->silent || s->state == UNI_GDB_LOST;
}

static int gdb_lost(struct uni_target *base, struct uni_err *err)
{
	if (!((struct uni_gdb_target *)base)->orphaned)
		return 0;
	return uni_err_set(err, UNI_EIO,
		"gdb: the guardian process (uni-guardian) was killed, so the guest must not be "
		"stopped any more: it runs on, and what was collected is kept");
}

/* The CPU time of the vCPU's thread if the VMM has told it; otherwise of the whole process. */
static int gdb_cpu_most(struct uni_target *base, uint32_t vcpu, uint64_t *ret)
{
	const struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	uint32_t tid = vcpu < UNI_VCPU_MAX ? t->stub.host_tid[vcpu] : 0;
	uint64_t waited;

	if (t->info.pid == 0)
		return -UNI_ENOTSUP;
	if (tid != 0 && uni_vmm_thread_times(t->info.pid, (int)tid, ret, &waited))
		return 0;
	*ret = uni_process_cpu_ns(t->info.pid);
	return *ret != 0 ? 0 : -UNI_ENOTSUP;
}

/* Not if its thread runs others, too (TCG by one thread). */
static int gdb_host_times(
	struct uni_target *base, uint32_t vcpu, uint64_t *on_ret, uint64_t *ready_ret)
{
	const struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	uint32_t tid = vcpu < UNI_VCPU_MAX ? t->stub.host_tid[vcpu] : 0;

	if (t->info.pid == 0 || tid == 0)
		return -UNI_ENOTSUP;
	for (int i = 0; i < t->stub.nr_threads; i++) {
		if ((uint32_t)i != vcpu && t->stub.host_tid[i] == tid)
			return -UNI_ENOTSUP;
	}
	return uni_vmm_thread_times(t->info.pid, (int)tid, on_ret, ready_ret) ? 0 : -UNI_ENOTSUP;
}

static bool gdb_claims(const struct uni_target_info *info, char *keys_ret, size_t cap)
{
	bool by_monitor = info->gdb[0] == '\0' && info->qmp[0] != '\0';
	int n = snprintf(keys_ret, cap, "%s%s", by_monitor ? "qmp=" : "",
		by_monitor ? info->qmp : info->gdb);

	/* A comma in a path would have to be doubled; proc.c drops such paths. */
	return (by_monitor || info->gdb[0] != '\0') && n > 0 && (size_t)n < cap;
}

static int gdb_choose(const struct uni_target_info *info, const struct uni_host_way *ways,
	uint32_t nr, char *why_ret, size_t cap)
{
	bool by_monitor = info->gdb[0] == '\0' && info->qmp[0] != '\0';
	struct uni_err err = { 0 };
	int rc = 0;

	if (by_monitor)
		rc = uni_qmp_check(info->qmp, &err);
	else if (strncmp(info->gdb, "unix=", 5) == 0)
		rc = uni_net_check_path(info->gdb + 5, "the VMM's gdb stub", &err);
	if (rc != 0) {
		(void)snprintf(why_ret, cap, "%s", err.msg);
		return -1;
	}
	(void)snprintf(why_ret, cap, "stopped for each sample, by its gdb stub%s%s",
		by_monitor ? ", which its monitor (QMP) switches on meanwhile" : "",
		info->denied ? "; its memory comes by packets, too: the process may not be read"
			     : "");
	return 0;
}

static int gdb_check_wish(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_err *err)
{
	if (!wish->no_pause)
		return 0;
	return uni_err_set(err, UNI_ENOTSUP,
		"--no-pause: a gdb stub gives no data of a running guest (%s)", spec->text);
}

const struct uni_target_ops uni_target_gdb = {
	.scheme = "gdb",
	.reads_cost_time = true,
	.summary = "any gdb stub, such as QEMU's -gdb (KVM and TCG)",
	.keys = "(unix=PATH|tcp=HOST:PORT)[,qmp=PATH]|qmp=PATH[,pid=N][,mem=auto|process|packets]",
	.complete = uni_gdb_complete,
	.claims = gdb_claims,
	.choose = gdb_choose,
	.check_wish = gdb_check_wish,
	.hand_line = uni_gdb_hand_line,
	.probe = gdb_probe,
	.attach = gdb_attach,
	.caps = gdb_caps,
	.nr_vcpus = gdb_nr_vcpus,
	.snap = gdb_snap,
	.release = gdb_release,
	.gmem = gdb_gmem,
	.cpu_most = gdb_cpu_most,
	.host_times = gdb_host_times,
	.info = gdb_info,
	.alive = gdb_alive,
	.settled = gdb_settled,
	.lost = gdb_lost,
	.write_text = uni_gdb_write_text,
	.write_places = 32,
	.breaks = &uni_gdb_break_ops,
	.detach = gdb_detach,
};
