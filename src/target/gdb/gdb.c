/* SPDX-License-Identifier: BSD-2-Clause */
/* gdb: any gdb stub, over a unix socket or TCP. The guardian process owns the line to it. */
#include "target/gdb/gdb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "target/vmm/proc.h"

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

/* Who listens there, without connecting; everything may stay unknown. */
static int look(const struct uni_spec *spec, const struct uni_gdb_addr *addr,
	struct uni_target_info *ret, struct uni_err *err)
{
	struct uni_gdb_listener l;
	int pid = 0, rc = spec_pid(spec, &pid, err);

	memset(ret, 0, sizeof(*ret));
	if (rc != 0)
		return rc;
	if (pid == 0) {
		uni_gdb_find_listener(addr, &l);
		pid = l.local ? uni_gdb_socket_owner(l.inode) : 0;
	}
	if (pid != 0)
		(void)uni_vmm_describe(pid, ret);
	ret->pid = pid;
	return 0;
}

static int gdb_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	struct uni_gdb_addr addr;
	int rc = uni_spec_check_keys(spec, keys, err);

	if (rc == 0)
		rc = uni_gdb_addr_parse(spec, &addr, err);
	return rc != 0 ? rc : look(spec, &addr, ret, err);
}

static void gdb_detach(struct uni_target *base)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;

	uni_gdb_guardian_end(&t->guardian);
	uni_gmem_destroy(t->gmem);
	free(t);
}

static int open_target(struct uni_gdb_target *t, const struct uni_spec *spec,
	const struct uni_attach_opts *opts, struct uni_err *err)
{
	const char *qmp = uni_spec_get(spec, "qmp");
	struct uni_gdb_addr addr;
	enum uni_gdb_mem how;
	int rc = uni_spec_check_keys(spec, keys, err);

	if (rc == 0)
		rc = spec_mem(spec, &how, err);
	if (rc == 0)
		rc = uni_gdb_addr_parse(spec, &addr, err);
	if (rc == 0)
		rc = look(spec, &addr, &t->info, err);
	if (rc == 0)
		rc = uni_gdb_guardian_start(&t->guardian, &addr, t->base.arch,
			how != UNI_GDB_MEM_PROCESS, &t->hello, err);
	if (rc != 0)
		return rc;
	if (t->info.pid == 0 && t->hello.peer_pid != 0) {
		(void)uni_vmm_describe(t->hello.peer_pid, &t->info);
		t->info.pid = t->hello.peer_pid;
	}
	t->info.nr_vcpus = (uint32_t)t->hello.nr_vcpus;
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
	t->base.arch = opts->arch != NULL ? opts->arch : &uni_arch_x86_64;
	t->guardian.fd = -1;
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

	return UNI_CAP_HOLD | UNI_CAP_WHOLE_STOP | (t->hello.sysregs ? UNI_CAP_SYSREGS : 0u);
}

static int gdb_nr_vcpus(struct uni_target *base)
{
	return ((struct uni_gdb_target *)base)->hello.nr_vcpus;
}

static int gdb_snap(
	struct uni_target *base, uint64_t vcpu_mask, struct uni_regs *ret, unsigned flags)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	uint64_t all = UINT64_MAX >> (UNI_VCPU_MAX - t->hello.nr_vcpus);
	bool hold = (flags & UNI_SNAP_HOLD) != 0;
	size_t n = 0;
	int rc;

	if (vcpu_mask == 0 || (vcpu_mask & ~all) != 0)
		return -UNI_EINVAL;
	rc = uni_gdb_guardian_snap(&t->guardian, vcpu_mask, hold, t->regs);
	if (rc != 0) {
		t->held = false;
		return rc;
	}
	t->held = t->held || hold;
	for (int i = 0; i < t->hello.nr_vcpus; i++) {
		if ((vcpu_mask >> i & 1) != 0)
			ret[i] = t->regs[n++];
	}
	return 0;
}

static int gdb_release(struct uni_target *base)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	struct uni_gdb_pause pause;

	if (!t->held)
		return 0;
	t->held = false;
	return uni_gdb_guardian_release(&t->guardian, &pause);
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
	return uni_gdb_guardian_ping(&((struct uni_gdb_target *)base)->guardian) == 0;
}

static bool gdb_claims(const struct uni_target_info *info, char *keys_ret, size_t cap)
{
	int n = snprintf(keys_ret, cap, "%s", info->gdb);

	/* A comma in a path would have to be doubled; proc.c keeps none. */
	return info->gdb[0] != '\0' && n > 0 && (size_t)n < cap;
}

const struct uni_target_ops uni_target_gdb = {
	.scheme = "gdb",
	.summary = "any gdb stub, such as QEMU's -gdb (KVM and TCG)",
	.keys = "unix=PATH|tcp=HOST:PORT[,qmp=PATH][,pid=N][,mem=auto|process|packets]",
	.claims = gdb_claims,
	.probe = gdb_probe,
	.attach = gdb_attach,
	.caps = gdb_caps,
	.nr_vcpus = gdb_nr_vcpus,
	.snap = gdb_snap,
	.release = gdb_release,
	.gmem = gdb_gmem,
	.info = gdb_info,
	.alive = gdb_alive,
	.detach = gdb_detach,
};
