/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pull protocol: how a host that cannot see a guest's memory reaches its tracer and sampler,
 * through any ordered stream of bytes. docs/formats/stream.md describes it. The first half of this
 * file is shared by both sides; a guest calls the second half.
 *
 * The host asks, the guest answers; nothing else is ever sent. Numbers are little-endian. The host
 * may read the tracer's own memory: rings, head, and the code if the guest patches itself. It may
 * write the tracer's control words, and switch sites on and off. It may do nothing else.
 */
#ifndef UNISCOPE_STREAM_H
#define UNISCOPE_STREAM_H

#include <stdint.h>
#include "uniscope/trace_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UNI_STREAM_MAGIC     0x724d5375u /* "uSMr" */
#define UNI_STREAM_VERSION   1
#define UNI_STREAM_BODY_MAX  4096 /* bytes behind a header */
#define UNI_STREAM_MAC_BYTES 8	  /* at the end of the body, once both sides have proved the key */
#define UNI_STREAM_KEY_BYTES 16
#define UNI_STREAM_NONCE     16
#define UNI_STREAM_PROOF     16
#define UNI_STREAM_ID_MAX    32
#define UNI_STREAM_NAME	     64

enum uni_stream_type {
	UNI_STREAM_HELLO = 1, /* struct uni_stream_hello, both ways; begins anew */
	UNI_STREAM_PROVE,     /* UNI_STREAM_PROOF bytes, both ways */
	UNI_STREAM_ABOUT,     /* - : struct uni_stream_about */
	UNI_STREAM_READ,      /* struct uni_stream_read[] : so many bytes of each, in that order */
	UNI_STREAM_PATCH,     /* struct uni_stream_patch[] : struct uni_stream_patched */
	UNI_STREAM_FREEZE, /* u32 1 or 0 : u32 what it was; stops the rings, or lets them go on */
	UNI_STREAM_STATS,  /* - : struct uni_stream_stats_body */
	UNI_STREAM_BYE,	   /* - : - ; samples are off, and the key has to be proved again */
};

/* Status of an answer. */
enum uni_stream_status {
	UNI_STREAM_OK,
	UNI_STREAM_UNKNOWN,  /* no such request, or not of this length */
	UNI_STREAM_NO_KEY,   /* the key is not proved yet, or wrong */
	UNI_STREAM_NOT_HERE, /* that address is none that may be read, or patched */
	UNI_STREAM_DIFFERS,  /* a place holds something else than it should: nothing is changed */
	UNI_STREAM_CANNOT,   /* this guest cannot do that */
	UNI_STREAM_VERSIONS, /* this guest speaks other versions */
};

struct uni_stream_frame {
	uint32_t magic;
	uint32_t id; /* of the request, rising; its answer has the same */
	uint16_t type;
	uint16_t status; /* of an answer; of a request 0 */
	uint32_t size;	 /* of the body, bytes */
	uint32_t reserved;
	uint32_t crc; /* CRC-32C of the fields before it and the body */
};

struct uni_stream_hello {
	uint32_t version; /* the host: the newest it speaks; the guest: the one to speak */
	uint32_t oldest;
	uint32_t flags; /* the guest: */
#define UNI_STREAM_WANTS_KEY 1u
	uint32_t reserved;
	uint8_t nonce[UNI_STREAM_NONCE];
};

struct uni_stream_about {
	uint32_t machine; /* ELF e_machine */
	uint32_t nr_cpus;
	uint64_t head;	   /* address of uni_trace_head */
	uint64_t samplers; /* of struct uni_trace_sampler[nr_cpus]; 0: it does not sample itself */
	uint32_t flags;
#define UNI_STREAM_PATCHES 1u /* it can patch its own sites */
	uint32_t build_id_size;
	uint8_t build_id[UNI_STREAM_ID_MAX];
	char name[UNI_STREAM_NAME]; /* text, filled up with 0 */
};

struct uni_stream_read {
	uint64_t va;
	uint32_t size; /* of all together: at most UNI_STREAM_BODY_MAX - UNI_STREAM_MAC_BYTES */
	uint32_t reserved;
};
#define UNI_STREAM_READ_MAX 64 /* of a request */

/* One place: a site in the code, or a word that the host may write of the tracer's head. */
struct uni_stream_patch {
	uint64_t va;
	uint8_t len;
	uint8_t reserved[7];
	uint8_t old_bytes[8], new_bytes[8];
};
#define UNI_STREAM_PATCH_MAX \
	((UNI_STREAM_BODY_MAX - UNI_STREAM_MAC_BYTES) / sizeof(struct uni_stream_patch))

struct uni_stream_patched {
	uint32_t nr_written; /* the others held the new bytes already */
	uint32_t bad;	     /* of NOT_HERE and DIFFERS: which one */
};

struct uni_stream_stats_body {
	uint64_t frames, bad_frames; /* that came: whole ones, and bytes that were none */
	uint64_t refused;	     /* for want of a key */
	uint64_t bytes_in, bytes_out;
	uint64_t cycles; /* spent for the host, in all */
	uint64_t now;	 /* the time-stamp counter */
};

UNI_TRACE_ASSERT(sizeof(struct uni_stream_frame) == 24);
UNI_TRACE_ASSERT(sizeof(struct uni_stream_hello) == 32);
UNI_TRACE_ASSERT(sizeof(struct uni_stream_about) == 128);
UNI_TRACE_ASSERT(sizeof(struct uni_stream_read) == 16);
UNI_TRACE_ASSERT(sizeof(struct uni_stream_patch) == 32);
UNI_TRACE_ASSERT(sizeof(struct uni_stream_stats_body) == 56);

/* guest/stream_code.c, which both sides compile. */

/* CRC-32C of `data` behind `crc`, which is 0 at first. */
uint32_t uni_stream_crc(uint32_t crc, const void *data, uint64_t size);
uint32_t uni_stream_frame_crc(const struct uni_stream_frame *f, const void *body);

/* SipHash-2-4 (Aumasson, Bernstein 2012), its variant of 16 bytes. */
void uni_stream_hash(
	const uint8_t key[UNI_STREAM_KEY_BYTES], const void *data, uint64_t size, uint8_t ret[16]);

/*
 * Derived from a key and both nonces: proofs that each side has the key, and the keys of frames.
 * They differ in each session.
 */
struct uni_stream_secrets {
	uint8_t host_proof[UNI_STREAM_PROOF], guest_proof[UNI_STREAM_PROOF];
	uint8_t to_guest[UNI_STREAM_KEY_BYTES], to_host[UNI_STREAM_KEY_BYTES];
};
void uni_stream_derive(const uint8_t key[UNI_STREAM_KEY_BYTES],
	const uint8_t host_nonce[UNI_STREAM_NONCE], const uint8_t guest_nonce[UNI_STREAM_NONCE],
	struct uni_stream_secrets *ret);
/* Over the frame's fields but crc, and the body without its last UNI_STREAM_MAC_BYTES. */
void uni_stream_mac(const uint8_t key[UNI_STREAM_KEY_BYTES], const struct uni_stream_frame *f,
	const void *body, uint8_t ret[UNI_STREAM_MAC_BYTES]);
/* Takes equally long wherever they differ. */
int uni_stream_same(const uint8_t *a, const uint8_t *b, unsigned size);
/* Returns whether a frame may begin at `bytes`, of which `left` are there. */
int uni_stream_may_begin(const uint8_t *bytes, uint32_t left);

/* --- what a guest calls ----------------------------------------------------------------------- */

struct uni_stream_config {
	/*
	 * Neither waits: they move as many bytes as there are, or as there is room for; 0: none
	 * now. The port is an ordered stream of bytes. The protocol survives a port that loses
	 * some.
	 */
	unsigned (*read)(void *ctx, void *buf, unsigned size);
	unsigned (*write)(void *ctx, const void *data, unsigned size);
	void *ctx;
	const uint8_t *key; /* UNI_STREAM_KEY_BYTES, kept by the guest; NULL: the port is trusted */
	const char *name;   /* what the guest is called, or NULL */
	const void *notes;  /* the section with its build-id (.note.gnu.build-id), or NULL */
	uint64_t notes_size;
	/*
	 * The code, which the host may read. `patch` writes all of `nr` places of 5 bytes, while no
	 * CPU runs there. NULL: the guest refuses to patch its own sites.
	 */
	uint64_t text_start, text_end;
	void (*patch)(void *ctx, const struct uni_stream_patch *place, unsigned nr);
	/*
	 * The places where functions may be traced, as the linker gathered them: __mcount_loc, or
	 * __patchable_function_entries. Only these places are entries then. Without them every nop
	 * of five bytes in the code is taken for one.
	 */
	const uint64_t *entries;
	uint64_t nr_entries;
	uint64_t seed; /* differs with each boot, if the guest has such a number */
};

/* One port, in memory of the guest, which looks at no field. */
struct uni_stream {
	struct uni_stream_config config;
	struct uni_stream_stats_body stats;
	uint8_t guest_nonce[UNI_STREAM_NONCE];
	struct uni_stream_secrets secrets;
	uint64_t nonces, heard; /* how many were made; when something came last */
	uint32_t last_id;
	uint8_t proved, greeted, sampling, froze, busy;
	uint32_t in_size, out_size, out_at;
	uint64_t checked, good_at; /* bytes of frames that were spoilt, since the last whole one */
	union {
		struct uni_stream_frame frame;
		uint8_t bytes[sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX];
	} in __attribute__((aligned(8))), out __attribute__((aligned(8)));
};

/* Call it after uni_trace_init() and uni_sample_init(). Until then the guest ignores the port. */
void uni_stream_init(struct uni_stream *s, const struct uni_stream_config *config);

/*
 * Moves what can be moved, `most` bytes or one frame more, and returns. Call it from the port's
 * interrupt, an idle loop or a timer, on one CPU at a time. Returns whether bytes wait to be sent
 * that the port had no room for. If the host has sent no request for ten seconds, samples and
 * freezes that it asked for end here. So call it from a timer as well if no interrupt comes without
 * a host (`most` may be 0).
 */
int uni_stream_poll(struct uni_stream *s, unsigned most);

#ifdef __cplusplus
}
#endif

#endif
