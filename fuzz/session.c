/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recorded sessions. Text that begins like JSON goes to the reader of session.json, all else to the
 * packet decoder. The decoder also gets it with correct sizes in the header, so that the events are
 * reached.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recording/ctf.h"
#include "recording/sjson.h"
#include "backend/exit.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_session(const struct uni_session *s)
{
	uint64_t nr_vcpus = 0;

	if (s->nr_guests == 0 || s->nr_guests > UNI_GUEST_MAX)
		abort();
	for (uint32_t i = 0; i < s->nr_guests; i++) {
		const struct uni_session_guest *g = s->guest[i];

		if (g->meta.nr_vcpus == 0 || g->meta.nr_vcpus > UNI_VCPU_MAX ||
			g->nr_watch > UNI_SESSION_WATCHES || g->stats.nr_times > UNI_VCPU_MAX)
			abort();
		if (strpbrk(g->meta.image_id, "/.") != NULL)
			abort();
		nr_vcpus += g->meta.nr_vcpus;
	}
	if (nr_vcpus > UNI_SESSION_VCPUS_MAX)
		abort();
}

static void tell_session(const struct uni_session *s)
{
	for (uint32_t i = 0; i < s->nr_guests; i++) {
		const struct uni_session_guest *g = s->guest[i];

		told_u64(g->meta.nr_vcpus);
		told_text(g->meta.image_id);
		told_u64(g->nr_watch);
		told_u64(g->stats.nr_times);
	}
}

static void try_json(const uint8_t *data, size_t size)
{
	struct uni_session *s = calloc(1, sizeof(*s));
	struct uni_err err = { 0 };

	if (s != NULL && uni_session_parse((const char *)data, size, s, &err) == 0) {
		check_session(s);
		tell_session(s);
		uni_session_free_parsed(s);
	} else if (s != NULL && err.code == 0) {
		abort(); /* each refusal has a message */
	}
	told_text(err.msg);
	free(s);
}

static void check_sample(const struct uni_sample *s, uint64_t *last_ns)
{
	told_u64(s->t_ns);
	told_u64((uint64_t)s->state << 32 | (uint64_t)s->stop << 16 | s->nr);
	told(s->pc, s->nr * sizeof(s->pc[0]));
	if (s->nr > UNI_CHAIN_MAX || s->stop >= UNI_STOP_NR || s->state >= UNI_VCPU_STATE_NR ||
		s->t_ns < *last_ns)
		abort();
	if (s->nr != 0 && (s->pc[s->nr - 1] == 1 && s->flags[s->nr - 1] == 0xa5))
		*last_ns = s->t_ns; /* reads the ends */
	*last_ns = s->t_ns;
}

static void try_packet(const uint8_t *data, size_t size)
{
	struct uni_ctf_reader *r = malloc(sizeof(*r));
	uint64_t last_ns = 0, nr = 0;
	struct uni_sample s;

	if (r != NULL && uni_ctf_reader_open(r, data, size) == 0) {
		while (uni_ctf_reader_next(r, &s)) {
			check_sample(&s, &last_ns);
			if (++nr > size)
				abort();
		}
	}
	free(r);
}

static void try_exits(const uint8_t *data, size_t size)
{
	struct uni_ctf_reader *r = malloc(sizeof(*r));
	uint64_t last_ns = 0, nr = 0;
	struct uni_stream_exit e;

	if (r != NULL && uni_ctf_reader_open_exits(r, data, size) == 0) {
		while (uni_ctf_reader_next_exit(r, &e)) {
			if (!uni_exit_is_sound(&e, UNI_CHAIN_MAX) || e.t_ns < last_ns)
				abort();
			if (e.nr != 0 && (e.pc[e.nr - 1] == 1 && e.flags[e.nr - 1] == 0xa5))
				last_ns = e.t_ns; /* reads the ends */
			last_ns = e.t_ns;
			told_u64(e.t_ns);
			told(e.pc, e.nr * sizeof(e.pc[0]));
			if (++nr > size)
				abort();
		}
	}
	free(r);
}

static void put_u64(uint8_t *p, uint64_t v)
{
	for (size_t i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void try_with_right_sizes(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size < UNI_CTF_HEADER_SIZE || size > UNI_CTF_PACKET_MAX)
		return;
	copy = malloc(size);
	if (copy == NULL)
		return;
	memcpy(copy, data, size);
	put_u64(copy, UNI_CTF_MAGIC | (uint64_t)copy[4] << 32);
	put_u64(copy + 24, 0);		/* timestamp_begin */
	put_u64(copy + 32, UINT64_MAX); /* timestamp_end */
	put_u64(copy + 40, (uint64_t)size * 8);
	put_u64(copy + 48, (uint64_t)size * 8);
	memset(copy + 20, 0, 4); /* stream_id */
	try_packet(copy, size);
	copy[20] = UNI_CTF_EXITS;
	try_exits(copy, size);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size != 0 && data[0] == '{') {
		try_json(data, size);
	} else {
		try_packet(data, size);
		try_exits(data, size);
		try_with_right_sizes(data, size);
	}
	return 0;
}
