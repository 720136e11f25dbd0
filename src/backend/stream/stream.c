/* SPDX-License-Identifier: BSD-2-Clause */
/* stream: a guest that is reached through a port of its own, wherever that port ends. */
#include "backend/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

static const char keys[] = "unix tcp tty baud grant key";

extern const struct uni_target_ops uni_target_stream;

static struct uni_stream_target *stream_target(struct uni_target *base)
{
	return (struct uni_stream_target *)base;
}

static int read_memory(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct uni_stream_target *t = ctx;

	return uni_link_read(&t->link, r->start + offset, buf, len);
}

static const struct uni_gmem_ops gmem_ops = { .read = read_memory };

static void stream_detach(struct uni_target *base)
{
	struct uni_stream_target *t = stream_target(base);

	if (base->ops->release != NULL)
		(void)base->ops->release(base);
	uni_link_close(&t->link);
	uni_gmem_destroy(t->gmem);
	free(t);
}

static void describe_guest(struct uni_stream_target *t)
{
	const struct uni_stream_about *a = &t->about;
	struct uni_target_info *i = &t->info;
	size_t at = 0;

	(void)uni_text_clean(i->name, sizeof(i->name), a->name, strnlen(a->name, sizeof(a->name)));
	for (uint32_t k = 0; k < uni_min(a->build_id_size, (uint32_t)UNI_STREAM_ID_MAX); k++)
		at += (size_t)snprintf(
			i->build_id + at, sizeof(i->build_id) - at, "%02x", a->build_id[k]);
	i->nr_vcpus = a->nr_cpus;
	i->trace_head = a->head;
	(void)snprintf(i->note, sizeof(i->note), "its own sampler and tracer, through %.200s%s",
		t->link.line.text, t->link.proved ? ", by a key" : "");
}

static int ask_about(
	struct uni_stream_target *t, const struct uni_attach_opts *opts, struct uni_err *err)
{
	struct uni_stream_about *a = &t->about;
	int rc = uni_link_ask_for(&t->link, UNI_STREAM_ABOUT, NULL, 0, a, sizeof(*a));

	if (rc == 0 &&
		(a->nr_cpus == 0 || a->nr_cpus > UNI_VCPU_MAX ||
			!uni_range_ok(a->head, UNI_TRACE_HEAD_OLD) ||
			!uni_range_ok(a->samplers, a->nr_cpus * sizeof(struct uni_trace_sampler))))
		rc = -UNI_EPROTO;
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"%s: the guest's description of itself cannot be "
			"understood: %s",
			t->link.line.text, t->link.gone ? t->link.ended : uni_strerror(rc));
	t->base.arch = uni_arch_by_elf_machine(a->machine);
	if (t->base.arch == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: a guest of a machine that is not known (ELF machine %u)",
			t->link.line.text, a->machine);
	if (opts->arch != NULL && opts->arch != t->base.arch)
		return uni_err_set(err, UNI_EMISMATCH, "the image is %s, the guest is %s",
			opts->arch->name, t->base.arch->name);
	describe_guest(t);
	return 0;
}

int uni_stream_attach_line(const struct uni_line *line, const uint8_t *key,
	const struct uni_attach_opts *opts, struct uni_target **ret, struct uni_err *err)
{
	/* Page 0 belongs to nobody. The guest decides what else may be read. */
	const struct uni_gmem_region all = { .start = 4096, .size = UINT64_MAX - 4096 + 1 };
	struct uni_stream_target *t = calloc(1, sizeof(*t));
	struct uni_line l = *line;
	int rc;

	if (t == NULL) {
		uni_line_close(&l);
		return uni_err_nomem(err);
	}
	t->base.ops = &uni_target_stream;
	rc = uni_link_open(&t->link, &l, key, err);
	if (rc == 0)
		rc = ask_about(t, opts, err);
	if (rc == 0)
		rc = uni_gmem_create(&gmem_ops, t, UNI_GMEM_VIRTUAL, &all, 1, &t->gmem, err);
	if (rc != 0) {
		stream_detach(&t->base);
		return rc;
	}
	uni_gmem_set_granule(t->gmem, UNI_GMEM_GRANULE_MIN);
	*ret = &t->base;
	return 0;
}

static int stream_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	const char *file = uni_spec_get(spec, "key");
	uint8_t key[UNI_STREAM_KEY_BYTES];
	struct uni_line line;
	int rc = uni_spec_check_keys(spec, keys, err);

	if (rc == 0 && file != NULL)
		rc = uni_link_key(file, key, err);
	if (rc == 0)
		rc = uni_line_open(spec, &line, err);
	if (rc != 0)
		return rc;
	return uni_stream_attach_line(&line, file != NULL ? key : NULL, opts, ret, err);
}

/*
 * A port has one reader at a time, and a request would take as long as attaching: uses only the
 * keys.
 */
static int stream_probe(
	const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	(void)ret;
	return uni_spec_check_keys(spec, keys, err);
}

/* The guest has no process, and its memory is not read. */
static int stream_hand_line(const struct uni_spec *spec, struct uni_target_shared *shared,
	int *pid_ret, struct uni_err *err)
{
	int rc = uni_spec_check_keys(spec, keys, err);

	(void)shared;
	*pid_ret = 0;
	return rc == 0 ? uni_line_keep(spec, err) : rc;
}

static unsigned stream_caps(struct uni_target *base)
{
	return UNI_CAP_INSIDE | UNI_CAP_STREAM | UNI_CAP_NO_PAUSE | UNI_CAP_WRITE_TEXT;
}

static int nr_vcpus(struct uni_target *base)
{
	return (int)stream_target(base)->about.nr_cpus;
}

/* A hold freezes the rings: the guest goes on, but records nothing. */
static int freeze_rings(struct uni_stream_target *t, uint32_t want, uint32_t *was_ret)
{
	return uni_link_ask_for(
		&t->link, UNI_STREAM_FREEZE, &want, sizeof(want), was_ret, sizeof(*was_ret));
}

static int stream_release(struct uni_target *base)
{
	struct uni_stream_target *t = stream_target(base);
	uint32_t was;
	bool thaw = t->held && !t->was_frozen;

	t->held = false;
	return thaw ? freeze_rings(t, 0, &was) : 0;
}

static int stream_snap(struct uni_target *base, const struct uni_vcpuset *set, struct uni_regs *ret,
	unsigned flags)
{
	struct uni_stream_target *t = stream_target(base);
	uint32_t was = 0;
	int rc;

	base->stop_ns = 0;
	if ((flags & UNI_SNAP_HOLD) == 0)
		return -UNI_ENOTSUP;
	for (uint32_t i = 0; i < t->about.nr_cpus; i++) {
		if (uni_vcpuset_has(set, i))
			ret[i] = (struct uni_regs){ .state = UNI_VCPU_UNKNOWN };
	}
	if (t->held)
		return 0;
	rc = freeze_rings(t, 1, &was);
	if (rc == 0) {
		t->held = true;
		t->was_frozen = was != 0;
	}
	return rc;
}

static struct uni_gmem *stream_gmem(struct uni_target *base)
{
	return stream_target(base)->gmem;
}

static void stream_info(struct uni_target *base, struct uni_target_info *ret)
{
	const struct uni_stream_target *t = stream_target(base);

	*ret = t->info;
	(void)snprintf(ret->ended, sizeof(ret->ended), "%s", t->link.ended);
}

static bool stream_alive(struct uni_target *base)
{
	return !stream_target(base)->link.gone;
}

static int check_wish(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_err *err)
{
	if (wish->asked != UNI_ASKED_PAUSE || wish->no_samples)
		return 0;
	return uni_err_set(err, UNI_ENOTSUP,
		"--method pause: %s gives no registers: the guest samples itself", spec->text);
}

const struct uni_target_ops uni_target_stream = {
	.scheme = "stream",
	.summary = "a guest that samples and traces itself, through a port of its own",
	.keys = "unix=PATH|tcp=HOST:PORT|tty=DEVICE[,baud=N]|grant=DOMID[:REF][,key=FILE]",
	.probe = stream_probe,
	.hand_line = stream_hand_line,
	.check_wish = check_wish,
	.attach = stream_attach,
	.caps = stream_caps,
	.nr_vcpus = nr_vcpus,
	.snap = stream_snap,
	.release = stream_release,
	.gmem = stream_gmem,
	.info = stream_info,
	.alive = stream_alive,
	.stream_method = "guest",
	.stream_start = uni_stream_samples_start,
	.stream_read = uni_stream_samples_read,
	.stream_stats = uni_stream_samples_stats,
	.stream_stop = uni_stream_samples_stop,
	.tsc = uni_stream_tsc,
	.write_text = uni_stream_write_text,
	.detach = stream_detach,
};
