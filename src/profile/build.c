/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "backend/exit.h"
#include "backend/method.h"

struct guest {
	struct uni_namer *namer;
	uint32_t root; /* frame above all its chains; UNI_NODE_NONE */
	bool elsewhere, counted;
	const char *vmm;
	const struct uni_record_thread *thread;
	size_t nr_thread;
};

struct uni_builder {
	const struct uni_build_opts *opts;
	struct uni_profile *p;
	struct guest *guest;
	uint32_t nr_guests;
	UNI_VEC(uint32_t) frames;
	struct uni_build_read read;
};

static bool push_built_frame(struct uni_builder *b, uint32_t frame)
{
	return frame != UNI_NODE_NONE && uni_vec_push(&b->frames, frame);
}

static bool push_synthetic(struct uni_builder *b, const char *name)
{
	return push_built_frame(
		b, uni_profile_frame_named(b->p, name, strlen(name), UNI_FK_SYNTHETIC));
}

static bool push_address(struct uni_builder *b, const struct guest *g, uint64_t pc, unsigned flags)
{
	size_t nr;
	const uint32_t *frames = uni_namer_frames(g->namer, pc, flags, &nr);

	for (size_t i = 0; frames != NULL && i < nr; i++) {
		if (!push_built_frame(b, frames[i]))
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
	case UNI_OFF_CPU_READY:
		return "[ready]";
	case UNI_OFF_CPU_BLOCKED:
		return "[blocked]";
	case UNI_OFF_CPU_SLEEPING:
		return "[sleeping]";
	case UNI_OFF_CPU_WAITING:
		return "[waiting]";
	default:
		return NULL;
	}
}

/* The frames above the guest's own ones. */
static bool push_roots(struct uni_builder *b, const struct guest *g, const struct uni_sample *s)
{
	char vcpu[32] = "[no vcpu]", name[UNI_GUEST_NAME_MAX], thread[UNI_GUEST_NAME_MAX + 8];

	if (!uni_state_is_off_cpu(s->state))
		(void)snprintf(vcpu, sizeof(vcpu), "vcpu %" PRIu32, s->vcpu);
	if (g->root != UNI_NODE_NONE && !push_built_frame(b, g->root))
		return false;
	if (b->opts->per_vcpu && !push_synthetic(b, vcpu))
		return false;
	if (!b->opts->per_thread)
		return true;
	uni_record_thread_name(g->thread, g->nr_thread, s->thread, name);
	(void)snprintf(thread, sizeof(thread), "%s%s", name[0] != '[' ? "thread " : "", name);
	return push_synthetic(b, thread);
}

/* Above chains that are not the image's, so that they do not look like its profile. */
static bool push_elsewhere(struct uni_builder *b, const struct guest *g, const struct uni_sample *s)
{
	if (!g->elsewhere)
		return true;
	for (size_t i = 0; i < s->nr; i++) {
		unsigned flags = s->flags[i] | (i == 0 ? UNI_FRAME_EXACT : 0u);
		size_t nr = 0;
		const uint32_t *frames = uni_namer_frames(g->namer, s->pc[i], flags, &nr);

		if (frames == NULL)
			return false;
		if (nr != 0 && uni_profile_get_frame(b->p, frames[0])->kind != UNI_FK_UNKNOWN)
			return true;
	}
	return push_synthetic(
		b, uni_record_is_firmware(s->pc[0]) ? "[firmware]" : "[not in the image]");
}

/* TCG: a function that was called by a pointer has just returned (unwind/skid.c). */
static bool push_frame(struct uni_builder *b, const struct guest *g, uint64_t pc, unsigned flags)
{
	return uni_frame_is_unknown_callee(pc, flags) ? push_synthetic(b, "[unknown callee]")
						      : push_address(b, g, pc, flags);
}

static bool push_chain(struct uni_builder *b, const struct uni_sample *s)
{
	struct guest *g = &b->guest[s->guest];
	const char *leaf = uni_state_frame(s->state);

	b->frames.nr = 0;
	if (!push_roots(b, g, s))
		return false;
	if (s->nr == 0)
		return push_synthetic(b, leaf != NULL ? leaf : "[no registers]");
	if (!push_elsewhere(b, g, s))
		return false;
	if (b->opts->mark_truncated && s->stop != UNI_STOP_ROOT &&
		!push_synthetic(b, "[truncated]"))
		return false;
	for (size_t i = s->nr; i-- != 0;) {
		unsigned flags = s->flags[i] | (i == 0 ? UNI_FRAME_EXACT : 0u);

		if (!push_frame(b, g, s->pc[i], flags))
			return false;
		if (!g->counted && uni_frame_is_interrupted(s->flags, i) &&
			!push_synthetic(b, "[interrupted]"))
			return false;
		if ((flags & UNI_FRAME_GAP) != 0 && !push_synthetic(b, "[frames left out]"))
			return false;
	}
	return leaf == NULL || push_synthetic(b, leaf);
}

/* A vCPU's state has a frame of its own, and is sure. */
static void add_own(struct uni_builder *b, const struct uni_sample *s)
{
	bool unsure = s->nr != 0 && (s->flags[0] & UNI_FRAME_UNSURE) != 0 &&
		      uni_state_frame(s->state) == NULL;

	uni_profile_add_own(b->p, b->frames.v[b->frames.nr - 1], (double)s->weight,
		unsure ? (double)s->weight : 0.0);
}

int uni_builder_add(struct uni_builder *b, const struct uni_sample *s)
{
	const struct uni_build_watch *w = b->opts->watch;
	int rc;

	b->read.samples++;
	if (!uni_sample_passes(&b->opts->filter, s))
		return 0;
	if (!push_chain(b, s))
		return -UNI_ENOMEM;
	add_own(b, s);
	rc = uni_profile_add(b->p, b->frames.v, b->frames.nr, (double)s->weight, 0.0);
	if (rc == 0 && w != NULL && w->sample != NULL)
		rc = w->sample(w->ctx, s, uni_profile_last(b->p));
	return rc;
}

/* The leaf on top of the chain that was pushed; part NULL: of the exit itself. */
static int add_part(struct uni_builder *b, const char *part, uint64_t value)
{
	size_t nr = b->frames.nr;
	int rc;

	if (value == 0)
		return 0;
	if (part != NULL && !push_synthetic(b, part))
		return -UNI_ENOMEM;
	rc = uni_profile_add(b->p, b->frames.v, b->frames.nr, (double)value, 0.0);
	b->frames.nr = nr;
	return rc;
}

static int add_times(struct uni_builder *b, const struct uni_stream_exit *e)
{
	uint64_t asleep = uni_min(e->asleep_ns, e->host_ns);
	uint64_t stolen = uni_min(e->stolen_ns, e->host_ns - asleep);
	int rc = add_part(b, NULL, e->host_ns - asleep - stolen);

	if (rc == 0)
		rc = add_part(b, "[stolen]", stolen);
	if (rc == 0 && !uni_exit_is_halt(e->isa, e->reason))
		rc = add_part(b, "[asleep]", asleep);
	return rc;
}

static int add_exit(void *ctx, const struct uni_stream_exit *e)
{
	struct uni_builder *b = ctx;
	const struct uni_sample chain = { .t_ns = e->t_ns,
		.guest = e->guest,
		.vcpu = e->vcpu,
		.stop = e->stop,
		.nr = e->nr,
		.pc = e->pc,
		.flags = e->flags };
	const struct uni_build_watch *w = b->opts->watch;
	char label[UNI_EXIT_LABEL_MAX], leaf[UNI_EXIT_LABEL_MAX + 8];
	int rc;

	if (__builtin_add_overflow(b->read.exits, e->weight, &b->read.exits))
		b->read.exits = UINT64_MAX;
	if (!uni_sample_passes(&b->opts->filter, &chain))
		return 0;
	uni_exit_label(e, b->guest[e->guest].vmm, label);
	(void)snprintf(leaf, sizeof(leaf), "[exit %s]", label);
	if (!push_chain(b, &chain) || !push_synthetic(b, leaf))
		return -UNI_ENOMEM;
	if (b->opts->what != UNI_BUILD_EXITS)
		return add_times(b, e);
	rc = add_part(b, NULL, e->weight);
	if (rc == 0 && w != NULL && w->exit != NULL && e->weight != 0)
		rc = w->exit(w->ctx, e, uni_profile_last(b->p));
	return rc;
}

static int begin_guest(struct uni_builder *b, const struct uni_build_guest *from, uint32_t number)
{
	struct guest *g = &b->guest[number];
	char clean[UNI_GUEST_NAME_MAX];
	size_t len;

	g->namer = uni_namer_create(&(struct uni_namer_from){
		.p = b->p,
		.symtab = b->opts->symtab != NULL ? b->opts->symtab : from->symtab,
		.bias = from->bias,
		.image = from->image_path,
		.names_only = from->names_only,
		.naming = &b->opts->naming,
	});
	g->root = UNI_NODE_NONE;
	g->elsewhere = from->elsewhere;
	g->counted = from->counted;
	g->vmm = from->vmm != NULL ? from->vmm : "";
	g->thread = from->thread;
	g->nr_thread = from->nr_thread;
	if (g->namer == NULL)
		return -UNI_ENOMEM;
	if (from->root == NULL)
		return 0;
	len = uni_text_clean(clean, sizeof(clean), from->root, strlen(from->root));
	g->root = uni_profile_frame_named(b->p, clean, len, UNI_FK_SYNTHETIC);
	return g->root == UNI_NODE_NONE ? -UNI_ENOMEM : 0;
}

int uni_builder_create(const struct uni_build_opts *opts, const struct uni_build_guest *guest,
	uint32_t nr_guests, struct uni_builder **ret)
{
	struct uni_builder *b = calloc(1, sizeof(*b));
	int rc = 0;

	if (b == NULL)
		return -UNI_ENOMEM;
	b->opts = opts;
	b->p = uni_profile_create();
	b->guest = calloc(nr_guests, sizeof(*b->guest));
	if (b->p == NULL || b->guest == NULL)
		rc = -UNI_ENOMEM;
	if (rc == 0 && opts->keep_log)
		uni_profile_keep_log(b->p);
	for (; rc == 0 && b->nr_guests < nr_guests; b->nr_guests++)
		rc = begin_guest(b, &guest[b->nr_guests], b->nr_guests);
	if (rc != 0)
		uni_builder_destroy(b);
	else
		*ret = b;
	return rc;
}

int uni_builder_finish(struct uni_builder *b, struct uni_profile **ret)
{
	int rc = uni_profile_finish(b->p);

	if (rc == 0)
		*ret = uni_take(b->p);
	return rc;
}

void uni_builder_destroy(struct uni_builder *b)
{
	if (b == NULL)
		return;
	for (uint32_t i = 0; i < b->nr_guests; i++)
		uni_namer_destroy(b->guest[i].namer);
	uni_profile_destroy(b->p);
	free(b->guest);
	uni_vec_free(&b->frames);
	free(b);
}

static int add_sample(void *ctx, const struct uni_sample *s)
{
	return uni_builder_add(ctx, s);
}

/* With more than one guest on show, each has a root frame of its own. */
static void describe_guests(const struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_build_guest *ret, char (*name)[UNI_GUEST_NAME_MAX])
{
	uint32_t nr = uni_recording_nr_guests(rec);

	for (uint32_t i = 0; i < nr; i++) {
		struct uni_recorded_guest from = uni_recording_guest(rec, i);

		uni_recording_guest_name(rec, i, name[i]);
		ret[i] = (struct uni_build_guest){
			.root = nr == 1 || opts->filter.guest.chosen || opts->no_guest_roots
					? NULL
					: name[i],
			.symtab = from.symtab,
			.bias = from.meta->bias,
			.image_path = from.meta->image_path,
			.names_only = from.meta->aggregate,
			.elsewhere = uni_record_is_elsewhere(from.stats),
			.counted = (uni_method_flags(from.meta->method) & UNI_METHOD_COUNTED) != 0,
			.vmm = from.meta->info.vmm,
			.thread = from.thread,
			.nr_thread = from.nr_thread,
		};
	}
}

static void set_unit(struct uni_builder *b, const struct uni_record_meta *meta)
{
	if (b->opts->what == UNI_BUILD_EXITS)
		uni_profile_set_unit(b->p, "exits");
	else if (b->opts->what == UNI_BUILD_EXIT_TIMES)
		uni_profile_set_unit(b->p, "ns");
	else if (meta->unit[0] != '\0')
		uni_profile_set_unit(b->p, meta->unit);
}

static int build_from(struct uni_builder *b, struct uni_recording *rec, struct uni_profile **ret,
	struct uni_err *err)
{
	int rc;

	if (b->opts->what == UNI_BUILD_SAMPLES)
		rc = uni_recording_each(rec, add_sample, b, &b->read.torn, err);
	else
		rc = uni_recording_each_exit(rec, add_exit, b, &b->read.torn, err);
	return rc != 0 ? rc : uni_builder_finish(b, ret);
}

int uni_builder_of_recording(const struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_builder **ret)
{
	uint32_t nr = uni_recording_nr_guests(rec);
	_cleanup_free_ struct uni_build_guest *guest = calloc(nr, sizeof(*guest));
	_cleanup_free_ char(*name)[UNI_GUEST_NAME_MAX] = calloc(nr, sizeof(*name));
	int rc = -UNI_ENOMEM;

	if (guest != NULL && name != NULL) {
		describe_guests(rec, opts, guest, name);
		rc = uni_builder_create(opts, guest, nr, ret);
	}
	if (rc == 0)
		set_unit(*ret, uni_recording_meta(rec));
	return rc;
}

void uni_builder_set_threads(struct uni_builder *b, const struct uni_recording *rec)
{
	for (uint32_t i = 0; i < b->nr_guests; i++) {
		const struct uni_recorded_guest from = uni_recording_guest(rec, i);

		b->guest[i].thread = from.thread;
		b->guest[i].nr_thread = from.nr_thread;
	}
}

int uni_builder_add_exit(struct uni_builder *b, const struct uni_stream_exit *e)
{
	return add_exit(b, e);
}

const struct uni_profile *uni_builder_profile(const struct uni_builder *b)
{
	return b->p;
}

int uni_profile_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_profile **ret, struct uni_build_read *read_ret, struct uni_err *err)
{
	struct uni_builder *b = NULL;
	int rc = uni_builder_of_recording(rec, opts, &b);

	if (rc == 0)
		rc = build_from(b, rec, ret, err);
	if (rc == 0 && read_ret != NULL)
		*read_ret = b->read;
	uni_builder_destroy(b);
	if (rc == -UNI_ENOMEM)
		return uni_err_set(err, UNI_ENOMEM, "out of memory building the profile");
	return rc;
}
