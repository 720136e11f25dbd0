/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of the pull protocol in one process: the guest's library as guests link it, and the
 * host's target. The line between them can cut, spoil and forget bytes.
 */
#ifndef GUESTSTREAM_H
#define GUESTSTREAM_H

#include "backend/stream/stream.h"
#include "uniscope/sample.h"
#include "uniscope/trace.h"

/* The line: what the host sent and the guest has not read, and the other way round. */
struct line {
	uint8_t to_guest[1 << 16], to_host[1 << 16];
	size_t nr_to_guest, nr_to_host;
	unsigned room;	   /* what the guest's port takes at a time */
	uint64_t sent;	   /* bytes towards the host so far */
	uint64_t cut_at;   /* of these: from here on nothing more, and the line is closed */
	uint64_t spoil_at; /* this one is another */
	uint64_t lose_at;  /* this one is not there */
	bool spoil_request;
	void (*meanwhile)(void); /* what the guest does before each request; NULL: nothing */
};
extern struct line line;

extern struct uni_trace_cpu cpu;
extern struct uni_trace_sampler samplers[1];
extern struct uni_stream guest;
extern uint8_t text[64];
extern unsigned nr_patched; /* places, by the guest */
extern const uint8_t key[UNI_STREAM_KEY_BYTES];

/* its_key: what the guest wants, or NULL. */
void guest_start(const uint8_t *its_key, bool patches);
void guest_end(void);
int host_send(void *ctx, const void *data, size_t size, uint64_t deadline_ns);
int attach(const uint8_t *our_key, struct uni_target **ret, struct uni_err *err);
struct uni_target *attached(void);

/* The samples that came. */
struct got {
	uint64_t nr, frames, last_ns, weight, all; /* of the last one, and of all */
	uint64_t leaf, caller, outermost, sp_word;
	uint8_t stop;
	uint64_t copied, words[4];		     /* of a stack: bytes, and the first ones */
	uint64_t other_copied, other_sp, other_word; /* of another one; its last word */
	struct uni_regs regs;
};
void on_raw(void *ctx, const struct uni_stream_raw *s);
/* A stack of `depth` frames, each of two words. */
struct uni_sample_at deep(uint64_t *stack, unsigned words, unsigned depth);
extern const struct uni_stream_cfg at_1000; /* Hz */

#endif
