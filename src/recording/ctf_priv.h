/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared parts of streams of samples and of exits. */
#ifndef UNI_RECORDING_CTF_PRIV_H
#define UNI_RECORDING_CTF_PRIV_H

#include "base/cursor.h"
#include "recording/ctf.h"

#define UNI_CTF_EVENT_HEADER 9u
#define UNI_CTF_FRAME_SIZE   9u

uint8_t *uni_ctf_put_le(uint8_t *p, uint64_t v, size_t bytes);
/* Id and time of an event at the packet's end; returns where its fields go. */
uint8_t *uni_ctf_put_event(struct uni_ctf_packet *p, enum uni_ctf_event id, uint64_t t_ns);
/* The id of the sample's chain in this packet, which gets it if it is new. There is room. */
uint32_t uni_ctf_intern(struct uni_ctf_packet *p, const struct uni_sample *s);
/* An event of `size` bytes was written at the end. */
void uni_ctf_packet_grow(struct uni_ctf_packet *p, uint32_t size, uint64_t t_ns);

/* Fields of the event that is no chain; false if the writer never makes such. */
typedef bool uni_ctf_body(struct uni_ctf_reader *r, struct uni_cursor *c, void *ret);

int uni_ctf_open(struct uni_ctf_reader *r, const void *data, size_t size, uint32_t stream,
	uni_ctf_body *body, void *scratch);
/* 1: an event is in *ret, 0: the end, -UNI_EFORMAT. */
int uni_ctf_step(struct uni_ctf_reader *r, uni_ctf_body *body, void *ret);
/* The chain into r->pc and r->flags, and its length; false: no chain has that id. */
bool uni_ctf_chain(struct uni_ctf_reader *r, uint32_t stack, uint16_t *nr_ret);

/* Text of metadata: the stream and its stack event; files is what their names begin with. */
void uni_ctf_metadata_stream(struct uni_strbuf *out, enum uni_ctf_stream id, const char *files);
void uni_ctf_metadata_exits(struct uni_strbuf *out);

#endif
