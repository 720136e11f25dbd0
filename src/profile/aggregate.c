/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/aggregate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "obj/usym.h"
#include "recording/recording.h"
#include "recording/stats.h"

/* The recorder never waits, so we do: often enough that its buffers cannot run full. */
#define FLUSH_EVERY 512u

static uint64_t frame_addr(uint32_t frame)
{
	/* In the middle, so that it is the same function whether looked up at pc or at pc - 1. */
	return UNI_NAMES_BASE + (uint64_t)frame * UNI_NAMES_STEP + UNI_NAMES_STEP / 2;
}

static int make_symtab(
	const struct uni_profile *p, const char *from, struct uni_symtab **ret, struct uni_err *err)
{
	size_t nr = uni_profile_nr_frames(p);
	_cleanup_free_ const char **names = calloc(nr + 1, sizeof(*names));

	if (names == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < nr; i++) {
		names[i] = uni_profile_str(p, uni_profile_get_frame(p, (uint32_t)i)->name);
		if (names[i][0] == '\0')
			names[i] = "[unknown]";
	}
	return uni_symtab_of_names(from, names, nr, ret, err);
}

/* Leaf first; a stack deeper than a chain may be loses its outermost callers, and is marked so. */
static void chain_of(const struct uni_profile *p, uint32_t node, struct uni_chain *c)
{
	c->nr = 0;
	c->stop = UNI_STOP_ROOT;
	for (; node != UNI_NODE_ROOT; node = uni_profile_node(p, node)->parent) {
		if (c->nr == UNI_CHAIN_MAX) {
			c->stop = UNI_STOP_LIMIT;
			return;
		}
		c->pc[c->nr++] = frame_addr(uni_profile_node(p, node)->frame);
	}
}

static int write_samples(const struct uni_profile *p, struct uni_recorder *rec,
	struct uni_record_stats *st, struct uni_err *err)
{
	_cleanup_free_ struct uni_chain *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (c == NULL)
		return uni_err_nomem(err);
	for (uint32_t i = 0; rc == 0 && i < uni_profile_nr_nodes(p); i++) {
		long long weight = llround(uni_profile_node(p, i)->self);
		struct uni_sample s = { .t_ns = i + 1ull, .pc = c->pc, .flags = c->flags };

		if (weight <= 0)
			continue;
		chain_of(p, i, c);
		s.weight = (uint64_t)weight;
		s.nr = c->nr;
		s.stop = c->stop;
		uni_recorder_sample(rec, &s);
		st->samples++;
		uni_record_stats_count(st, &s);
		st->end_ns = s.t_ns;
		if (st->samples % FLUSH_EVERY == 0)
			rc = uni_recorder_flush(rec, err);
	}
	return rc;
}

int uni_aggregate_write(const struct uni_profile *p, const struct uni_aggregate_origin *from,
	const char *path, bool overwrite, struct uni_err *err)
{
	_cleanup_free_ struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	struct uni_record_stats st = { 0 };
	const struct uni_guest_result result = { .stats = &st };
	struct uni_recorder *rec = NULL;
	struct uni_symtab *symtab = NULL;
	int rc, rc2;

	if (meta == NULL)
		return uni_err_nomem(err);
	meta->aggregate = true;
	meta->nr_vcpus = 1;
	(void)snprintf(meta->target, sizeof(meta->target), "%s", from->source);
	(void)snprintf(meta->uniscope_version, sizeof(meta->uniscope_version), "%s", from->version);
	(void)snprintf(meta->command, sizeof(meta->command), "%s", from->command);
	(void)snprintf(meta->unit, sizeof(meta->unit), "%s", uni_profile_unit(p));
	rc = make_symtab(p, from->source, &symtab, err);
	if (rc == 0)
		rc = uni_recorder_create(path, meta, overwrite, &rec, err);
	if (rc == 0) {
		rc = uni_recorder_add_symtab(rec, 0, symtab, err);
		if (rc == 0)
			rc = write_samples(p, rec, &st, err);
		rc2 = uni_recorder_close(rec, &result, 1, rc == 0 ? err : NULL);
		rc = rc != 0 ? rc : rc2;
	}
	uni_symtab_destroy(symtab);
	return rc;
}
