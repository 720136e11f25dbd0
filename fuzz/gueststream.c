/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input to a guest's port, for the guest's own library: bytes, or requests in valid frames with
 * addresses that exist. The first byte says which, whether there is a key, and how the port
 * behaves.
 */
#include <stdlib.h>
#include <string.h>

#include "uniscope/sample.h"
#include "uniscope/stream.h"
#include "uniscope/trace.h"

#define SUBS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t memory[(SUBS + 1) * UNI_TRACE_SUB_SIZE];
static uint8_t text[256] __attribute__((aligned(16)));
static struct uni_trace_sampler samplers[1];
static struct uni_stream guest;
static const uint8_t key[UNI_STREAM_KEY_BYTES] = "a key";

static struct {
	const uint8_t *data;
	size_t size;
	unsigned piece;
	uint64_t sent;
} in;

static void require(int ok)
{
	if (!ok)
		abort();
}

static uint8_t next(void)
{
	if (in.size == 0)
		return 0;
	in.size--;
	return *in.data++;
}

static unsigned port_read(void *ctx, void *buf, unsigned size)
{
	size_t n = in.size < size ? in.size : size;

	require(size != 0);
	n = n < in.piece ? n : in.piece;
	memcpy(buf, in.data, n);
	in.data += n;
	in.size -= n;
	return (unsigned)n;
}

static unsigned port_write(void *ctx, const void *data, unsigned size)
{
	unsigned n = size < in.piece ? size : in.piece;
	uint8_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum ^= ((const uint8_t *)data)[i];
	in.sent += n + (sum == 1);
	return n;
}

static void patch(void *ctx, const struct uni_stream_patch *place, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		require(place[i].va >= (uint64_t)text &&
			place[i].va + 5 <= (uint64_t)text + sizeof(text));
		memcpy((void *)place[i].va, place[i].new_bytes, 5);
	}
}

static void start(int with_key)
{
	const struct uni_stream_config config = { .read = port_read,
		.write = port_write,
		.key = with_key ? key : NULL,
		.name = "fuzz",
		.notes = text + 128,
		.notes_size = 128,
		.text_start = (uint64_t)text,
		.text_end = (uint64_t)text + sizeof(text),
		.patch = patch };

	memset(&uni_trace_head, 0, sizeof(uni_trace_head));
	require(uni_trace_init(memory, sizeof(memory), 1, NULL, UNI_TRACE_OVERWRITE, 1000) == 0);
	uni_sample_init(samplers, 0);
	/* Places as they are, and notes of any kind. */
	for (size_t i = 0; i + 16 <= 128; i += 16)
		memcpy(text + i, "\x0f\x1f\x44\0\0\xc3\xcc\xcc\xcc\xcc", 10);
	for (size_t i = 128; i < sizeof(text); i++)
		text[i] = i < 140 ? next() & 31 : next();
	uni_stream_init(&guest, &config);
}

/* An address near something that the library knows. */
static uint64_t near(uint64_t va)
{
	const uint64_t base[] = { (uint64_t)&uni_trace_head, uni_trace_head.rings,
		uni_trace_head.hooks, uni_trace_head.samplers, (uint64_t)text, (uint64_t)memory,
		((const struct uni_trace_ring *)uni_trace_head.rings)->cpu, 0 };

	return base[va >> 61] + (va & 0xff) - 16;
}

/* One request into the port, as a host that may would send it. */
static void request(void)
{
	static uint8_t frame[sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX];
	struct uni_stream_frame f = { .magic = UNI_STREAM_MAGIC, .id = guest.last_id + 1 };
	uint8_t *body = frame + sizeof(f);
	const uint8_t *rest;
	size_t left;
	uint64_t va;

	f.type = next() % 10;
	f.size = next() * 2u;
	for (uint32_t i = 0; i < f.size; i++)
		body[i] = next();
	for (uint32_t i = 0;
		(f.type == UNI_STREAM_READ || f.type == UNI_STREAM_PATCH) && i + 8 <= f.size;
		i += sizeof(struct uni_stream_patch)) {
		memcpy(&va, body + i, 8);
		va = near(va);
		memcpy(body + i, &va, 8);
	}
	if (guest.greeted && f.type == UNI_STREAM_PROVE && f.size == 2)
		memcpy(body, guest.secrets.host_proof, f.size = UNI_STREAM_PROOF);
	if (guest.proved) {
		f.size += UNI_STREAM_MAC_BYTES;
		uni_stream_mac(
			guest.secrets.to_guest, &f, body, body + f.size - UNI_STREAM_MAC_BYTES);
	}
	f.crc = uni_stream_frame_crc(&f, body);
	memcpy(frame, &f, sizeof(f));
	rest = in.data;
	left = in.size;
	in.data = frame;
	in.size = sizeof(f) + f.size;
	for (unsigned i = 0; i < 100000 && (uni_stream_poll(&guest, 64) || in.size); i++)
		;
	require(in.size == 0);
	in.data = rest;
	in.size = left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how;

	in.data = data;
	in.size = size;
	how = next();
	in.piece = how & 4 ? 3 : 4096;
	start(how & 2);
	if (how & 1) {
		while (in.size)
			request();
	} else {
		for (size_t i = 0; i < 2 * size + 8; i++)
			(void)uni_stream_poll(&guest, 64);
		require(in.size == 0 || guest.out_size);
	}
	require(guest.in_size <= sizeof(guest.in) && guest.out_size <= sizeof(guest.out));
	/* Whatever was said, the ring goes on. */
	uni_trace_thaw();
	require(uni_trace_event(UNI_TRACE_CLASS_USER, NULL, 0) == 0);
	return 0;
}
