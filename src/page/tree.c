/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "page/parts.h"

void uni_part_tree(struct uni_blob *b, const char *prefix, const struct uni_profile *p)
{
	struct uni_column *parent, *frame;
	char name[24];

	(void)snprintf(name, sizeof(name), "%s.parent", prefix);
	parent = uni_blob_column(b, name);
	(void)snprintf(name, sizeof(name), "%s.frame", prefix);
	frame = uni_blob_column(b, name);
	/* A parent comes before its children, mostly right before the first of them. */
	for (uint32_t i = 1; i < uni_profile_nr_nodes(p); i++) {
		const struct uni_node *n = uni_profile_node(p, i);

		uni_column_put(parent, i - 1 - n->parent);
		uni_column_put(frame, n->frame);
	}
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
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}
