/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

struct guest {
	struct uni_namer *namer;
	uint32_t root; /* frame above all its chains; UNI_NODE_NONE */
};

struct builder {
	const struct uni_build_opts *opts;
	struct uni_profile *p;
	struct guest *guest;
	uint32_t nr_guests;
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

static bool push_address(struct builder *b, const struct guest *g, uint64_t pc, bool exact)
{
	size_t nr;
	const uint32_t *frames = uni_namer_frames(g->namer, pc, exact, &nr);

	for (size_t i = 0; frames != NULL && i < nr; i++) {
		if (!push(b, frames[i]))
			return false;
	}
	return frames != NULL;
}

const char *uni_state_frame(unsigned state)
{
	switch (state) {
	case UNI_VCPU_HALTED:
		return "[idle]";
	case UNI_VCPU_KVM:
		return "[kvm]";
	case UNI_VCPU_VMM:
		return "[vmm]";
	case UNI_VCPU_STOLEN:
		return "[stolen]";
	default:
		return NULL;
	}
}

static bool wanted(struct builder *b, const struct uni_sample *s)
{
	uint64_t since;

	if (!b->any) {
		b->first_ns = s->t_ns;
		b->any = true;
	}
	since = s->t_ns - b->first_ns;
	return since >= b->opts->from_ns && (b->opts->to_ns == 0 || since < b->opts->to_ns) &&
	       uni_sample_passes(&b->opts->filter, s);
}

/* What is above the guest's own frames. */
static bool push_roots(struct builder *b, const struct guest *g, const struct uni_sample *s)
{
	char vcpu[32];

	(void)snprintf(vcpu, sizeof(vcpu), "vcpu %" PRIu32, s->vcpu);
	if (g->root != UNI_NODE_NONE && !push(b, g->root))
		return false;
	return !b->opts->per_vcpu || push_synthetic(b, vcpu);
}

static bool push_chain(struct builder *b, const struct uni_sample *s)
{
	struct guest *g = &b->guest[s->guest];
	const char *leaf = uni_state_frame(s->state);

	b->frames.nr = 0;
	if (!push_roots(b, g, s))
		return false;
	if (s->nr == 0)
		return push_synthetic(b, leaf != NULL ? leaf : "[no registers]");
	if (b->opts->mark_truncated && s->stop != UNI_STOP_ROOT &&
		!push_synthetic(b, "[truncated]"))
		return false;
	for (size_t i = s->nr; i-- != 0;) {
		bool exact = i == 0 || (s->flags[i] & UNI_FRAME_EXACT) != 0;

		if (!push_address(b, g, s->pc[i], exact))
			return false;
	}
	return leaf == NULL || push_synthetic(b, leaf);
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

static int begin_guest(struct builder *b, const struct uni_recording *rec, uint32_t number)
{
	struct uni_recorded_guest from = uni_recording_guest(rec, number);
	struct guest *g = &b->guest[number];
	char name[UNI_GUEST_NAME_MAX], clean[UNI_GUEST_NAME_MAX];
	size_t len;

	g->namer = uni_namer_create(&(struct uni_namer_from){
		.p = b->p,
		.symtab = b->opts->symtab != NULL ? b->opts->symtab : from.symtab,
		.bias = from.meta->bias,
		.image = from.meta->image_path,
		.names_only = from.meta->aggregate,
		.naming = &b->opts->naming,
	});
	g->root = UNI_NODE_NONE;
	if (g->namer == NULL)
		return -UNI_ENOMEM;
	if (b->nr_guests == 1 || b->opts->filter.guest >= 0)
		return 0;
	uni_recording_guest_name(rec, number, name);
	len = uni_text_clean(clean, sizeof(clean), name, strlen(name));
	g->root = uni_profile_frame_named(b->p, clean, len, UNI_FK_SYNTHETIC);
	return g->root == UNI_NODE_NONE ? -UNI_ENOMEM : 0;
}

static int run(struct builder *b, struct uni_recording *rec, struct uni_err *err)
{
	const struct uni_record_meta *meta = uni_recording_meta(rec);
	int rc = 0;

	if (meta->unit[0] != '\0')
		uni_profile_set_unit(b->p, meta->unit);
	b->nr_guests = uni_recording_nr_guests(rec);
	b->guest = calloc(b->nr_guests, sizeof(*b->guest));
	if (b->guest == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < b->nr_guests; i++)
		rc = begin_guest(b, rec, i);
	if (rc == 0)
		rc = uni_recording_each(rec, add_sample, b, &b->read.torn, err);
	if (rc == 0)
		rc = uni_profile_finish(b->p);
	return rc;
}

static void builder_deinit(struct builder *b)
{
	for (uint32_t i = 0; b->guest != NULL && i < b->nr_guests; i++)
		uni_namer_destroy(b->guest[i].namer);
	free(b->guest);
	uni_vec_free(&b->frames);
}

int uni_profile_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_profile **ret, struct uni_build_read *read_ret, struct uni_err *err)
{
	struct builder b = { .opts = opts, .p = uni_profile_create() };
	int rc = b.p == NULL ? -UNI_ENOMEM : run(&b, rec, err);

	builder_deinit(&b);
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
