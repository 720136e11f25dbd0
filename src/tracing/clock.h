/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a guest CPU's counter goes with the host's clock, with a bound on the error.
 *
 * tsc-offset  what KVM says it adds to the host's counter (debugfs, where it is mounted and may be
 *             read): exact but for reading the host's two clocks one after the other
 * ring        from the ring alone: a record that was not there when we looked and is there now was
 *             made in between. The shortest such wait bounds the relation. A counter that is then
 *             what the host's is, is the host's, and goes as fast.
 *             Its frequency is the host's, or else the guest's, or else what the records tell: the
 *             first that these do not contradict by more than they were waited for.
 * guest       only the frequency is known, as the guest says it
 * host        as `guest`, but that is not the frequency of this host's counter, which guests have
 */
#ifndef UNI_TRACING_CLOCK_H
#define UNI_TRACING_CLOCK_H

#include "recording/traced.h"
#include "backend/target.h"
#include "trace/ring.h"

/* The guest's counter was `cycles` at some moment of [from_ns, to_ns]. */
struct uni_tclock_point {
	uint64_t cycles, from_ns, to_ns; /* to_ns 0: none */
};

struct uni_tclock_cpu {
	/* One at the beginning and one at the end tell the frequency. */
	struct uni_tclock_point first, last;
	/* Of one look, whose distance is the greatest for their widths: they tell a wrong
	 * frequency. */
	struct uni_tclock_point pair[2];
	bool has_offset;
	uint64_t offset; /* guest's counter minus host's, wraps */
};

struct uni_tclock {		    /* zeroed knows of no CPU */
	bool has_vmm;		    /* a process on this host runs it */
	uint64_t host_ns, host_tsc; /* when it was opened */
	unsigned nr_cpus;
	struct uni_tclock_cpu *cpu; /* owned */
};

/* pid: the VMM's, 0 unknown. debugfs: NULL, or where it is mounted. c is zeroed, or was open. */
int uni_tclock_open(
	struct uni_tclock *c, int pid, unsigned nr_cpus, const char *debugfs, struct uni_err *err);
void uni_tclock_close(struct uni_tclock *c);

/*
 * Looks at the ring for at most that long, or so briefly that it shows that the CPU records
 * nothing: false. To be called at the beginning and now and then.
 */
bool uni_tclock_look(struct uni_tclock *c, struct uni_ring *r, unsigned cpu, uint64_t most_ns);

/* If anything is known of a guest's counter: waits until so long after the opening (50 ms) that the
 * frequency of the host's is, too, on which a bound rests. */
void uni_tclock_settle(const struct uni_tclock *c);

/* The better of two bounds, of what is known by now. */
void uni_tclock_result(const struct uni_tclock *c, const struct uni_ring_info *info, unsigned cpu,
	struct uni_record_clock *ret);

/* Two of one look. Made public for tests, as the next. */
void uni_tclock_add_pair(struct uni_tclock *c, unsigned cpu, const struct uni_tclock_point *early,
	const struct uni_tclock_point *late);
/* One bound more. */
void uni_tclock_add(struct uni_tclock *c, unsigned cpu, const struct uni_tclock_point *p);

#endif
