/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a guest CPU's counter goes with the host's clock, with a bound on the error.
 *
 * tsc-offset  what KVM says it adds to the host's counter (debugfs, where it is mounted and may be
 *             read): exact but for reading the host's two clocks one after the other
 * ring        from the ring alone: of a record that is there now, where the one before it was not
 *             there when we looked, the time was read in between. Many such intervals are kept, and
 * a line is laid through them. An interval that contradicts most others is refused. A counter that
 * is then what the host's is, is the host's, and goes as fast. Its frequency is the host's, or else
 * the guest's, or else what the intervals tell: the first at which a line meets them. guest only
 * the frequency is known, as the guest says it host        as `guest`, but that is not the
 * frequency of this host's counter, which guests have
 */
#ifndef UNI_TRACING_CLOCK_H
#define UNI_TRACING_CLOCK_H

#include "recording/traced.h"
#include "tracing/clock_fit.h"
#include "backend/target.h"
#include "trace/ring.h"

struct uni_tclock_cpu {
	struct uni_tclock_points points;
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

/* One interval more. Made public for tests, as the next. */
void uni_tclock_add(struct uni_tclock *c, unsigned cpu, const struct uni_tclock_point *p);

/* From one look at a CPU's ring to the next; zeroed at first. */
struct uni_tclock_look {
	uint64_t was;	    /* the newest record's time at the last look */
	uint64_t before_ns; /* when that look began; 0: there was none that was sure */
	uint64_t since_ns;  /* `was` was not written before that; 0: not known */
};
/* ret->to_ns 0: it tells nothing. 0 or -UNI_E*. */
int uni_tclock_look_once(
	struct uni_ring *r, unsigned cpu, struct uni_tclock_look *l, struct uni_tclock_point *ret);

#endif
