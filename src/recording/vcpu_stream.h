/* SPDX-License-Identifier: BSD-2-Clause */
/* For writer.c: the streams of a guest that is recorded, and one stream's file. */
#ifndef UNI_RECORDING_VCPU_STREAM_H
#define UNI_RECORDING_VCPU_STREAM_H

#include "recording/ctf.h"
#include "recording/writer.h"

struct uni_wstream {
	/* The writer thread's own: */
	int fd; /* -1 until the first packet */
	uint64_t size, seq;
	/* Under the writer's lock: */
	struct uni_ctf_packet *cur; /* NULL: none begun */
	uint64_t cur_since_ns, last_ns;
	uint64_t lost; /* by weight, of this stream, that are in no packet on disk or in memory */
};

struct uni_wguest {
	uint8_t uuid[UNI_CTF_UUID];
	struct uni_writer_count count;
	uint32_t nr_vcpus; /* the given number, and those that came later */
	struct uni_wstream *stream[UNI_CTF_STREAM_NR][UNI_VCPU_MAX]; /* NULL: nothing for it yet */
};

/* Made if there is none; NULL: out of memory, or no such vCPU can be. Under the writer's lock. */
struct uni_wstream *uni_wstream_get(struct uni_wguest *g, enum uni_ctf_stream kind, uint32_t vcpu);
/* The packet to its stream's file, whole or not at all. 0 or -errno. */
int uni_wstream_write(struct uni_wguest *g, int dir_fd, struct uni_ctf_packet *p);
/* All files of the guest. 0, or -errno of the first that could not be closed. */
int uni_wstream_close_all(struct uni_wguest *g);
/* And the guest itself. NULL-safe. */
void uni_wstream_free_all(struct uni_wguest *g);

#endif
