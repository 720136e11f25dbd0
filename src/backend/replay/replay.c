/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest from a file: nothing runs, but each request for registers shows a later moment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/replay/file.h"

#define FILE_MAX ((size_t)1 << 30)

struct replay {
	struct uni_target t;
	struct uni_replay_file file;
	char *data; /* of the file, owned */
	char name[128];
	struct uni_gmem *gmem;
	size_t cur;	  /* snapshot whose memory is served */
	size_t next;	  /* snapshot of the next replay_snap() */
	bool once, again; /* the moments, as the target's key says */
	bool ended;
};

static struct replay *replay_target(struct uni_target *t)
{
	return (struct replay *)t;
}

static int read_memory(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	const struct replay *p = ctx;

	return uni_replay_file_read(&p->file, p->cur, r->start + offset, buf, len);
}

static const struct uni_gmem_ops gmem_ops = { .read = read_memory };

static void replay_detach(struct uni_target *t)
{
	struct replay *p = replay_target(t);

	uni_gmem_destroy(p->gmem);
	uni_replay_file_deinit(&p->file);
	free(p->data);
	free(p);
}

static int load_replay(
	struct replay *p, const char *path, const struct uni_attach_opts *opts, struct uni_err *err)
{
	const struct uni_replay_file *f = &p->file;
	size_t size;
	int rc = uni_read_regular(path, FILE_MAX, &p->data, &size, err);

	if (rc == 0)
		rc = uni_replay_file_init(&p->file, p->data, size, err);
	if (rc == 0 && opts->arch != NULL && opts->arch != f->arch)
		rc = uni_err_set(err, UNI_EMISMATCH, "the image is %s, the replay file is %s",
			opts->arch->name, f->arch->name);
	if (rc == 0)
		rc = uni_gmem_create(
			&gmem_ops, p, f->space, f->region.v, f->region.nr, &p->gmem, err);
	if (rc != 0)
		return uni_err_prefix(err, "%s", path);
	uni_gmem_set_granule(p->gmem, f->block);
	p->t.arch = f->arch;
	return 0;
}

static int replay_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	const char *path = uni_spec_get(spec, "file");
	struct replay *p;
	uint64_t once = 0;
	int rc = uni_spec_check_keys(spec, "file once", err);

	if (rc != 0)
		return rc;
	if (path == NULL)
		return uni_err_set(
			err, UNI_EUSAGE, "target %s: which file? replay:file=PATH", spec->text);
	rc = uni_spec_get_u64(spec, "once", &once, err);
	if (rc != 0 && rc != -UNI_ENOENT)
		return rc;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for a target");
	p->t.ops = &uni_target_replay;
	p->once = once != 0;
	p->again = rc == 0 && once == 0;
	(void)uni_text_clean(p->name, sizeof(p->name), path, strlen(path));
	rc = load_replay(p, path, opts, err);
	if (rc != 0) {
		replay_detach(&p->t);
		return rc;
	}
	*ret = &p->t;
	return 0;
}

static unsigned replay_caps(struct uni_target *t)
{
	const struct replay *p = replay_target(t);
	unsigned c = UNI_CAP_HOLD | UNI_CAP_NO_PAUSE | UNI_CAP_DEAD;
	struct uni_regs regs;

	uni_replay_file_regs(&p->file, 0, 0, &regs);
	if (regs.sys_valid != 0)
		c |= UNI_CAP_SYSREGS;
	return c;
}

static int nr_vcpus(struct uni_target *t)
{
	return (int)replay_target(t)->file.nr_vcpus;
}

static int replay_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct replay *p = replay_target(t);

	if (p->ended)
		return -UNI_EGONE;
	if (p->next == p->file.snap.nr) {
		p->ended = p->once;
		if (p->ended)
			return -UNI_EGONE;
		p->next = 0;
	}
	p->cur = p->next++;
	for (unsigned i = 0; i < p->file.nr_vcpus; i++) {
		if (uni_vcpuset_has(set, i))
			uni_replay_file_regs(&p->file, p->cur, i, &ret[i]);
	}
	return 0;
}

/* Attaching may have looked at the first moments: these need not have a stack. */
static void replay_begin_run(struct uni_target *t)
{
	struct replay *p = replay_target(t);

	if (p->again || p->once)
		return;
	p->once = true;
	if (p->next == p->file.snap.nr)
		p->next = 0;
}

static int replay_release(struct uni_target *t)
{
	return 0; /* nothing ran before, either */
}

static struct uni_gmem *replay_gmem(struct uni_target *t)
{
	return replay_target(t)->gmem;
}

static void replay_info(struct uni_target *t, struct uni_target_info *ret)
{
	const struct replay *p = replay_target(t);

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->name, p->name, sizeof(ret->name));
	if (p->file.at_blocks) {
		(void)snprintf(ret->vmm, sizeof(ret->vmm), "qemu");
		(void)snprintf(ret->accel, sizeof(ret->accel), "tcg");
	}
	ret->nr_vcpus = p->file.nr_vcpus;
	for (size_t i = 0; i < p->file.region.nr; i++) {
		if (__builtin_add_overflow(
			    ret->mem_bytes, p->file.region.v[i].size, &ret->mem_bytes))
			ret->mem_bytes = 0;
	}
	(void)snprintf(ret->note, sizeof(ret->note), "%zu snapshot%s%s, %zu block%s of %u bytes%s",
		p->file.snap.nr, uni_plural(p->file.snap.nr), p->again ? " again and again" : "",
		p->file.blocks.nr, uni_plural(p->file.blocks.nr), p->file.block,
		p->file.truncated ? ", the file is cut off" : "");
}

static bool replay_alive(struct uni_target *t)
{
	return !replay_target(t)->ended;
}

static int replay_probe(
	const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	extern const struct uni_target_ops uni_target_replay;

	return uni_target_look(&uni_target_replay, spec, ret, err);
}

const struct uni_target_ops uni_target_replay = {
	.scheme = "replay",
	.summary = "registers and memory from a file that record --save-replay made",
	.keys = "file=PATH[,once=0|1]",
	.is_file = true,
	.probe = replay_probe,
	.attach = replay_attach,
	.caps = replay_caps,
	.nr_vcpus = nr_vcpus,
	.snap = replay_snap,
	.begin_run = replay_begin_run,
	.release = replay_release,
	.gmem = replay_gmem,
	.info = replay_info,
	.alive = replay_alive,
	.detach = replay_detach,
};
