/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares an image with the guest that runs it: the bytes that may differ, and those that do. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "obj/image_priv.h"

const struct uni_changes *uni_image_changes(const struct uni_image *img)
{
	return &img->changes;
}

/* Finds "GNU" and the note type, which are before the build-id in memory. */
bool uni_image_find_build_id(const struct uni_image *img, uint64_t *svma_ret)
{
	const uint32_t head[4] = { 4, (uint32_t)img->build_id_len, NT_GNU_BUILD_ID, 0x554e47 };
	uint8_t note[sizeof(head) + UNI_BUILD_ID_MAX];

	memcpy(note, head, sizeof(head));
	memcpy(note + sizeof(head), img->build_id, img->build_id_len);
	for (size_t i = 0; img->build_id_len != 0 && i < img->file.segs.nr; i++) {
		const struct uni_segment *s = &img->file.segs.v[i];
		const uint8_t *at =
			memmem(s->bytes, s->file_size, note, sizeof(head) + img->build_id_len);

		if (at != NULL) {
			*svma_ret = s->vaddr + (uint64_t)(at - s->bytes);
			return true;
		}
	}
	return false;
}

int uni_image_forget_names(struct uni_image *img, const struct uni_span *v, size_t nr)
{
	struct uni_span *copy = calloc(nr + 1, sizeof(*copy));
	struct uni_ranges ranges;
	size_t kept = 0;

	if (copy == NULL)
		return -UNI_ENOMEM;
	memcpy(copy, v, nr * sizeof(*v));
	for (size_t i = 0; i < img->syms.nr; i++) {
		if (!uni_spans_has(v, nr, img->syms.v[i].addr))
			img->syms.v[kept++] = img->syms.v[i];
	}
	img->syms.nr = kept;
	free(img->unnamed);
	img->unnamed = copy;
	img->nr_unnamed = nr;
	if (!uni_ranges_build(img->syms.v, kept, &ranges))
		return -UNI_ENOMEM;
	uni_ranges_deinit(&img->syms.ranges);
	img->syms.ranges = ranges;
	return 0;
}
