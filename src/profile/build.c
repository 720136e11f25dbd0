/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"

/* The same few thousand addresses come again and again: each is symbolized once. */
struct known {
	uint64_t pc;
	uint32_t frame; /* UNI_NODE_NONE = free slot */
	bool exact;
};

struct uni_builder {
	const struct uni_build_opts *opts;
	const struct uni_symtab *symtab;
	struct uni_profile *p;
	uint64_t bias;
	uint32_t image; /* string */
	struct known *known;
	size_t nr_slots, nr_known; /* nr_slots is a power of two */
	UNI_VEC(uint32_t) frames;
	uint64_t first_ns;
	struct uni_build_read read;
	bool any;
	bool aggregate; /* imported: addresses are made up, names are all there is */
};

static size_t known_probe(const struct uni_builder *b, uint64_t pc, bool exact)
{
	size_t mask = b->nr_slots - 1, i = (size_t)(uni_hash_pair(pc, exact) >> 7) & mask;

	while (b->known[i].frame != UNI_NODE_NONE &&
		(b->known[i].pc != pc || b->known[i].exact != exact))
		i = (i + 1) & mask;
	return i;
}

static bool known_grow(struct uni_builder *b, size_t nr_slots)
{
	struct known *old = b->known;
	size_t nr_old = b->nr_slots;

	b->known = malloc(nr_slots * sizeof(*b->known));
	if (b->known == NULL) {
		b->known = old;
		return false;
	}
	b->nr_slots = nr_slots;
	for (size_t i = 0; i < nr_slots; i++)
		b->known[i].frame = UNI_NODE_NONE;
	for (size_t i = 0; i < nr_old; i++) {
		if (old[i].frame != UNI_NODE_NONE)
			b->known[known_probe(b, old[i].pc, old[i].exact)] = old[i];
	}
	free(old);
	return true;
}

/* One frame of a function, or of an address that has none. */
static uint32_t make_frame(struct uni_builder *b, uint64_t pc, bool exact)
{
	struct uni_frame f = { .kind = UNI_FK_UNKNOWN, .addr = pc };
	uint64_t svma = (exact ? pc : pc - 1) - b->bias, off = 0;
	char text[UNI_TEXT_MAX + 32];
	const char *name;
	size_t len;

	if ((!b->opts->addresses || b->aggregate) && b->symtab != NULL &&
		uni_symtab_lookup(b->symtab, svma, &name, &off)) {
		len = uni_text_clean(text, UNI_TEXT_MAX, name, UNI_TEXT_MAX);
		f.kind = b->aggregate ? uni_frame_kind_of(text) : UNI_FK_GUEST;
		f.addr = b->aggregate ? 0 : svma - off + b->bias;
		f.image = b->aggregate ? 0 : b->image;
		if (b->opts->offsets && !b->aggregate)
			len += (size_t)snprintf(
				text + len, 32, "+0x%" PRIx64, off + (exact ? 0 : 1));
	} else {
		len = (size_t)snprintf(text, sizeof(text), "0x%" PRIx64, pc);
	}
	f.name = uni_strtab_add(uni_profile_strings(b->p), text, len);
	return f.name == UNI_STR_NONE ? UNI_NODE_NONE : uni_profile_frame(b->p, &f);
}

static uint32_t find_frame(struct uni_builder *b, uint64_t pc, bool exact)
{
	size_t i = known_probe(b, pc, exact);
	uint32_t frame = b->known[i].frame;

	if (frame != UNI_NODE_NONE)
		return frame;
	if ((b->nr_known + 1) * 2 > b->nr_slots && !known_grow(b, b->nr_slots * 2))
		return UNI_NODE_NONE;
	frame = make_frame(b, pc, exact);
	if (frame == UNI_NODE_NONE)
		return UNI_NODE_NONE;
	b->known[known_probe(b, pc, exact)] =
		(struct known){ .pc = pc, .frame = frame, .exact = exact };
	b->nr_known++;
	return frame;
}

static bool push(struct uni_builder *b, uint32_t frame)
{
	return frame != UNI_NODE_NONE && uni_vec_push(&b->frames, frame);
}

static bool push_synthetic(struct uni_builder *b, const char *name)
{
	return push(b, uni_profile_frame_named(b->p, name, strlen(name), UNI_FK_SYNTHETIC));
}

static bool wanted(struct uni_builder *b, const struct uni_sample *s)
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

static bool push_chain(struct uni_builder *b, const struct uni_sample *s)
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

		if (!push(b, find_frame(b, s->pc[i], exact)))
			return false;
	}
	return true;
}

int uni_builder_add(struct uni_builder *b, const struct uni_sample *s)
{
	b->read.samples++;
	if (!wanted(b, s))
		return 0;
	if (!push_chain(b, s))
		return -UNI_ENOMEM;
	return uni_profile_add(b->p, b->frames.v, b->frames.nr, (double)s->weight, 0.0);
}

/* "/boot/app.dbg" is shown as "app.dbg". */
static uint32_t image_string(struct uni_profile *p, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
	char clean[256];
	size_t len = uni_text_clean(clean, sizeof(clean), base, strlen(base));

	return uni_strtab_add(uni_profile_strings(p), clean, len);
}

static int builder_init(struct uni_builder *b, const struct uni_build_source *src)
{
	b->p = uni_profile_create();
	if (b->p == NULL)
		return -UNI_ENOMEM;
	b->bias = src->bias;
	b->symtab = b->opts->symtab != NULL ? b->opts->symtab : src->symtab;
	b->image = image_string(b->p, src->image_path);
	return b->image != UNI_STR_NONE && known_grow(b, 1024) ? 0 : -UNI_ENOMEM;
}

int uni_builder_create(const struct uni_build_opts *opts, const struct uni_build_source *src,
	struct uni_builder **ret)
{
	struct uni_builder *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return -UNI_ENOMEM;
	b->opts = opts;
	if (builder_init(b, src) != 0) {
		uni_builder_destroy(b);
		return -UNI_ENOMEM;
	}
	*ret = b;
	return 0;
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
	uni_profile_destroy(b->p);
	free(b->known);
	uni_vec_free(&b->frames);
	free(b);
}

static int add_sample(void *ctx, const struct uni_sample *s)
{
	return uni_builder_add(ctx, s);
}

static int run(struct uni_builder *b, struct uni_recording *rec, struct uni_profile **ret,
	struct uni_err *err)
{
	const struct uni_record_meta *meta = uni_recording_meta(rec);
	int rc;

	b->aggregate = meta->aggregate;
	if (meta->unit[0] != '\0')
		uni_profile_set_unit(b->p, meta->unit);
	rc = uni_recording_each(rec, add_sample, b, &b->read.torn, err);
	return rc != 0 ? rc : uni_builder_finish(b, ret);
}

int uni_profile_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_profile **ret, struct uni_build_read *read_ret, struct uni_err *err)
{
	const struct uni_record_meta *meta = uni_recording_meta(rec);
	struct uni_build_source src = { .symtab = uni_recording_symtab(rec),
		.bias = meta->bias,
		.image_path = meta->image_path };
	struct uni_builder *b = NULL;
	int rc = uni_builder_create(opts, &src, &b);

	if (rc == 0)
		rc = run(b, rec, ret, err);
	if (rc == 0 && read_ret != NULL)
		*read_ret = b->read;
	uni_builder_destroy(b);
	if (rc == -UNI_ENOMEM)
		return uni_err_set(err, UNI_ENOMEM, "out of memory building the profile");
	return rc;
}
