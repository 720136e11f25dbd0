/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perfetto's trace: packets of protobuf. Each guest is a machine with its own sequence of packets.
 * Names, frames and call stacks are written there at their first use. Samples are PerfSamples of
 * the guest's threads (or vCPUs), calls are slices of theirs (perfetto/calls.c), pauses a counter
 * of each vCPU. docs/formats/exchange.md has the numbers of the fields.
 */
#include "format/perfetto/perfetto.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/exits.h"
#include "format/opts.h"
#include "recording/recording.h"

#define FLUSH_BYTES  ((size_t)1 << 20)
#define FIRST_TID    1000 /* of lanes; guests are processes from 1 on */
#define GUEST_KERNEL 4	  /* of Profiling.CpuMode: what runs in a unikernel */
#define UNIT_TIME_NS 1	  /* of CounterDescriptor.Unit */
#define COUNTER_UUID (UINT64_C(1) << 40)
#define EXITS_UUID   (UINT64_C(1) << 41)
#define REPEAT_MAX   100000 /* a weight beyond it is damage, or no sampling */

enum { /* of InternedData */
	I_FUNCTION_NAME = 5,
	I_FRAME = 6,
	I_CALLSTACK = 7,
	I_MAPPING_PATH = 17,
	I_MAPPING = 19,
};

struct samples {
	struct uni_perfetto *w;
	struct uni_rows rows;
	struct uni_exit_rows exits;
	struct uni_row_stack stack;
	struct uni_strbuf interned, part;
	uint8_t *frame_known, *node_known; /* a bit each: in the sequence of the guest at hand */
	bool *counter_known;
	uint32_t guest;
	double cut; /* of the weights */
};

static int write_perfetto(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_perfetto = {
	.name = "perfetto",
	.ext = "pftrace",
	.mime = "application/octet-stream",
	.summary =
		"Perfetto's protobuf: samples with call stacks, calls, promises, pauses, VM exits",
	.lost = "whether a function was inlined",
	.needs = UNI_TAKES_ALL | UNI_TAKES_EXITS | UNI_TAKES_PROMISES,
	.write = write_perfetto,
};

void uni_perfetto_packet(struct uni_perfetto *w, uint32_t guest, uint64_t t_ns, bool timed)
{
	if (timed)
		uni_pb_put_u64(&w->packet, UNI_PF_TIMESTAMP, t_ns);
	uni_pb_put_u64(&w->packet, UNI_PF_SEQUENCE, guest + UINT64_C(1));
	uni_pb_put_u64(&w->packet, UNI_PF_MACHINE, guest + UINT64_C(1));
	uni_pb_put_u64(&w->packet, UNI_PF_FLAGS, w->begun ? 2 : 1); /* needs, or begins, state */
	w->begun = true;
	uni_pb_put_part(&w->trace, UNI_PF_PACKET, &w->packet);
	if (w->trace.len < FLUSH_BYTES)
		return;
	uni_perfetto_flush(w);
}

void uni_perfetto_flush(struct uni_perfetto *w)
{
	w->oom = w->oom || uni_strbuf_failed(&w->trace);
	uni_sink_write(w->out, w->trace.s, w->trace.len);
	uni_strbuf_reset(&w->trace);
}

void uni_perfetto_process(struct uni_perfetto *w, uint32_t guest, const char *name)
{
	uni_pb_put_u64(&w->sub, 1, guest + UINT64_C(1));
	uni_pb_put_str(&w->sub, 6, name);
	uni_pb_put_u64(&w->part, 1, uni_perfetto_process_uuid(guest));
	uni_pb_put_part(&w->part, 3, &w->sub);
	uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
	uni_perfetto_packet(w, guest, 0, false);
}

void uni_perfetto_thread(
	struct uni_perfetto *w, uint32_t guest, uint64_t uuid, uint32_t tid, const char *name)
{
	uni_pb_put_u64(&w->sub, 1, guest + UINT64_C(1));
	uni_pb_put_u64(&w->sub, 2, tid);
	uni_pb_put_str(&w->sub, 5, name);
	uni_pb_put_u64(&w->part, 1, uuid);
	uni_pb_put_u64(&w->part, 5, uni_perfetto_process_uuid(guest));
	uni_pb_put_part(&w->part, 4, &w->sub);
	uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
	uni_perfetto_packet(w, guest, 0, false);
}

static bool is_new(uint8_t *bits, uint32_t i)
{
	uint8_t bit = (uint8_t)(1 << (i & 7));
	bool known = (bits[i >> 3] & bit) != 0;

	bits[i >> 3] |= bit;
	return !known;
}

static void intern_frame(struct samples *s, uint32_t number)
{
	const struct uni_profile *p = s->rows.p;
	const struct uni_frame *f = uni_profile_get_frame(p, number);

	if (!is_new(s->frame_known, number))
		return;
	uni_pb_put_u64(&s->part, 1, (uint64_t)number + 1);
	uni_pb_put_str(&s->part, 2, uni_profile_str(p, uni_frame_said(f)));
	uni_pb_put_part(&s->interned, I_FUNCTION_NAME, &s->part);
	if (f->image != 0) {
		/* A mapping for each frame: the image is known, its address range is not. */
		uni_pb_put_u64(&s->part, 1, (uint64_t)number + 1);
		uni_pb_put_str(&s->part, 2, uni_profile_str(p, f->image));
		uni_pb_put_part(&s->interned, I_MAPPING_PATH, &s->part);
		uni_pb_put_u64(&s->part, 1, (uint64_t)number + 1);
		uni_pb_put_u64(&s->part, 7, (uint64_t)number + 1);
		uni_pb_put_part(&s->interned, I_MAPPING, &s->part);
	}
	uni_pb_put_u64(&s->part, 1, (uint64_t)number + 1);
	uni_pb_put_u64(&s->part, 2, (uint64_t)number + 1);
	if (f->image != 0) {
		uni_pb_put_u64(&s->part, 3, (uint64_t)number + 1);
		uni_pb_put_u64(&s->part, 4, f->addr);
	}
	if (f->line != 0)
		uni_pb_put_u64(&s->part, 6, f->line);
	uni_pb_put_part(&s->interned, I_FRAME, &s->part);
}

static void intern_stack(struct samples *s, uint32_t node)
{
	if (!is_new(s->node_known, node))
		return;
	if (!uni_row_stack(&s->stack, s->rows.p, node)) {
		s->w->oom = true;
		return;
	}
	for (size_t i = s->stack.frames.nr; i-- != 0;)
		intern_frame(s, s->stack.frames.v[i]);
	uni_pb_put_u64(&s->part, 1, (uint64_t)node + 1);
	for (size_t i = s->stack.frames.nr; i-- != 0;)
		uni_pb_put_u64(&s->part, 2, (uint64_t)s->stack.frames.v[i] + 1);
	uni_pb_put_part(&s->interned, I_CALLSTACK, &s->part);
	uni_pb_put_part(&s->w->packet, UNI_PF_INTERNED, &s->interned);
}

/* A value of several periods is as many samples: the format has no weights. */
static void put_sample(struct samples *s, const struct uni_row *row)
{
	const struct uni_row_track *t = &s->rows.tracks.v[row->track];
	uint64_t times = s->rows.timed ? (uint64_t)fmin(row->value, REPEAT_MAX) : 1;

	s->cut += s->rows.timed ? row->value - (double)times : row->value - 1.0;
	for (uint64_t i = 0; i < times && !s->w->oom; i++) {
		intern_stack(s, row->node);
		if (!t->off_cpu)
			uni_pb_put_u64(&s->part, 1, t->vcpu);
		uni_pb_put_u64(&s->part, 2, t->guest + UINT64_C(1));
		uni_pb_put_u64(&s->part, 3, FIRST_TID + row->lane);
		uni_pb_put_u64(&s->part, 4, (uint64_t)row->node + 1);
		uni_pb_put_u64(&s->part, 5, GUEST_KERNEL);
		if (!s->rows.timed)
			uni_pb_put_u64(&s->part, 6, (uint64_t)row->value);
		uni_pb_put_part(&s->w->packet, UNI_PF_PERF_SAMPLE, &s->part);
		uni_perfetto_packet(
			s->w, t->guest, row->t_ns + i * (uint64_t)s->rows.unit_ns, true);
	}
}

/* How long the guest stood still for the sample. */
static void put_pause(struct samples *s, const struct uni_row *row)
{
	const struct uni_row_track *t = &s->rows.tracks.v[row->track];
	uint64_t uuid = COUNTER_UUID + row->track;
	struct uni_perfetto *w = s->w;
	char name[64];

	if (row->pause_ns == 0 || t->off_cpu)
		return;
	if (!s->counter_known[row->track]) {
		s->counter_known[row->track] = true;
		(void)snprintf(name, sizeof(name), "pause of vcpu %" PRIu32, t->vcpu);
		uni_pb_put_u64(&w->part, 1, uuid);
		uni_pb_put_str(&w->part, 2, name);
		uni_pb_put_u64(&w->part, 5, uni_perfetto_process_uuid(t->guest));
		uni_pb_put_u64(&w->sub, 3, UNIT_TIME_NS);
		uni_pb_put_part(&w->part, 8, &w->sub);
		uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
		uni_perfetto_packet(w, t->guest, 0, false);
	}
	uni_pb_put_u64(&w->part, 9, 4); /* a counter's value */
	uni_pb_put_u64(&w->part, 11, uuid);
	uni_pb_put_u64(&w->part, 30, row->pause_ns);
	uni_pb_put_part(&w->packet, UNI_PF_TRACK_EVENT, &w->part);
	uni_perfetto_packet(w, t->guest, row->t_ns, true);
}

static void put_slice(struct samples *s, const struct uni_exit_row *row, bool begins)
{
	struct uni_perfetto *w = s->w;

	if (begins) {
		/* A debug annotation: how many exits the row stands for. */
		uni_pb_put_u64(&w->sub, 3, row->weight);
		uni_pb_put_str(&w->sub, 10, "exits");
		uni_pb_put_part(&w->part, 4, &w->sub);
	}
	uni_pb_put_u64(&w->part, 9, begins ? 1 : 2);
	uni_pb_put_u64(&w->part, 11, EXITS_UUID + row->lane);
	if (begins)
		uni_pb_put_str(&w->part, 23, uni_exit_row_name(&s->exits, row->frame));
	uni_pb_put_part(&w->packet, UNI_PF_TRACK_EVENT, &w->part);
	uni_perfetto_packet(w, s->guest, row->t_ns + (begins ? 0 : row->host_ns), true);
}

/* A track for each vCPU, on which an exit is a slice until the guest was entered again. */
static void put_exits(struct samples *s)
{
	struct uni_perfetto *w = s->w;
	char name[64];

	for (size_t i = 0; i < s->exits.lanes.nr; i++) {
		if (s->exits.lanes.v[i].guest != s->guest)
			continue;
		(void)snprintf(
			name, sizeof(name), "VM exits of vcpu %" PRIu32, s->exits.lanes.v[i].vcpu);
		uni_pb_put_u64(&w->part, 1, EXITS_UUID + i);
		uni_pb_put_str(&w->part, 2, name);
		uni_pb_put_u64(&w->part, 5, uni_perfetto_process_uuid(s->guest));
		uni_pb_put_part(&w->packet, UNI_PF_TRACK, &w->part);
		uni_perfetto_packet(w, s->guest, 0, false);
	}
	for (size_t i = 0; !w->oom && i < s->exits.rows.nr; i++) {
		const struct uni_exit_row *row = &s->exits.rows.v[i];

		if (s->exits.lanes.v[row->lane].guest != s->guest)
			continue;
		put_slice(s, row, true);
		put_slice(s, row, false);
	}
}

static void put_defaults(struct samples *s)
{
	struct uni_perfetto *w = s->w;

	/* TracePacketDefaults.perf_sample_defaults.timebase: frequency or period, and a name. */
	if (s->rows.timed)
		uni_pb_put_u64(&w->sub, 2, (uint64_t)(1e9 / s->rows.unit_ns + 0.5));
	else
		uni_pb_put_u64(&w->sub, 1, 1);
	uni_pb_put_str(&w->sub, 10, s->rows.timed ? "samples" : uni_profile_unit(s->rows.p));
	uni_pb_put_part(&w->part, 1, &w->sub);
	uni_pb_put_part(&w->sub, 12, &w->part);
	uni_pb_put_part(&w->packet, UNI_PF_DEFAULTS, &w->sub);
	uni_perfetto_packet(w, s->guest, 0, false);
}

static void put_guest(struct samples *s)
{
	char name[UNI_TEXT_MAX];

	memset(s->frame_known, 0, uni_profile_nr_frames(s->rows.p) / 8 + 1);
	memset(s->node_known, 0, uni_profile_nr_nodes(s->rows.p) / 8 + 1);
	s->w->begun = false;
	put_defaults(s);
	uni_rows_guest(&s->rows, s->guest, name);
	uni_perfetto_process(s->w, s->guest, name);
	for (uint32_t i = 0; i < s->rows.lanes.nr; i++) {
		if (s->rows.lanes.v[i].guest != s->guest)
			continue;
		uni_rows_lane(&s->rows, i, name);
		uni_perfetto_thread(s->w, s->guest, i + UINT64_C(1), FIRST_TID + i, name);
	}
	for (size_t i = 0; !s->w->oom && i < s->rows.rows.nr; i++) {
		const struct uni_row *row = &s->rows.rows.v[i];

		if (s->rows.tracks.v[row->track].guest != s->guest)
			continue;
		put_sample(s, row);
		put_pause(s, row);
	}
	put_exits(s);
}

static int put_samples(struct uni_perfetto *w, const struct uni_view *v, struct uni_err *err)
{
	struct samples s = { .w = w };
	int rc = uni_rows_init(&s.rows, v, err);

	uni_strbuf_init(&s.interned);
	uni_strbuf_init(&s.part);
	if (rc == 0)
		rc = uni_exit_rows_init(&s.exits, v, err);
	if (rc == 0) {
		s.frame_known = malloc(uni_profile_nr_frames(s.rows.p) / 8 + 1);
		s.node_known = malloc(uni_profile_nr_nodes(s.rows.p) / 8 + 1);
		s.counter_known = calloc(s.rows.tracks.nr + 1, sizeof(*s.counter_known));
		if (s.frame_known == NULL || s.node_known == NULL || s.counter_known == NULL)
			rc = uni_err_nomem(err);
	}
	for (; rc == 0 && s.guest < s.rows.nr_guests; s.guest++)
		put_guest(&s);
	if (rc == 0)
		uni_rows_say(&s.rows, v);
	if (s.cut != 0.0 && v->lost != NULL)
		uni_strbuf_addf(v->lost,
			"weights: %.0f of %.0f are not in the trace, in which a "
			"sample is one\n",
			s.cut, uni_profile_total(s.rows.p));
	w->oom = w->oom || uni_strbuf_failed(&s.interned) || uni_strbuf_failed(&s.part);
	uni_strbuf_deinit(&s.interned);
	uni_strbuf_deinit(&s.part);
	uni_vec_free(&s.stack.frames);
	free(s.frame_known);
	free(s.node_known);
	free(s.counter_known);
	uni_exit_rows_deinit(&s.exits);
	uni_rows_deinit(&s.rows);
	return rc;
}

static int write_perfetto(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err)
{
	struct uni_perfetto w = { .out = out };
	int rc = uni_export_opts_parse(&uni_exporter_perfetto, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_perfetto, v, err);
	if (rc != 0)
		return rc;
	uni_strbuf_init(&w.trace);
	uni_strbuf_init(&w.packet);
	uni_strbuf_init(&w.part);
	uni_strbuf_init(&w.sub);
	if (v->profile != NULL)
		rc = put_samples(&w, v, err);
	if (rc == 0 && v->timeline != NULL && uni_perfetto_calls(&w, v->timeline) != 0)
		w.oom = true;
	if (rc == 0 && v->promises != NULL && uni_perfetto_promises(&w, v->promises) != 0)
		w.oom = true;
	uni_perfetto_flush(&w);
	if (rc == 0 && (w.oom || w.packet.failed || w.part.failed || w.sub.failed))
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory writing for Perfetto");
	uni_strbuf_deinit(&w.trace);
	uni_strbuf_deinit(&w.packet);
	uni_strbuf_deinit(&w.part);
	uni_strbuf_deinit(&w.sub);
	return rc;
}
