/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Xen's headers: what the port uses. */
#include <stdint.h>
struct xencons_interface {
	char in[1024], out[2048];
	uint32_t in_cons, in_prod, out_cons, out_prod;
};
