/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of a Unix process; unikernels' libc has no clock_gettime(). */
#include <stdint.h>
#include <time.h>

#define CAML_NAME_SPACE
#include <caml/bigarray.h>
#include <caml/mlvalues.h>

value uni_mprof_stamp(value buffer, value at)
{
	struct timespec t;
	uint64_t ns;
	uint8_t *p = (uint8_t *)Caml_ba_data_val(buffer) + Long_val(at);

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	for (unsigned i = 0; i < 8; i++)
		p[i] = (uint8_t)(ns >> 8 * i);
	return Val_unit;
}
