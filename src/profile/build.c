/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

struct builder {
	const struct uni_build_opts *opts;
	struct uni_profile *p;
	struct uni_namer *namer;
	UNI_VEC(uint32_t) frames;
	uint64_t first_ns;
	struct uni_build_read read;
	bool any;
};

static bool push(struct builder *b, uint32_t frame)
{
	return frame != UNI_NODE_NONE && uni_vec_push(&b->frames, frame);
}

static bool push_synthetic(struct builder *b, const char *name)
{
	return push(b, uni_profile_frame_named(b->p, name, strlen(name), UNI_FK_SYNTHETIC));
}

static bool push_address(struct builder *b, uint64_t pc, bool exact)
{
	size_t nr;
	const uint32_t *frames = uni_namer_frames(b->namer, pc, exact, &nr);

	for (size_t i = 0; frames != NULL && i < nr; i++) {
		if (!push(b, frames[i]))
			return false;
	}
	return frames != NULL;
}

static bool wanted(struct builder *b, const struct uni_sample *s)
{
	uint64_t since;

	if (!b->any) {
		b->first_ns = s->t_ns;
		b->any = true;
	}
	since = s->t_ns - b->first_ns;
	if (b->opts->vcpu >= 0 && (uint64_t)b->opts->vcpu != s->vcpu)
		return false;
	return since >= b->opts->from_ns && (b->opts->to_ns == 0 || since < b->opts->to_ns);
}

static bool push_chain(struct builder *b, const struct uni_sample *s)
{
	char vcpu[32];

	b->frames.nr = 0;
	(void)snprintf(vcpu, sizeof(vcpu), "vcpu %" PRIu32, s->vcpu);
	if (b->opts->per_vcpu && !push_synthetic(b, vcpu))
		return false;
	if (s->nr == 0)
		return push_synthetic(b, "[no registers]");
	if (b->opts->mark_truncated && s->stop != UNI_STOP_ROOT &&
		!push_synthetic(b, "[truncated]"))
		return false;
	for (size_t i = s->nr; i-- != 0;) {
		bool exact = i == 0 || (s->flags[i] & UNI_FRAME_EXACT) != 0;

		if (!push_address(b, s->pc[i], exact))
			return false;
	}
	return true;
}

static int add_sample(void *ctx, const struct uni_sample *s)
{
	struct builder *b = ctx;

	b->read.samples++;
	if (!wanted(b, s))
		return 0;
	if (!push_chain(b, s))
		return -UNI_ENOMEM;
	return uni_profile_add(b->p, b->frames.v, b->frames.nr, (double)s->weight, 0.0);
}

static int run(struct builder *b, struct uni_recording *rec, struct uni_err *err)
{
	const struct uni_record_meta *meta = uni_recording_meta(rec);
	struct uni_namer_from from = { .p = b->p,
		.symtab = b->opts->symtab != NULL ? b->opts->symtab : uni_recording_symtab(rec),
		.bias = meta->bias,
		.image = meta->image_path,
		.names_only = meta->aggregate,
		.naming = &b->opts->naming };
	int rc;

	if (meta->unit[0] != '\0')
		uni_profile_set_unit(b->p, meta->unit);
	b->namer = uni_namer_create(&from);
	if (b->namer == NULL)
		return -UNI_ENOMEM;
	rc = uni_recording_each(rec, add_sample, b, &b->read.torn, err);
	if (rc == 0)
		rc = uni_profile_finish(b->p);
	return rc;
}

int uni_profile_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_profile **ret, struct uni_build_read *read_ret, struct uni_err *err)
{
	struct builder b = { .opts = opts, .p = uni_profile_create() };
	int rc = b.p == NULL ? -UNI_ENOMEM : run(&b, rec, err);

	uni_namer_destroy(b.namer);
	uni_vec_free(&b.frames);
	if (rc != 0) {
		uni_profile_destroy(b.p);
		if (rc == -UNI_ENOMEM)
			return uni_err_set(err, UNI_ENOMEM, "out of memory building the profile");
		return rc;
	}
	if (read_ret != NULL)
		*read_ret = b.read;
	*ret = b.p;
	return 0;
}
