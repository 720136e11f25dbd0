/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest memory of a gdb: target. The best way is first: from the VMM's process, without requests to
 * the stub. Then physical memory by QEMU's packets; we walk the page tables. Then virtual memory by
 * packets; the stub walks them.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "backend/gdb/gdb.h"
#include "backend/vmm/qmp.h"
#include "backend/vmm/ram.h"

#define GIB	  (1ull << 30)
#define CAUSE_MAX 150

static int packet_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct uni_gdb_target *t = ctx;
	bool held = t->held;
	int rc = uni_gdb_begin(t);

	/* If the hold was ended meanwhile, the memory does not belong to its registers. */
	if (rc == 0 && held && !t->held)
		rc = -UNI_EAGAIN;
	if (rc == 0)
		rc = uni_gdb_stub_read(&t->stub, r->start + offset, buf, len);
	uni_gdb_end(t);
	return rc;
}

static const struct uni_gmem_ops packet_ops = { .read = packet_read };

/*
 * A physical read by packet also reaches devices, and some devices change when they are read. A PC
 * has devices at 640 KiB..1 MiB, and between the end of low memory and 4 GiB.
 */
static size_t pc_regions(uint64_t mem_bytes, struct uni_gmem_region *ret)
{
	uint64_t low = mem_bytes != 0 ? uni_min(mem_bytes, 3 * GIB) : 3 * GIB;

	ret[0] = (struct uni_gmem_region){ .start = 0, .size = 0xa0000 };
	ret[1] = (struct uni_gmem_region){ .start = 0x100000, .size = low - 0x100000 };
	/* Low memory may end earlier. Then more memory is above 4 GiB, up to all of it. */
	ret[2] = (struct uni_gmem_region){ .start = 4 * GIB,
		.size = mem_bytes != 0 ? mem_bytes : 1024 * GIB };
	return mem_bytes != 0 && mem_bytes <= 2 * GIB ? 2 : 3;
}

static int by_packets(struct uni_gdb_target *t, struct uni_err *err)
{
	struct uni_gmem_region r[3] = {
		{ .start = 0, .size = 1ull << 63 },
		{ .start = 1ull << 63, .size = 1ull << 63 },
	};
	bool phys = t->stub.want_phys || t->stub.phys;
	size_t nr = 2;

	if (phys && t->base.arch->pc_hole &&
		(t->info.mem_bytes == 0 || t->info.mem_bytes > 0x100000))
		nr = pc_regions(t->info.mem_bytes, r);
	return uni_gmem_create(
		&packet_ops, t, phys ? UNI_GMEM_PHYSICAL : UNI_GMEM_VIRTUAL, r, nr, &t->gmem, err);
}

static int by_process(struct uni_gdb_target *t, const struct uni_attach_opts *opts, const char *qmp,
	char *note, size_t note_cap, struct uni_err *err)
{
	struct uni_vmm_ram_opts ram = {
		.arch = t->base.arch,
		.text = opts->text,
		.nr_text = opts->nr_text,
		.anywhere = opts->anywhere,
		.over = opts->over,
		.over_ctx = opts->over_ctx,
		.regs = &t->regs0,
		.nr_regs = t->stub.sysregs ? 1 : 0,
	};
	struct uni_vmm_ram_info info = { 0 };
	struct uni_qmp *q = NULL;
	int rc;

	if (t->info.pid == 0)
		return uni_err_set(err, UNI_ENOENT,
			"the stub's process is not known on this host (pid=N names it)");
	if (!t->stub.sysregs)
		return uni_err_set(err, UNI_ENOTSUP,
			"the stub does not give the registers that select page tables");
	if (qmp != NULL) {
		rc = uni_qmp_open(qmp, 0, &q, err);
		if (rc != 0)
			return rc;
		ram.gpa2hva = uni_qmp_gpa2hva;
		ram.gpa2hva_ctx = q;
	} else if (opts->nr_text == 0) {
		return uni_err_set(err, UNI_ENOENT,
			"its RAM can only be found with the guest's image (--image ELF) or "
			"qmp=PATH");
	}
	rc = uni_vmm_ram_attach(t->info.pid, &ram, &t->gmem, &info, err);
	uni_qmp_close(q);
	(void)snprintf(note, note_cap, "%s", info.note);
	return rc;
}

/* Why memory is not read from the process, short enough for a line in a report. */
static const char *short_cause(int rc, const char *msg)
{
	if (rc == -UNI_EMISMATCH)
		return "the image is not where it should be in the VMM's process";
	if (rc == -UNI_EPERM)
		return "the VMM's process may not be read";
	return strlen(msg) <= CAUSE_MAX ? msg : "the VMM's process cannot be read";
}

int uni_gdb_mem_open(struct uni_gdb_target *t, enum uni_gdb_mem how,
	const struct uni_attach_opts *opts, const char *qmp, struct uni_err *err)
{
	struct uni_err why = { 0 };
	char note[160] = "";
	int rc = -UNI_ENOTSUP;

	if (how != UNI_GDB_MEM_PACKETS)
		rc = by_process(t, opts, qmp, note, sizeof(note), &why);
	if (rc != 0 && how == UNI_GDB_MEM_PROCESS)
		return uni_err_set(err, (enum uni_errcode)why.code,
			"gdb: memory cannot be read from the VMM's process: %.500s", why.msg);
	if (rc == 0) {
		(void)snprintf(
			t->info.note, sizeof(t->info.note), "registers by gdb packets; %s", note);
		return 0;
	}
	(void)snprintf(t->info.note, sizeof(t->info.note),
		"registers and %s memory by gdb packets%s%s",
		t->stub.want_phys ? "physical" : "virtual", why.msg[0] != '\0' ? "; " : "",
		why.msg[0] != '\0' ? short_cause(rc, why.msg) : "");
	return by_packets(t, err);
}
