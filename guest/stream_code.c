/* SPDX-License-Identifier: BSD-2-Clause */
/* Checksum and keyed hash of the stream protocol; freestanding, for the guest and the host. */
#include "uniscope/stream.h"

/* Four bits at a time: the guest needs a table of sixteen words only. */
uint32_t uni_stream_crc(uint32_t crc, const void *data, uint64_t size)
{
	/* x^28 ... in the reflected polynomial 0x82f63b78 (Castagnoli). */
	static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6,
		0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
	const uint8_t *p = data;

	crc = ~crc;
	for (uint64_t i = 0; i < size; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

uint32_t uni_stream_frame_crc(const struct uni_stream_frame *f, const void *body)
{
	uint32_t crc = uni_stream_crc(0, f, __builtin_offsetof(struct uni_stream_frame, crc));

	return uni_stream_crc(crc, body, f->size);
}

struct sip {
	uint64_t v[4];
	uint64_t word; /* of the bytes that make none yet */
	uint64_t size;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(struct sip *s, unsigned nr)
{
	uint64_t *v = s->v;

	while (nr--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t load(const uint8_t *p)
{
	uint64_t x = 0;

	for (unsigned i = 0; i < 8; i++)
		x |= (uint64_t)p[i] << 8 * i;
	return x;
}

static void store(uint8_t *p, uint64_t x)
{
	for (unsigned i = 0; i < 8; i++)
		p[i] = (uint8_t)(x >> 8 * i);
}

static void sip_begin(struct sip *s, const uint8_t key[UNI_STREAM_KEY_BYTES])
{
	uint64_t k0 = load(key), k1 = load(key + 8);

	s->v[0] = k0 ^ 0x736f6d6570736575ULL;
	s->v[1] = k1 ^ 0x646f72616e646f6dULL ^ 0xee; /* 16 bytes will come out */
	s->v[2] = k0 ^ 0x6c7967656e657261ULL;
	s->v[3] = k1 ^ 0x7465646279746573ULL;
	s->word = s->size = 0;
}

static void sip_add(struct sip *s, const void *data, uint64_t size)
{
	const uint8_t *p = data;

	for (uint64_t i = 0; i < size; i++) {
		s->word |= (uint64_t)p[i] << 8 * (s->size % 8);
		if (++s->size % 8)
			continue;
		s->v[3] ^= s->word;
		rounds(s, 2);
		s->v[0] ^= s->word;
		s->word = 0;
	}
}

static void sip_end(struct sip *s, uint8_t ret[16])
{
	uint64_t last = s->word | s->size << 56;

	s->v[3] ^= last;
	rounds(s, 2);
	s->v[0] ^= last;
	s->v[2] ^= 0xee;
	rounds(s, 4);
	store(ret, s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3]);
	s->v[1] ^= 0xdd;
	rounds(s, 4);
	store(ret + 8, s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3]);
}

void uni_stream_hash(
	const uint8_t key[UNI_STREAM_KEY_BYTES], const void *data, uint64_t size, uint8_t ret[16])
{
	struct sip s;

	sip_begin(&s, key);
	sip_add(&s, data, size);
	sip_end(&s, ret);
}

void uni_stream_derive(const uint8_t key[UNI_STREAM_KEY_BYTES],
	const uint8_t host_nonce[UNI_STREAM_NONCE], const uint8_t guest_nonce[UNI_STREAM_NONCE],
	struct uni_stream_secrets *ret)
{
	uint8_t *const to[] = { ret->host_proof, ret->guest_proof, ret->to_guest, ret->to_host };

	for (uint8_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		struct sip s;

		sip_begin(&s, key);
		sip_add(&s, &i, 1);
		sip_add(&s, host_nonce, UNI_STREAM_NONCE);
		sip_add(&s, guest_nonce, UNI_STREAM_NONCE);
		sip_end(&s, to[i]);
	}
}

void uni_stream_mac(const uint8_t key[UNI_STREAM_KEY_BYTES], const struct uni_stream_frame *f,
	const void *body, uint8_t ret[UNI_STREAM_MAC_BYTES])
{
	uint8_t hash[16];
	struct sip s;

	sip_begin(&s, key);
	sip_add(&s, f, __builtin_offsetof(struct uni_stream_frame, crc));
	if (f->size > UNI_STREAM_MAC_BYTES)
		sip_add(&s, body, f->size - UNI_STREAM_MAC_BYTES);
	sip_end(&s, hash);
	for (unsigned i = 0; i < UNI_STREAM_MAC_BYTES; i++)
		ret[i] = hash[i];
}

int uni_stream_same(const uint8_t *a, const uint8_t *b, unsigned size)
{
	uint8_t differ = 0;

	for (unsigned i = 0; i < size; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

int uni_stream_may_begin(const uint8_t *bytes, uint32_t left)
{
	const uint8_t *size = bytes + __builtin_offsetof(struct uni_stream_frame, size);

	for (uint32_t i = 0; i < 4 && i < left; i++) {
		if (bytes[i] != (uint8_t)(UNI_STREAM_MAGIC >> 8 * i))
			return 0;
	}
	if (left < sizeof(struct uni_stream_frame))
		return 1;
	return (size[0] | (uint32_t)size[1] << 8 | (uint32_t)size[2] << 16 |
		       (uint32_t)size[3] << 24) <= UNI_STREAM_BODY_MAX;
}
