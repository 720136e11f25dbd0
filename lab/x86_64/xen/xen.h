/* SPDX-License-Identifier: BSD-2-Clause */
/* Hypercalls, and what the files of this folder share. */
#ifndef LAB_XEN_XEN_H
#define LAB_XEN_XEN_H

#include <stdbool.h>

#include "abi.h"

/* PVH guests see the console's page and xenstore's at these addresses. */
#define LAB_XEN_CONSOLE 0xffffffffc0001000
#define LAB_XEN_STORE	0xffffffffc0002000

extern bool lab_xen_pv;			      /* else PVH */
extern struct xen_shared_info lab_xen_shared; /* a page */

void lab_xen_console_init(struct xen_console *ring, uint32_t event);
uint64_t lab_xen_console_dropped(void); /* lines */
void lab_xen_event_init(void);
void lab_xen_store_init(struct xen_store *ring, uint32_t event); /* store.c */

void lab_port_tick(void); /* port.c */

/* tables.c: extends the tables that the domain builder made. */
void lab_xen_memory_init(const struct xen_pv_start_info *info);
uint64_t lab_xen_machine(uint64_t pa); /* what page tables and cr3 hold: PV's differ from pa */

/* The compiler does not see that there is a call: without this it may leave out the frame. */
register uint64_t lab_xen_rsp __asm__("rsp");

/* Always in the function that asks: its callee is the hypercall page. */
static inline __attribute__((always_inline)) int64_t lab_hypercall(
	const unsigned nr, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	register uint64_t r10 __asm__("r10") = a4;
	int64_t ret;

	__asm__ volatile("call hypercall_page + %c[stub]"
			 : "=a"(ret), "+D"(a1), "+S"(a2), "+d"(a3), "+r"(r10), "+r"(lab_xen_rsp)
			 : [stub] "i"(nr * 32)
			 : "rcx", "r8", "r9", "r11", "memory");
	return ret;
}

#endif
