/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts of a guest that a session holds before its first sample. */
#include "app/record.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "app/self.h"
#include "backend/method.h"
#include "config.h"
#include "sampling/sampler.h"

bool uni_record_sees_exits(const struct uni_guest *g)
{
	return (g->t->ops->caps(g->t) & UNI_CAP_EXITS) != 0;
}

void uni_record_fill_meta(
	const struct uni_guest *g, const struct uni_record_args *args, struct uni_record_meta *meta)
{
	memset(meta, 0, sizeof(*meta));
	(void)uni_text_clean(
		meta->target, sizeof(meta->target), g->spec.text, strlen(g->spec.text));
	meta->info = g->info;
	(void)snprintf(meta->method, sizeof(meta->method), "%s", uni_sampler_method(g->t));
	(void)snprintf(meta->why, sizeof(meta->why), "%s", g->info.why);
	meta->counts = args->aggregate && (uni_method_flags(meta->method) & UNI_METHOD_KERNEL) != 0;
	(void)snprintf(meta->arch, sizeof(meta->arch), "%s", g->t->arch->name);
	if (g->image != NULL) {
		(void)snprintf(
			meta->image_path, sizeof(meta->image_path), "%s", uni_image_path(g->image));
		(void)snprintf(
			meta->image_id, sizeof(meta->image_id), "%s", uni_image_id(g->image));
	}
	memcpy(meta->checked, g->checked, sizeof(meta->checked));
	memcpy(meta->stale, g->stale, sizeof(meta->stale));
	if (g->image != NULL)
		meta->nr_bad_rows =
			uni_image_bad_rows(g->image, meta->bad_rows, sizeof(meta->bad_rows));
	meta->bias = g->bias;
	meta->nr_vcpus = (uint32_t)g->t->ops->nr_vcpus(g->t);
	meta->left_off = g->t->nr_left_off;
	meta->frequency = args->frequency;
	meta->exits_every = uni_record_sees_exits(g) ? args->exits_every : 0;
	meta->realtime_offset_ns = uni_realtime_ns() - uni_now_ns();
	(void)snprintf(
		meta->uniscope_version, sizeof(meta->uniscope_version), "%s", UNISCOPE_VERSION);
	uni_self_command(meta->command, sizeof(meta->command));
}
