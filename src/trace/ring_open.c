/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "trace/ring_priv.h"

static int read_ring_head(const struct uni_ring *r, uint64_t va, void *buf, size_t len)
{
	return r->source.read(r->source.ctx, va, buf, len);
}

static int check_head(const struct uni_trace_head *h, struct uni_err *err)
{
	static const uint8_t magic[16] = UNI_TRACE_MAGIC;

	if (memcmp(h->magic, magic, sizeof(magic)) != 0)
		return uni_err_set(err, UNI_ENOENT,
			"no trace ring in this guest: it was not set up (uni_trace_init) so far; "
			"if it still boots, --wait waits");
	if (!uni_ring_version_ok(h))
		return uni_err_set(err, UNI_EFORMAT,
			"the guest's trace ring has version %u, this program reads versions %u to "
			"%u",
			h->version, UNI_TRACE_VERSION_OLD, UNI_TRACE_VERSION);
	if (h->sub_size != UNI_TRACE_SUB_SIZE)
		return uni_err_set(
			err, UNI_EFORMAT, "trace ring with sub-buffers of %u bytes", h->sub_size);
	if (h->nr_cpus == 0 || h->nr_cpus > UNI_RING_CPUS_MAX)
		return uni_err_set(err, UNI_EFORMAT, "trace ring of %u CPUs (1 to %d are possible)",
			h->nr_cpus, UNI_RING_CPUS_MAX);
	return 0;
}

static uint64_t ring_bytes(const struct uni_ring_cpu *c)
{
	return c->nr_subs * UNI_TRACE_SUB_SIZE;
}

/* Page tables can show the same memory many times: only its real size is a bound. */
static int check_sizes(const struct uni_ring *r, struct uni_err *err)
{
	const uint64_t have = r->source.memory_bytes;
	uint64_t sum = 0; /* cannot wrap: UNI_RING_CPUS_MAX times UNI_RING_SUBS_MAX */

	for (unsigned i = 0; i < r->info.nr_cpus; i++) {
		const struct uni_ring_cpu *a = &r->cpu[i];

		sum += ring_bytes(a);
		for (unsigned k = 0; k < i; k++) {
			const struct uni_ring_cpu *b = &r->cpu[k];

			if (uni_range_has(a->base, ring_bytes(a), b->base) ||
				uni_range_has(b->base, ring_bytes(b), a->base))
				return uni_err_set(err, UNI_EFORMAT,
					"the trace rings of CPU %u and CPU %u are at the same "
					"place",
					k, i);
		}
	}
	if (have == 0 || sum <= have)
		return 0;
	return uni_err_set(err, UNI_EFORMAT,
		"the guest states trace rings of %" PRIu64 " MiB, but its memory has %" PRIu64
		" MiB",
		sum >> 20, have >> 20);
}

static int open_cpu(struct uni_ring *r, unsigned i, uint64_t rings, struct uni_err *err)
{
	struct uni_trace_ring ring;
	struct uni_ring_cpu *c = &r->cpu[i];

	if (read_ring_head(r, rings + i * sizeof(ring), &ring, sizeof(ring)) != 0)
		return uni_err_set(
			err, UNI_EFAULT, "the guest's table of trace rings cannot be read");
	if (ring.base & SUB_MASK || ring.nr_subs < UNI_TRACE_SUB_MIN ||
		ring.nr_subs > UNI_RING_SUBS_MAX ||
		!uni_range_ok(ring.base, ring.nr_subs * UNI_TRACE_SUB_SIZE) ||
		!uni_range_ok(ring.cpu, sizeof(struct uni_trace_cpu)))
		return uni_err_set(err, UNI_EFORMAT,
			"the trace ring of CPU %u has an impossible place or size", i);
	c->ring = rings + i * sizeof(ring);
	c->cpu = ring.cpu;
	c->base = ring.base;
	c->nr_subs = ring.nr_subs;
	c->next_seq = 1;
	return 0;
}

int uni_ring_open(const struct uni_ring_source *source, uint64_t head, struct uni_ring **ret,
	struct uni_err *err)
{
	struct uni_trace_head h = { 0 };
	struct uni_ring *r;
	int rc;

	rc = source->read(source->ctx, head, &h, UNI_TRACE_HEAD_OLD);
	/* Once more: a guest that boots tells first the number of its CPUs, then that it is final.
	 */
	if (rc == 0)
		rc = source->read(source->ctx, head, &h, UNI_TRACE_HEAD_OLD);
	if (rc != 0)
		return uni_err_set(err, UNI_EFAULT,
			"the guest's uni_trace_head at %#llx cannot be read",
			(unsigned long long)head);
	rc = check_head(&h, err);
	if (rc != 0)
		return rc;
	r = calloc(1, sizeof(*r) + h.nr_cpus * sizeof(r->cpu[0]));
	if (r == NULL)
		return uni_err_nomem(err);
	r->source = *source;
	r->info = (struct uni_ring_info){ .nr_cpus = h.nr_cpus,
		.machine = h.machine,
		.ring_mode = h.ring_mode,
		.text_window = h.text_window & ~UINT64_C(0xffffffff),
		.tsc_hz = h.tsc_hz != 0 ? h.tsc_hz : source->counter_hz,
		.counts = (h.features & UNI_TRACE_COUNTS_EXTRA) != 0,
		.tells_gaps = (h.features & UNI_TRACE_TELLS_GAPS) != 0,
		.tells_sessions = h.version >= UNI_TRACE_VERSION &&
				  (h.features & UNI_TRACE_TELLS_SESSIONS) != 0,
		.keeps_promises = h.version >= UNI_TRACE_VERSION &&
				  (h.features & UNI_TRACE_KEEPS_PROMISES) != 0,
		.boots = (h.features & UNI_TRACE_BOOTS) != 0,
		.hooks = h.hooks };
	/* Behind what every version's head has. */
	if (h.version >= UNI_TRACE_VERSION && (h.features & UNI_TRACE_COPIES_TEXT) != 0 &&
		read_ring_head(r, head + offsetof(struct uni_trace_head, text_rules), &h.text_rules,
			sizeof(h.text_rules)) == 0)
		r->info.text_rules = h.text_rules;
	if (h.version >= UNI_TRACE_VERSION &&
		read_ring_head(r, head + offsetof(struct uni_trace_head, conditions), &h.conditions,
			sizeof(h.conditions)) == 0)
		r->info.conditions = h.conditions;
	if (h.version >= UNI_TRACE_VERSION &&
		read_ring_head(r, head + offsetof(struct uni_trace_head, reads), &h.reads,
			sizeof(h.reads)) == 0)
		r->info.reads = h.reads;
	memcpy(r->info.uuid, h.uuid, sizeof(h.uuid));
	memcpy(r->info.kinds, h.kinds, sizeof(h.kinds));
	for (unsigned i = 0; i < h.nr_cpus && rc == 0; i++)
		rc = open_cpu(r, i, h.rings, err);
	if (rc == 0)
		rc = check_sizes(r, err);
	if (rc != 0) {
		uni_ring_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void uni_ring_close(struct uni_ring *r)
{
	free(r);
}

const struct uni_ring_info *uni_ring_info(const struct uni_ring *r)
{
	return &r->info;
}

uint64_t uni_ring_nr_subs(const struct uni_ring *r, unsigned cpu)
{
	return r->cpu[cpu].nr_subs;
}

uint64_t uni_ring_area(const struct uni_ring *r, unsigned cpu)
{
	return r->cpu[cpu].cpu;
}

const struct uni_ring_stats *uni_ring_stats(const struct uni_ring *r, unsigned cpu)
{
	return &r->cpu[cpu].stats;
}

void uni_ring_until(struct uni_ring *r, bool slow, bool (*over)(void *ctx), void *ctx)
{
	r->slow = slow;
	r->over = over;
	r->over_ctx = ctx;
}

void uni_ring_hurry(struct uni_ring *r)
{
	r->hasty = true;
}
