/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "page/parts.h"

/* A parent comes before its children, mostly right before the first one. */
void uni_part_nodes(struct uni_column *parent, struct uni_column *frame,
	const struct uni_profile *p, uint32_t *from_ret)
{
	for (; *from_ret < uni_profile_nr_nodes(p); ++*from_ret) {
		const struct uni_node *n = uni_profile_node(p, *from_ret);

		uni_column_put(parent, *from_ret - 1 - n->parent);
		uni_column_put(frame, n->frame);
	}
}

void uni_part_tree(struct uni_blob *b, const char *prefix, const struct uni_profile *p)
{
	struct uni_column *parent, *frame;
	uint32_t from = 1;
	char name[24];

	(void)snprintf(name, sizeof(name), "%s.parent", prefix);
	parent = uni_blob_column(b, name);
	(void)snprintf(name, sizeof(name), "%s.frame", prefix);
	frame = uni_blob_column(b, name);
	uni_part_nodes(parent, frame, p, &from);
}

static const char *kind_name(uint8_t kind)
{
	switch (kind) {
	case UNI_FK_UNKNOWN:
		return "unknown";
	case UNI_FK_SYNTHETIC:
		return "ours";
	case UNI_FK_INLINED:
		return "inlined";
	case UNI_FK_KERNEL:
		return "kernel";
	default:
		return "guest";
	}
}

void uni_part_frames(struct uni_json *j, const struct uni_profile *p)
{
	uni_json_kv(str, j, "unit", uni_profile_unit(p));
	uni_json_key(j, "frames");
	uni_json_array(j);
	for (uint32_t i = 0; i < uni_profile_nr_frames(p); i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, i);

		uni_json_array(j);
		uni_json_str(j, uni_profile_str(p, f->name));
		uni_json_str(j, kind_name(f->kind));
		uni_json_str(j, uni_profile_str(p, f->image));
		uni_json_str(j, uni_profile_str(p, f->file));
		uni_json_u64(j, f->line);
		if (uni_frame_is_unsure(f))
			uni_json_double(j, f->unsure / f->own);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}
