/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of the Perfetto exporter: packets, processes and threads. */
#ifndef UNI_FORMAT_PERFETTO_PERFETTO_H
#define UNI_FORMAT_PERFETTO_PERFETTO_H

#include "base/pb.h"
#include "format/rows.h"

#define UNI_PF_PACKET 1 /* of Trace; what follows is of TracePacket */
enum {
	UNI_PF_TIMESTAMP = 8,
	UNI_PF_SEQUENCE = 10,
	UNI_PF_TRACK_EVENT = 11,
	UNI_PF_INTERNED = 12,
	UNI_PF_FLAGS = 13,
	UNI_PF_DEFAULTS = 59,
	UNI_PF_TRACK = 60,
	UNI_PF_PERF_SAMPLE = 66,
	UNI_PF_MACHINE = 98,
};

struct uni_perfetto {
	struct uni_sink *out;
	struct uni_strbuf trace, packet, part, sub; /* part and sub are empty between calls */
	bool begun; /* the sequence of the guest at hand has a packet already */
	bool oom;
};

/* Ends the packet under construction. Guests come one after the other: each is a sequence. */
void uni_perfetto_packet(struct uni_perfetto *w, uint32_t guest, uint64_t t_ns, bool timed);
void uni_perfetto_flush(struct uni_perfetto *w);

static inline uint64_t uni_perfetto_process_uuid(uint32_t guest)
{
	return (UINT64_C(1) << 48) + guest;
}
void uni_perfetto_process(struct uni_perfetto *w, uint32_t guest, const char *name);
void uni_perfetto_thread(
	struct uni_perfetto *w, uint32_t guest, uint64_t uuid, uint32_t tid, const char *name);

/* Calls, as slices of threads and, of what ran there, of CPUs. 0 or -UNI_ENOMEM. */
int uni_perfetto_calls(struct uni_perfetto *w, const struct uni_timeline *tl);

/* Threads and promises, as a machine of their own. 0 or -UNI_ENOMEM. */
int uni_perfetto_promises(struct uni_perfetto *w, const struct uni_promise_model *m);

#endif
