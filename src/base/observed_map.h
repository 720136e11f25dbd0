/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_BASE_OBSERVED_MAP_H
#define UNI_BASE_OBSERVED_MAP_H

#include <stdint.h>

/* The shape of a map, as bpf(BPF_MAP_CREATE) takes it. */
struct uni_observer_map {
	char name[16];
	uint32_t type, key, value, nr, flags;
};

#endif
