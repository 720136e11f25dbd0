/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our CTF 1.8 layout for samples: its description in metadata, and how to fill and read a packet.
 * docs/formats/session.md draws it. All fields are byte-aligned and little endian:
 *
 *   packet  = header, context, event...
 *   header  = u32 magic, u8 uuid[16], u32 stream_id
 *   context = u64 timestamp_begin, timestamp_end, content_size, packet_size (bits),
 *             u64 events_discarded, packet_seq_num, u32 cpu_id
 *   event   = u8 id, u64 timestamp, then
 *             stack:  u32 id, u16 nr, u64 pc[nr], u8 flags[nr]
 *             sample: u32 stack, u64 weight, u32 thread, u32 pause_ns, u8 state, u8 stop
 *             or, in a stream of exits (stream_id 1),
 *             exit:   u32 stack, u64 weight, host_ns, asleep_ns, stolen_ns, info, u32 reason,
 *                     u8 isa, info_kind, access, size, userspace, stop
 *
 * Each packet has a chain once, before the first event that refers to it. Stack ids count from 0 in
 * each packet, so that any packet decodes alone.
 */
#ifndef UNI_RECORDING_CTF_H
#define UNI_RECORDING_CTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "recording/recording.h"

#define UNI_CTF_LAYOUT	    3 /* of this file; 1 is the same with states up to 3, 2 up to 6 */
#define UNI_CTF_MAGIC	    0xc1fc1fc1u
#define UNI_CTF_UUID	    16
#define UNI_CTF_PACKET_MAX  65536u /* bytes */
#define UNI_CTF_HEADER_SIZE 76u	   /* packet header and context */
#define UNI_CTF_STACK_MIN   15u	   /* bytes of a stack event without frames */
#define UNI_CTF_STACKS_MAX  (UNI_CTF_PACKET_MAX / UNI_CTF_STACK_MIN)
#define UNI_CTF_SLOTS	    4096u /* more than twice the stacks that fit with their samples */

enum uni_ctf_stream { UNI_CTF_SAMPLES = 0, UNI_CTF_EXITS = 1, UNI_CTF_STREAM_NR };

enum uni_ctf_event {
	UNI_CTF_STACK = 0,
	UNI_CTF_SAMPLE = 1,
	UNI_CTF_EXIT = 1,
};

/* The text of guest-N/metadata. */
void uni_ctf_metadata(
	struct uni_strbuf *out, const uint8_t uuid[UNI_CTF_UUID], uint64_t realtime_offset_ns);
/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" and a NUL into out, and back; false if malformed. */
void uni_ctf_uuid_print(const uint8_t uuid[UNI_CTF_UUID], char out[37]);
bool uni_ctf_uuid_parse(const char *s, uint8_t ret[UNI_CTF_UUID]);

/* A packet being filled. Large: never on a stack. */
struct uni_ctf_packet {
	struct uni_ctf_packet *next;		     /* the recorder's lists */
	uint32_t guest, vcpu, nr_samples, nr_stacks; /* nr_samples: or exits */
	uint32_t stream;			     /* enum uni_ctf_stream */
	uint64_t weight;			     /* of its samples or exits */
	uint64_t begin_ns, end_ns;		     /* first and last event */
	uint64_t discarded; /* samples of this stream lost before the packet was ended */
	uint32_t len;
	uint32_t slot[UNI_CTF_SLOTS]; /* hash of the chain -> offset of its event, 0 = free */
	uint8_t data[UNI_CTF_PACKET_MAX];
};

/* Starts a packet of samples. The caller sets the guest, and `stream` for exits. */
void uni_ctf_packet_start(struct uni_ctf_packet *p, uint32_t vcpu);
/* false: does not fit, p is unchanged. The sample is sound (uni_ctf_can_hold) and not older. */
bool uni_ctf_packet_add(struct uni_ctf_packet *p, const struct uni_sample *s);
bool uni_ctf_packet_add_exit(struct uni_ctf_packet *p, const struct uni_stream_exit *e);
/* Can the layout express it at all? */
bool uni_ctf_can_hold(const struct uni_sample *s);
bool uni_ctf_can_hold_exit(const struct uni_stream_exit *e);
/* Fills in header and context; data[0 .. len) is then a whole packet. */
void uni_ctf_packet_finish(struct uni_ctf_packet *p, const uint8_t uuid[UNI_CTF_UUID], uint64_t seq,
	uint64_t discarded);

struct uni_ctf_header {
	uint8_t uuid[UNI_CTF_UUID];
	uint64_t begin_ns, end_ns, discarded, seq;
	uint32_t content_size, packet_size; /* bytes */
	uint32_t vcpu, stream;
};

/* Parses the header of the packet at data, which may be cut. -UNI_EFORMAT: it is none of ours, or
 * has an impossible size. */
int uni_ctf_header_parse(const void *data, size_t size, struct uni_ctf_header *ret);

/* Decoder of one packet. Too large for a stack. */
struct uni_ctf_reader {
	struct uni_ctf_header h;
	const uint8_t *data; /* borrowed, h.content_size bytes */
	size_t pos;
	uint64_t last_ns;
	uint32_t nr_stacks;
	uint32_t stack[UNI_CTF_STACKS_MAX]; /* where the event's `nr` is */
	uint64_t pc[UNI_CHAIN_MAX];	    /* of the event returned last */
	uint8_t flags[UNI_CHAIN_MAX];
};

/*
 * Checks the whole packet first, so that a corrupt one gives no samples at all rather than some:
 * 0 or -UNI_EFORMAT. data stays borrowed while samples are taken.
 */
int uni_ctf_reader_open(struct uni_ctf_reader *r, const void *data, size_t size);
/* false at the end. The sample's pc and flags are valid until the next call. */
bool uni_ctf_reader_next(struct uni_ctf_reader *r, struct uni_sample *ret);

/* The same for a packet of exits. */
int uni_ctf_reader_open_exits(struct uni_ctf_reader *r, const void *data, size_t size);
bool uni_ctf_reader_next_exit(struct uni_ctf_reader *r, struct uni_stream_exit *ret);

#endif
