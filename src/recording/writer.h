/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a session being recorded. Sampling threads fill one packet a vCPU. Full packets,
 * and those that are a second old, go through a queue to a thread that only appends whole packets.
 * Packets come from a pool of fixed size: if the disk is too slow for it, samples are lost and
 * counted.
 */
#ifndef UNI_RECORDING_WRITER_H
#define UNI_RECORDING_WRITER_H

#include "recording/ctf.h"
#include "recording/recording.h"

struct uni_writer;

/* dir_fd is the session's folder, borrowed. */
int uni_writer_create(int dir_fd, struct uni_writer **ret, struct uni_err *err);
/* Writes everything in memory, stops and frees; NULL-safe. */
void uni_writer_destroy(struct uni_writer *w);

/*
 * Streams for the next guest, from number 0 on; its folder exists. Its samples may come from other
 * threads afterwards. The caller makes sure that there are at most UNI_GUEST_MAX guests. exits:
 * there will be some. vCPUs plugged in later get streams, too, up to UNI_SESSION_VCPUS_MAX in
 * all.
 */
int uni_writer_add_guest(struct uni_writer *w, uint32_t nr_vcpus, const uint8_t uuid[UNI_CTF_UUID],
	bool exits, struct uni_err *err);

/* Never waits for the disk; of any thread. */
void uni_writer_sample(struct uni_writer *w, const struct uni_sample *s);
void uni_writer_exit(struct uni_writer *w, const struct uni_stream_exit *e);

struct uni_writer_count {
	uint64_t written;	    /* samples */
	uint64_t lost;		    /* the same by weight */
	uint64_t exits, exits_lost; /* by weight */
};

/* Numbers of one guest so far. */
struct uni_writer_count uni_writer_count(struct uni_writer *w, uint32_t guest);
/* With those that came later. */
uint32_t uni_writer_nr_vcpus(struct uni_writer *w, uint32_t guest);
/* Numbers of all guests, including invalid ones. */
struct uni_writer_count uni_writer_total(struct uni_writer *w);

/* Waits until all samples are written. 0, or -errno of the first write that failed in the run. */
int uni_writer_flush(struct uni_writer *w);
/* The same, and no more samples are taken; the files are closed. */
int uni_writer_stop(struct uni_writer *w);

#endif
