/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the contents of a profile. */
#include <assert.h>
#include <string.h>

#include "profile/profile_priv.h"

size_t uni_profile_nr_nodes(const struct uni_profile *p)
{
	return p->nodes.nr;
}

size_t uni_profile_nr_frames(const struct uni_profile *p)
{
	return p->frames.nr;
}

const struct uni_node *uni_profile_node(const struct uni_profile *p, uint32_t i)
{
	assert(i < p->nodes.nr);
	return &p->nodes.v[i];
}

const struct uni_frame *uni_profile_get_frame(const struct uni_profile *p, uint32_t i)
{
	assert(i < p->frames.nr);
	return &p->frames.v[i];
}

const char *uni_profile_str(const struct uni_profile *p, uint32_t str)
{
	return uni_strtab_get(p->strings, str);
}

const char *uni_profile_str_len(const struct uni_profile *p, uint32_t str, size_t *len_ret)
{
	*len_ret = uni_strtab_len(p->strings, str);
	return uni_strtab_get(p->strings, str);
}

const char *uni_profile_node_name(const struct uni_profile *p, uint32_t node)
{
	uint32_t frame = uni_profile_node(p, node)->frame;

	return frame == UNI_NODE_NONE ? "all" : uni_profile_str(p, p->frames.v[frame].name);
}

bool uni_profile_has_second(const struct uni_profile *p)
{
	return p->has_second;
}

double uni_profile_self2(const struct uni_profile *p, uint32_t node)
{
	return p->has_second && node < p->seconds.nr ? p->seconds.v[node].self : 0.0;
}

double uni_profile_total2(const struct uni_profile *p, uint32_t node)
{
	return p->has_second && node < p->seconds.nr ? p->seconds.v[node].total : 0.0;
}

double uni_profile_total(const struct uni_profile *p)
{
	return p->nodes.v[UNI_NODE_ROOT].total;
}

size_t uni_profile_depth(const struct uni_profile *p, uint32_t node)
{
	size_t depth = 0;

	while ((node = uni_profile_node(p, node)->parent) != UNI_NODE_NONE)
		depth++;
	return depth;
}

void uni_profile_set_unit(struct uni_profile *p, const char *unit)
{
	uint32_t s = uni_strtab_add(p->strings, unit, strlen(unit));

	if (s != UNI_STR_NONE)
		p->unit = s;
}

const char *uni_profile_unit(const struct uni_profile *p)
{
	return uni_profile_str(p, p->unit);
}
