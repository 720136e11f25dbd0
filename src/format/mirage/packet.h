/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_FORMAT_MIRAGE_PACKET_H
#define UNI_FORMAT_MIRAGE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "format/mirage/mirage.h"

#define UNI_MIRAGE_MAGIC	  0xc1fc1fc1u
#define UNI_MIRAGE_HEAD		  30
#define UNI_MIRAGE_EVENT_HEAD	  9
#define UNI_MIRAGE_SHOULD_RESOLVE "__should_resolve"
/* Ours: labels of nobody, which other viewers skip. */
#define UNI_MIRAGE_SUSPEND   "__suspend"
#define UNI_MIRAGE_HIBERNATE "__hibernate"
#define UNI_MIRAGE_RESUME    "__resume"
#define UNI_MIRAGE_END	     "__end"

extern const uint8_t uni_mirage_uuid[16];

struct uni_mirage_packet {
	size_t at, size, content; /* bytes; content with the header */
	uint64_t first;		  /* time of its first event */
	uint64_t second;	  /* the later of its first two's; 0: there is one only */
	uint64_t middle;	  /* of its first three's, of which one may be damaged; 0: fewer */
	uint16_t count;
	bool unused;
};

struct uni_mirage_packets {
	UNI_VEC(struct uni_mirage_packet) all;
};

/* Adds the packets that hold events, in the file's order; what lies between them is damage. */
int uni_mirage_scan(const uint8_t *data, size_t size, struct uni_mirage_packets *ret,
	struct uni_mirage_stats *st);
/* The oldest one first; `middle` is known by then. 0 or -UNI_ENOMEM. */
int uni_mirage_rotate(struct uni_mirage_packets *packets);

#endif
