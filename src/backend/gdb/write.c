/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patches code by M packets, even if memory is read from the VMM's process. QEMU has translated the
 * code, and only its own write function discards the translation.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/gdb/gdb.h"
#include "backend/patch.h"

#define BATCH	  16  /* packets that are sent together */
#define JOIN_MAX  256 /* bytes of a packet: QEMU takes about as long for a packet as for so many */
#define ANSWER_NS (2 * UNI_NSEC_PER_SEC)

static void queue_write(
	struct uni_gdb_stub *s, const struct uni_patch_plan *plan, size_t nr, const uint8_t *from)
{
	static const char digit[] = "0123456789abcdef";
	const struct uni_patch_extent *e = &plan->extent[nr];
	char hex[2 * JOIN_MAX + 1] = "";

	for (size_t i = 0; i < e->len; i++) {
		hex[2 * i] = digit[from[e->at + i] >> 4];
		hex[2 * i + 1] = digit[from[e->at + i] & 15];
	}
	uni_gdb_link_packet(&s->link, "M%" PRIx64 ",%zx:%s",
		s->phys ? e->gpa : plan->job->patch[e->first].va, e->len, hex);
}

/* Writes extents [first, first + nr) as they are in `from`. *done_ret: how many were written. */
static int write_batch(struct uni_gdb_stub *s, const struct uni_patch_plan *plan, size_t first,
	size_t nr, const uint8_t *from, size_t *done_ret)
{
	uint64_t until = uni_now_ns() + ANSWER_NS;
	int rc, bad = 0;

	*done_ret = 0;
	for (size_t i = 0; i < nr; i++)
		queue_write(s, plan, first + i, from);
	rc = uni_gdb_link_send(&s->link, until);
	for (size_t i = 0; i < nr && rc == 0; i++) {
		rc = uni_gdb_link_reply(&s->link, until);
		if (rc == 0 && !uni_gdb_reply_is(&s->link, "OK"))
			bad = -UNI_EFAULT;
		*done_ret += rc == 0 && bad == 0;
	}
	return rc != 0 ? rc : bad;
}

static int write_all(struct uni_gdb_stub *s, const struct uni_patch_plan *plan, size_t nr,
	const uint8_t *from, size_t *done_ret)
{
	/* Stubs other than QEMU get one packet at a time. */
	size_t batch = s->qemu ? BATCH : 1, done;
	int rc = 0;

	*done_ret = 0;
	while (rc == 0 && *done_ret < nr) {
		rc = write_batch(s, plan, *done_ret, uni_min(nr - *done_ret, batch), from, &done);
		*done_ret += done;
	}
	return rc;
}

/*
 * Patches a held guest, with one packet for each extent: a broken connection leaves old bytes or
 * new ones. Returns as uni_patch_run(); -UNI_EPROTO and the like: the connection failed.
 */
static int patch_places(struct uni_gdb_stub *s, struct uni_patch_plan *p)
{
	struct uni_patch_job *job = p->job;
	size_t done = 0, back;
	int rc = uni_gdb_stub_physical(s);

	if (rc == 0)
		rc = write_all(s, p, p->nr, p->want, &done);
	if (rc == -UNI_EFAULT) {
		job->bad = p->extent[done].first;
		job->nr_written = 0;
		/* Later extents of the batch may have been written. */
		(void)write_all(s, p, uni_min(p->nr, done + BATCH), p->was, &back);
	}
	return rc;
}

/* Call it while the guest is held. */
static int patch_held(struct uni_gdb_target *t, struct uni_patch_plan *p)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->nr; i++) {
		const struct uni_patch_extent *e = &p->extent[i];

		p->job->bad = e->first;
		rc = uni_gmem_read(t->gmem, uni_gpa_of(e->gpa), p->was + e->at, e->len);
	}
	if (rc == 0)
		rc = uni_patch_apply(p);
	if (rc != 0 || p->job->nr_written == 0)
		return rc == -UNI_ERANGE ? -UNI_EFAULT : rc;
	rc = uni_gdb_begin(t);
	if (rc == 0 && (!t->held || t->stub.state == UNI_GDB_RUNNING))
		rc = -UNI_EAGAIN;
	if (rc == 0)
		rc = patch_places(&t->stub, p);
	if (rc != 0 && rc != -UNI_EFAULT && rc != -UNI_EAGAIN)
		rc = uni_gdb_stub_recover(&t->stub, rc);
	uni_gdb_end(t);
	return rc;
}

int uni_gdb_write_text(struct uni_target *base, struct uni_patch_job *job)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)t->stub.nr_threads);
	struct uni_regs *regs = calloc((size_t)t->stub.nr_threads, sizeof(*regs));
	struct uni_patch_plan p = { 0 };
	/* Neighbours in physical memory may be apart in virtual memory: each is alone there. */
	const size_t most = t->stub.want_phys || t->stub.phys ? JOIN_MAX : 1;
	uint64_t begin_ns;
	int rc = regs != NULL ? uni_patch_plan(job, most, &p) : -UNI_ENOMEM;

	if (rc != 0) {
		free(regs);
		return rc;
	}
	begin_ns = uni_now_ns();
	rc = base->ops->snap(base, &all, regs, UNI_SNAP_HOLD);
	if (rc == 0) {
		for (int i = 0; i < t->stub.nr_threads && rc == 0; i++)
			rc = uni_patch_hit(&p, &regs[i]) ? -UNI_EAGAIN : 0;
		if (rc == 0)
			rc = patch_held(t, &p);
		(void)base->ops->release(base);
	}
	job->pause_ns = uni_now_ns() - begin_ns;
	uni_patch_plan_deinit(&p);
	free(regs);
	return rc;
}
