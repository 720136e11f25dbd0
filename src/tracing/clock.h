/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The relation of a guest CPU's counter to the host's clock, with a bound on the error.
 *
 *   tsc-offset  the offset that KVM adds to the host's counter, from debugfs.
 *               Exact, except for reading the host's two clocks one after the other.
 *   ring        from the ring alone, by intervals and a line through them.
 *   guest       only the frequency is known, from the guest.
 *   host        only the frequency is known: this host's, because the guest's is another one.
 *
 * With a frequency alone, the newest record was written before it was seen. So the guest's time at
 * a moment of the host is at least that much later than the record's. A wait that lasts until then
 * may have lasted longer, never less.
 *
 * An interval for `ring`: a record is new at a look, and so was the record before it. Then its time
 * was read between two looks. Many such intervals are kept, and a line is laid through them. An
 * interval that contradicts most others is refused. A counter that has the host's value by this
 * line is the host's counter, with its frequency. Otherwise a line is tried with the host's
 * frequency, then the guest's, then one from the intervals; the first that meets them counts.
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
	uint64_t offset;	       /* guest's counter minus host's, wraps */
	uint64_t seen_cycles, seen_ns; /* the newest record, and when it was first seen; 0: none */
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

/* If anything is known of a guest's counter, waits until 50 ms after the opening. Then the
 * frequency of the host's counter is known, too, on which a bound depends. */
void uni_tclock_settle(const struct uni_tclock *c);

/* The better of two bounds, as far as known by now. */
void uni_tclock_result(const struct uni_tclock *c, const struct uni_ring_info *info, unsigned cpu,
	struct uni_record_clock *ret);

/* One interval more. Made public for tests, as the next. */
void uni_tclock_add(struct uni_tclock *c, unsigned cpu, const struct uni_tclock_point *p);

/* From one look at a CPU's ring to the next; zeroed at first. */
struct uni_tclock_look {
	uint64_t was;	    /* the newest record's time at the last look */
	uint64_t seen_ns;   /* the end of the first look that saw it */
	uint64_t before_ns; /* when that look began; 0: there was none that was sure */
	uint64_t since_ns;  /* `was` was not written before that; 0: not known */
};
/* ret->to_ns 0: it found no interval. Returns 0 or -UNI_E*. */
int uni_tclock_look_once(
	struct uni_ring *r, unsigned cpu, struct uni_tclock_look *l, struct uni_tclock_point *ret);

#endif
