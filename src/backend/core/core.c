/* SPDX-License-Identifier: BSD-2-Clause */
/* A dead guest: one moment, from a core file, or from saved memory and registers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "mem/as.h"
#include "backend/core/file.h"

#define REGS_TEXT_MAX ((size_t)1 << 20)

static const char key_names[] =
	"file raw regs base rip rsp rbp cr0 cr3 cr4 efer pc sp x29 x30 sctlr "
	"tcr ttbr0 ttbr1";
static const char *const file_keys[] = { "file", "sctlr", "tcr", "ttbr0", "ttbr1" };
static const char usage[] =
	"core:file=PATH, or core:raw=PATH,regs=PATH (or rip=,rsp=,rbp=,cr3=; of "
	"aarch64 pc=,sp=,x29=,x30=,ttbr0=,ttbr1=)";

struct core {
	struct uni_target t;
	struct uni_core_src src;
	struct uni_core_file file;
	struct uni_gmem *gmem;
	char name[128];
};

static struct core *core_target(struct uni_target *t)
{
	return (struct core *)t;
}

static int read_memory(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	const struct core *p = ctx;

	/* The region was inside the file when the file was opened. */
	return uni_core_src_read(&p->src, r->cookie + offset, buf, len) == 0 ? 0 : -UNI_EFAULT;
}

static const struct uni_gmem_ops gmem_ops = { .read = read_memory };

static void core_detach(struct uni_target *t)
{
	struct core *p = core_target(t);

	uni_gmem_destroy(p->gmem);
	uni_core_file_deinit(&p->file);
	uni_core_src_close(&p->src);
	free(p);
}

/* Registers that the spec itself has, as the text that a file would have. */
static int spec_regs(const struct uni_spec *spec, char **ret, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;

	uni_strbuf_init(&b);
	for (size_t i = 0; i < spec->nr; i++) {
		const char *key = spec->kv[i].key;
		uint64_t v;
		int rc;

		if (strcmp(key, "raw") == 0 || strcmp(key, "file") == 0 || strcmp(key, "base") == 0)
			continue;
		rc = uni_spec_get_u64(spec, key, &v, err);
		if (rc != 0)
			return rc;
		uni_strbuf_addf(&b, "%s=%" PRIx64 "\n", key, v);
	}
	if (b.len == 0 && uni_spec_get(spec, "file") == NULL)
		return uni_err_set(
			err, UNI_EUSAGE, "target %s: which registers? %s", spec->text, usage);
	*ret = uni_strbuf_detach(&b);
	return *ret != NULL ? 0 : uni_err_set(err, UNI_ENOMEM, "no memory for registers");
}

static int load_file(struct core *p, const struct uni_spec *spec, struct uni_err *err)
{
	_cleanup_free_ char *sysregs = NULL;
	int rc = uni_core_file_elf(&p->file, &p->src, err);

	if (rc == 0)
		rc = spec_regs(spec, &sysregs, err);
	return rc == 0 ? uni_core_file_complete(&p->file, sysregs, err) : rc;
}

static int load_raw(struct core *p, const struct uni_spec *spec, const struct uni_arch *arch,
	struct uni_err *err)
{
	const char *regs_path = uni_spec_get(spec, "regs");
	_cleanup_free_ char *regs = NULL;
	uint64_t base = 0;
	size_t size;
	int rc = uni_spec_get_u64(spec, "base", &base, err);

	if (rc != 0 && rc != -UNI_ENOENT)
		return rc;
	if (regs_path != NULL)
		rc = uni_read_regular(regs_path, REGS_TEXT_MAX, &regs, &size, err);
	else
		rc = spec_regs(spec, &regs, err);
	if (rc != 0)
		return rc;
	return uni_core_file_raw(&p->file, &p->src, arch, base, regs, err);
}

static bool only_for_files(const struct uni_spec *spec)
{
	size_t nr = 0;

	for (size_t i = 0; i < uni_array_len(file_keys); i++)
		nr += uni_spec_get(spec, file_keys[i]) != NULL;
	return nr == spec->nr;
}

static int check_spec(const struct uni_spec *spec, struct uni_err *err)
{
	bool file = uni_spec_get(spec, "file") != NULL, raw = uni_spec_get(spec, "raw") != NULL;
	int rc = uni_spec_check_keys(spec, key_names, err);

	if (rc != 0)
		return rc;
	if (file == raw)
		return uni_err_set(err, UNI_EUSAGE, "target %s: which file? %s", spec->text, usage);
	if (file && !only_for_files(spec))
		return uni_err_set(err, UNI_EUSAGE,
			"target %s: a core file has its registers: file= takes "
			"only those of aarch64 that no dump has, sctlr=, tcr=, "
			"ttbr0= and ttbr1=",
			spec->text);
	if (raw && uni_spec_get(spec, "regs") != NULL &&
		spec->nr > 2 + (size_t)(uni_spec_get(spec, "base") != NULL))
		return uni_err_set(err, UNI_EUSAGE,
			"target %s: registers come from a file or from the keys, not both",
			spec->text);
	return 0;
}

/* Is pc at the instruction with which a vCPU waits? */
static bool is_waiting_at(const struct uni_core_arch *ops, struct uni_as *as, uint64_t pc)
{
	uint8_t before[4];

	return uni_as_read(as, uni_gva_of(pc - ops->wait_bytes), before, ops->wait_bytes) == 0 &&
	       memcmp(before, ops->wait, ops->wait_bytes) == 0;
}

/* A dump does not say which vCPUs slept: they have a wait instruction before their pc. */
static void find_halted(struct core *p)
{
	struct uni_as *as = NULL;

	if (p->file.space != UNI_GMEM_PHYSICAL ||
		uni_as_create(p->gmem, &uni_as_budget_once, &as, NULL) != 0)
		return;
	uni_vec_foreach (r, &p->file.vcpu) {
		struct uni_pt_root root;

		if (r->state != UNI_VCPU_RUNNING || p->file.arch->paging(r, &root) != 0)
			continue;
		uni_as_begin(as, &root);
		if (is_waiting_at(p->file.ops, as, r->pc))
			r->state = UNI_VCPU_HALTED;
	}
	uni_as_destroy(as);
}

static int load_core(struct core *p, const char *path, const struct uni_spec *spec,
	const struct uni_attach_opts *opts, struct uni_err *err)
{
	const struct uni_core_file *f = &p->file;
	bool raw = uni_spec_get(spec, "raw") != NULL;
	int rc = uni_core_src_open(path, &p->src, err);

	if (rc != 0)
		return rc;
	rc = raw ? load_raw(p, spec, opts->arch, err) : load_file(p, spec, err);
	if (rc == 0 && opts->arch != NULL && opts->arch != f->arch)
		rc = uni_err_set(err, UNI_EMISMATCH, "the image is %s, the core is %s",
			opts->arch->name, f->arch->name);
	if (rc == 0)
		rc = uni_gmem_create(
			&gmem_ops, p, f->space, f->region.v, f->region.nr, &p->gmem, err);
	if (rc != 0)
		return uni_err_prefix(err, "%s", path);
	p->t.arch = f->arch;
	if (f->nr_vcpus > f->vcpu.nr)
		p->t.nr_left_off = (uint32_t)uni_min(f->nr_vcpus - f->vcpu.nr, (uint64_t)INT32_MAX);
	find_halted(p);
	return 0;
}

static int core_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	const char *path;
	struct core *p;
	int rc = check_spec(spec, err);

	if (rc != 0)
		return rc;
	path = uni_spec_get(spec, "file");
	if (path == NULL)
		path = uni_spec_get(spec, "raw");
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for a target");
	p->t.ops = &uni_target_core;
	(void)uni_text_clean(p->name, sizeof(p->name), path, strlen(path));
	rc = load_core(p, path, spec, opts, err);
	if (rc != 0) {
		core_detach(&p->t);
		return rc;
	}
	*ret = &p->t;
	return 0;
}

static unsigned core_caps(struct uni_target *t)
{
	unsigned c = UNI_CAP_NO_PAUSE | UNI_CAP_DEAD | UNI_CAP_STILL;

	return core_target(t)->file.space == UNI_GMEM_PHYSICAL ? c | UNI_CAP_SYSREGS : c;
}

static int nr_vcpus(struct uni_target *t)
{
	return (int)core_target(t)->file.vcpu.nr;
}

static int core_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	const struct core *p = core_target(t);

	if (!uni_vcpuset_fits(set, (uint32_t)p->file.vcpu.nr))
		return -UNI_EINVAL;
	for (size_t i = 0; i < p->file.vcpu.nr; i++) {
		if (uni_vcpuset_has(set, (uint32_t)i))
			ret[i] = p->file.vcpu.v[i];
	}
	return 0;
}

static int core_release(struct uni_target *t)
{
	return 0; /* nothing ran before, either */
}

static struct uni_gmem *core_gmem(struct uni_target *t)
{
	return core_target(t)->gmem;
}

static void core_info(struct uni_target *t, struct uni_target_info *ret)
{
	const struct uni_core_file *f = &core_target(t)->file;
	char cut[96] = "", lost[64] = "";

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->name, core_target(t)->name, sizeof(ret->name));
	ret->nr_vcpus = (uint32_t)f->vcpu.nr;
	ret->mem_bytes = f->mem_bytes;
	ret->missing_bytes = f->missing;
	if (f->missing != 0)
		(void)snprintf(cut, sizeof(cut),
			", the file is cut off: %" PRIu64 " KiB of them are missing",
			f->missing >> 10);
	if (f->nr_vcpus > f->vcpu.nr)
		(void)snprintf(lost, sizeof(lost), ", of %" PRIu64 " vCPUs the first %zu",
			f->nr_vcpus, f->vcpu.nr);
	(void)snprintf(ret->note, sizeof(ret->note), "%s, %" PRIu64 " KiB of memory%s%s%s", f->kind,
		f->mem_bytes >> 10, f->inferred ? " by its mappings" : "", cut, lost);
}

static bool core_alive(struct uni_target *t)
{
	return true; /* it can be read again and again */
}

static int core_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	extern const struct uni_target_ops uni_target_core;

	return uni_target_look(&uni_target_core, spec, ret, err);
}

const struct uni_target_ops uni_target_core = {
	.scheme = "core",
	.summary = "a dead guest: a core of QEMU, Xen or a process, or raw memory and registers",
	.keys = "file=PATH[,ttbr1=ADDR...] | raw=PATH,regs=PATH[,base=ADDR]",
	.is_file = true,
	.probe = core_probe,
	.attach = core_attach,
	.caps = core_caps,
	.nr_vcpus = nr_vcpus,
	.snap = core_snap,
	.release = core_release,
	.gmem = core_gmem,
	.info = core_info,
	.alive = core_alive,
	.detach = core_detach,
};
