/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's side of the pull protocol. It receives one request and sends its answer before it
 * looks at the next one. So it needs two buffers only, and a slow host slows down nobody but
 * itself. Received bytes are hostile until they are checked. Bytes that cannot be a frame are
 * skipped one by one.
 */
#include "uniscope/stream.h"
#include "uniscope/sample.h"
#include "uniscope/trace.h"

#include "machine.h"
#include "ring.h"
#include "stream_memory.h"

#define CHECKS_MAX 4  /* of each byte of a line without a whole frame */
#define LEASE_S	   10 /* without a request: samples that a host asked for are off */
#define NOTE_ID	   3  /* NT_GNU_BUILD_ID */

static void clear(void *to, uint64_t size)
{
	volatile uint8_t *t = to;

	for (uint64_t i = 0; i < size; i++)
		t[i] = 0;
}

static int same(const void *a, const void *b, unsigned size)
{
	return uni_stream_same(a, b, size);
}

static void thaw(struct uni_stream *s)
{
	if (s->froze)
		uni_trace_thaw();
	s->froze = 0;
}

static unsigned on_freeze(struct uni_stream *s, uint32_t size, uint32_t *size_ret)
{
	uint32_t want, was = uni_trace_head.frozen;

	if (size != sizeof(want))
		return UNI_STREAM_UNKNOWN;
	uni_stream_copy(&want, uni_stream_body_in(s), sizeof(want));
	if (want && !was) {
		uni_trace_freeze();
		s->froze = 1;
	} else if (!want) {
		s->froze = 0;
		uni_trace_thaw();
	}
	uni_stream_copy(uni_stream_body_out(s), &was, sizeof(was));
	*size_ret = sizeof(was);
	return UNI_STREAM_OK;
}

/* --- who is there ----------------------------------------------------------------------------- */

static void make_nonce(struct uni_stream *s)
{
	static const uint8_t none[UNI_STREAM_KEY_BYTES];
	struct {
		uint64_t time, nr, seed;
		uint8_t uuid[16];
	} from = { uni_machine_time(), ++s->nonces, s->config.seed, { 0 } };

	uni_stream_copy(from.uuid, uni_trace_head.uuid, sizeof(from.uuid));
	uni_stream_hash(s->config.key ? s->config.key : none, &from, sizeof(from), s->guest_nonce);
}

static void forget(struct uni_stream *s)
{
	thaw(s); /* the host that froze it is gone */
	s->proved = s->greeted = 0;
	s->last_id = 0;
	clear(&s->secrets, sizeof(s->secrets));
}

static void stop_sampling(struct uni_stream *s)
{
	if (s->sampling)
		uni_sample_set_hz(0);
	s->sampling = 0;
}

static unsigned on_hello(struct uni_stream *s, uint32_t size, uint32_t *size_ret)
{
	struct uni_stream_hello h;

	if (size != sizeof(h))
		return UNI_STREAM_UNKNOWN;
	uni_stream_copy(&h, uni_stream_body_in(s), sizeof(h));
	if (h.oldest > UNI_STREAM_VERSION || h.version < UNI_STREAM_VERSION)
		return UNI_STREAM_VERSIONS;
	stop_sampling(s);
	forget(s);
	make_nonce(s);
	if (s->config.key)
		uni_stream_derive(s->config.key, h.nonce, s->guest_nonce, &s->secrets);
	s->greeted = 1;
	h.version = h.oldest = UNI_STREAM_VERSION;
	h.flags = s->config.key ? UNI_STREAM_WANTS_KEY : 0;
	h.reserved = 0;
	uni_stream_copy(h.nonce, s->guest_nonce, sizeof(h.nonce));
	uni_stream_copy(uni_stream_body_out(s), &h, sizeof(h));
	*size_ret = sizeof(h);
	return UNI_STREAM_OK;
}

static unsigned on_prove(struct uni_stream *s, uint32_t size, uint32_t *size_ret)
{
	if (!s->config.key || !s->greeted || size != UNI_STREAM_PROOF)
		return UNI_STREAM_UNKNOWN;
	if (!same(uni_stream_body_in(s), s->secrets.host_proof, UNI_STREAM_PROOF)) {
		forget(s); /* one guess for each nonce */
		s->stats.refused++;
		return UNI_STREAM_NO_KEY;
	}
	uni_stream_copy(uni_stream_body_out(s), s->secrets.guest_proof, UNI_STREAM_PROOF);
	*size_ret = UNI_STREAM_PROOF;
	return UNI_STREAM_OK;
}

static void find_build_id(const struct uni_stream_config *c, struct uni_stream_about *a)
{
	const uint8_t *p = c->notes;
	uint64_t left = p ? c->notes_size : 0;

	while (left >= 12) {
		uint32_t n[3]; /* bytes of the name, bytes of the rest, type */
		uint64_t name, whole;

		uni_stream_copy(n, p, sizeof(n));
		name = ((uint64_t)n[0] + 3) & ~3ULL;
		whole = 12 + name + (((uint64_t)n[1] + 3) & ~3ULL);
		if (whole > left)
			return;
		if (n[2] == NOTE_ID && n[0] == 4 && same(p + 12, "GNU", 4) &&
			n[1] <= UNI_STREAM_ID_MAX) {
			uni_stream_copy(a->build_id, p + 12 + name, n[1]);
			a->build_id_size = n[1];
			return;
		}
		p += whole;
		left -= whole;
	}
}

static unsigned on_about(struct uni_stream *s, uint32_t *size_ret)
{
	struct uni_stream_about *a = (struct uni_stream_about *)uni_stream_body_out(s);
	const char *name = s->config.name;

	clear(a, sizeof(*a));
	a->machine = uni_trace_head.machine;
	a->nr_cpus = uni_trace_head.nr_cpus;
	a->head = (uint64_t)&uni_trace_head;
	a->samplers = uni_trace_head.samplers;
	a->flags = s->config.patch ? UNI_STREAM_PATCHES : 0;
	find_build_id(&s->config, a);
	for (unsigned i = 0; name && name[i] && i < sizeof(a->name) - 1; i++)
		a->name[i] = name[i];
	*size_ret = sizeof(*a);
	return UNI_STREAM_OK;
}

static unsigned on_stats(struct uni_stream *s, uint32_t *size_ret)
{
	s->stats.now = uni_machine_time();
	uni_stream_copy(uni_stream_body_out(s), &s->stats, sizeof(s->stats));
	*size_ret = sizeof(s->stats);
	return UNI_STREAM_OK;
}

/* --- frames ----------------------------------------------------------------------------------- */

static unsigned answer(struct uni_stream *s, uint32_t size, uint32_t *size_ret)
{
	switch (s->in.frame.type) {
	case UNI_STREAM_ABOUT:
		return on_about(s, size_ret);
	case UNI_STREAM_READ:
		return uni_stream_on_read(s, size, size_ret);
	case UNI_STREAM_PATCH:
		return uni_stream_on_patch(s, size, size_ret);
	case UNI_STREAM_FREEZE:
		return on_freeze(s, size, size_ret);
	case UNI_STREAM_STATS:
		return on_stats(s, size_ret);
	case UNI_STREAM_BYE:
		stop_sampling(s);
		return UNI_STREAM_OK;
	default:
		return UNI_STREAM_UNKNOWN;
	}
}

static void send(struct uni_stream *s, unsigned status, uint32_t size, int sealed)
{
	struct uni_stream_frame *f = &s->out.frame;

	*f = (struct uni_stream_frame){ .magic = UNI_STREAM_MAGIC,
		.id = s->in.frame.id,
		.type = s->in.frame.type,
		.status = (uint16_t)status,
		.size = size + (sealed ? UNI_STREAM_MAC_BYTES : 0) };
	if (sealed)
		uni_stream_mac(s->secrets.to_host, f, uni_stream_body_out(s),
			uni_stream_body_out(s) + size);
	f->crc = uni_stream_frame_crc(f, uni_stream_body_out(s));
	s->out_at = 0;
	s->out_size = UNI_STREAM_HEAD + f->size;
}

/* True if the host that proved its key made this frame, and the frame is not a repeated one. */
static int is_sealed(struct uni_stream *s)
{
	const struct uni_stream_frame *f = &s->in.frame;
	uint8_t mac[UNI_STREAM_MAC_BYTES];

	if (f->size < UNI_STREAM_MAC_BYTES || f->id <= s->last_id)
		return 0;
	uni_stream_mac(s->secrets.to_guest, f, uni_stream_body_in(s), mac);
	if (!same(mac, uni_stream_body_in(s) + f->size - UNI_STREAM_MAC_BYTES,
		    UNI_STREAM_MAC_BYTES))
		return 0;
	s->last_id = f->id;
	return 1;
}

static void handle(struct uni_stream *s)
{
	const struct uni_stream_frame *f = &s->in.frame;
	uint32_t size = 0, body = f->size;
	unsigned status;

	s->stats.frames++;
	if (f->type == UNI_STREAM_HELLO || f->type == UNI_STREAM_PROVE) {
		status = f->type == UNI_STREAM_HELLO ? on_hello(s, body, &size)
						     : on_prove(s, body, &size);
		send(s, status, size, 0);
		s->proved = f->type == UNI_STREAM_PROVE && status == UNI_STREAM_OK;
		return;
	}
	if (s->config.key && !s->proved) {
		s->stats.refused++;
		send(s, UNI_STREAM_NO_KEY, 0, 0);
		return;
	}
	if (s->proved && !is_sealed(s)) {
		s->stats.refused++;
		return;
	}
	s->heard = uni_machine_time();
	status = answer(s, body - (s->proved ? UNI_STREAM_MAC_BYTES : 0), &size);
	send(s, status, size, s->proved);
	if (f->type == UNI_STREAM_BYE)
		forget(s);
}

/*
 * The first byte received begins no frame: drops bytes up to one that may. A hostile host can
 * overlap heads of frames so that each byte is checked many times. If more bytes were checked than
 * a noisy line explains, all received bytes are dropped.
 */
static void pass_over(struct uni_stream *s, uint32_t checked)
{
	uint32_t at = 1;

	s->checked += checked;
	if (checked && s->checked > CHECKS_MAX * (s->stats.bytes_in - s->good_at) + sizeof(s->in))
		at = s->in_size;
	while (at < s->in_size && !uni_stream_may_begin(s->in.bytes + at, s->in_size - at))
		at++;
	s->stats.bad_frames++;
	s->in_size -= at;
	uni_stream_copy(s->in.bytes, s->in.bytes + at, s->in_size);
}

/* Returns how many bytes are missing before the next step; 0: a request was handled. */
static uint32_t take(struct uni_stream *s)
{
	const struct uni_stream_frame *f = &s->in.frame;
	uint32_t whole, checked;

	for (;;) {
		if (s->in_size < UNI_STREAM_HEAD)
			return UNI_STREAM_HEAD - s->in_size;
		whole = UNI_STREAM_HEAD + f->size;
		checked = 0;
		if (f->magic == UNI_STREAM_MAGIC && f->size <= UNI_STREAM_BODY_MAX) {
			if (s->in_size < whole)
				return whole - s->in_size;
			if (f->crc == uni_stream_frame_crc(f, uni_stream_body_in(s)))
				break;
			checked = whole;
		}
		pass_over(s, checked);
	}
	s->checked = 0;
	s->good_at = s->stats.bytes_in;
	handle(s);
	s->in_size -= whole;
	uni_stream_copy(s->in.bytes, s->in.bytes + whole, s->in_size);
	return 0;
}

/* Returns how many bytes went out; -1: some could not. */
static int push(struct uni_stream *s)
{
	const struct uni_stream_config *c = &s->config;
	uint32_t left = s->out_size - s->out_at;
	unsigned n = c->write(c->ctx, s->out.bytes + s->out_at, left);

	n = n > left ? left : n;
	s->out_at += n;
	s->stats.bytes_out += n;
	if (s->out_at < s->out_size)
		return -1;
	s->out_at = s->out_size = 0;
	return (int)n;
}

static int move(struct uni_stream *s, unsigned most)
{
	const struct uni_stream_config *c = &s->config;
	unsigned moved = 0, n;

	while (moved < most) {
		uint32_t want;

		if (s->out_size) {
			int sent = push(s);

			if (sent < 0)
				return 1;
			moved += (unsigned)sent;
		}
		want = take(s);
		if (!want)
			continue;
		n = c->read(c->ctx, s->in.bytes + s->in_size, want);
		if (!n)
			return 0;
		n = n > want ? want : n;
		s->in_size += n;
		s->stats.bytes_in += n;
		moved += n;
	}
	return s->out_size != 0;
}

int uni_stream_poll(struct uni_stream *s, unsigned most)
{
	uint64_t begin = uni_machine_time(), hz = uni_trace_head.tsc_hz;
	int more;

	if (s->busy) /* the interrupted code goes on with it */
		return 0;
	s->busy = 1;
	uni_machine_release();
	more = move(s, most);
	if (hz && begin > s->heard && (begin - s->heard) / hz >= LEASE_S) {
		stop_sampling(s);
		thaw(s);
	}
	begin = uni_machine_time() - begin;
	s->stats.cycles += begin;
	uni_sample_leave_out(begin);
	uni_machine_release();
	s->busy = 0;
	return more;
}

void uni_stream_init(struct uni_stream *s, const struct uni_stream_config *config)
{
	clear(s, sizeof(*s));
	s->config = *config;
	s->heard = uni_machine_time();
}
