/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leaves the VM a known number of times from known functions: by port writes and reads, or by
 * memory if there are no ports. With hyper=1 also by hypercalls, which need KVM on a CPU of the
 * vendor that the guest sees, and are fatal elsewhere. `calls` of the books counts the exits of
 * each.
 *
 * Known answer, a round: out_often 10000 (port 0x80, one byte), out_seldom 1000 (port 0x84, four
 * bytes), in_some 500 (port 0x85, two bytes), mmio_store 400, mmio_load 200 (at DEVICE_PA),
 * hyper_some 300 (number 1).
 */
#include "lab.h"
#include "cpu.h"

#define DEVICE_VA 0xffffffffc0001000
#define DEVICE_PA 0xd0000000 /* no RAM, no device: on each machine the VMM has to say so */

#define NR_OFTEN  10000
#define NR_SELDOM 1000
#define NR_IN	  500
#define NR_STORE  400
#define NR_LOAD	  200
#define NR_HYPER  300

#define HYPERCALL 1 /* does nothing on all KVMs */

const char lab_app_name[] = "ports";

LAB_FN(out_often);
LAB_FN(out_seldom);
LAB_FN(in_some);
LAB_FN(mmio_store);
LAB_FN(mmio_load);
LAB_FN(hyper_some);

/* The instructions are in these functions themselves, and so are the loops. */
LAB_FUNC static void out_often(void)
{
	for (unsigned i = 0; i < NR_OFTEN; i++)
		lab_outb(0x80, (uint8_t)i);
}

LAB_FUNC static void out_seldom(void)
{
	for (unsigned i = 0; i < NR_SELDOM; i++)
		lab_outl(0x84, i);
}

LAB_FUNC static void in_some(void)
{
	uint16_t value;

	for (unsigned i = 0; i < NR_IN; i++)
		__asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"((uint16_t)0x85));
}

LAB_FUNC static void mmio_store(void)
{
	for (unsigned i = 0; i < NR_STORE; i++)
		*(volatile uint32_t *)(DEVICE_VA + 0x10) = i;
}

LAB_FUNC static void mmio_load(void)
{
	for (unsigned i = 0; i < NR_LOAD; i++)
		(void)*(volatile uint32_t *)(DEVICE_VA + 0x24);
}

LAB_FUNC static void hyper_some(void)
{
	for (unsigned i = 0; i < NR_HYPER; i++) {
		uint64_t result = HYPERCALL;

		__asm__ volatile("vmcall" : "+a"(result) : "b"(0ULL) : "memory");
	}
}

/* fn under the name by which the books know it: one call is counted by LAB_ENTER. */
#define CHARGED(fn, nr)                \
	do {                           \
		LAB_ENTER(fn);         \
		fn();                  \
		LAB_COUNT(fn, (nr)-1); \
		LAB_LEAVE(fn);         \
	} while (0)

LAB_FUNC static void use_ports(void)
{
	CHARGED(out_often, NR_OFTEN);
	CHARGED(out_seldom, NR_SELDOM);
	CHARGED(in_some, NR_IN);
}

LAB_FUNC static void use_device(void)
{
	CHARGED(mmio_store, NR_STORE);
	CHARGED(mmio_load, NR_LOAD);
}

LAB_FUNC static void use_host(void)
{
	CHARGED(hyper_some, NR_HYPER);
}

LAB_FUNC void app_main(void)
{
	static bool mapped, hyper;
	uint64_t rounds = lab_rounds(1);

	if (!mapped) {
		lab_map(DEVICE_VA, DEVICE_PA, PTE_WRITE | PTE_NX | PTE_PCD | PTE_PWT, 12);
		hyper = lab_arg("hyper", 0);
		mapped = true;
	}
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++) {
		use_ports();
		use_device();
		if (hyper)
			use_host();
	}
}
