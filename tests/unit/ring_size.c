/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest's memory bounds the rings that it states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/ring.h"

#define CPUS 4u
#define SUBS UNI_TRACE_SUB_MIN
#define RING (SUBS * (uint64_t)UNI_TRACE_SUB_SIZE)

static struct uni_trace_head head;
static struct uni_trace_ring ring[CPUS];
static struct uni_trace_cpu cpu[CPUS];

static int read_self(void *ctx, uint64_t va, void *buf, size_t len)
{
	(void)ctx;
	memcpy(buf, (const void *)(uintptr_t)va, len);
	return 0;
}

static int state_rings(void **state)
{
	(void)state;
	memset(&head, 0, sizeof(head));
	memcpy(head.magic, UNI_TRACE_MAGIC, sizeof(head.magic));
	head.version = UNI_TRACE_VERSION;
	head.size = sizeof(head);
	head.nr_cpus = CPUS;
	head.sub_size = UNI_TRACE_SUB_SIZE;
	head.rings = (uint64_t)ring;
	for (unsigned i = 0; i < CPUS; i++)
		ring[i] = (struct uni_trace_ring){
			.cpu = (uint64_t)&cpu[i], .base = RING * (i + 1), .nr_subs = SUBS
		};
	return 0;
}

static int open_rings(uint64_t memory_bytes)
{
	const struct uni_ring_source source = { .read = read_self, .memory_bytes = memory_bytes };
	struct uni_err err = { 0 };
	struct uni_ring *r = NULL;
	int rc = uni_ring_open(&source, (uint64_t)&head, &r, &err);

	assert_int_equal(rc != 0, err.msg[0] != '\0');
	uni_ring_close(r);
	return rc;
}

static void fits_memory(void **state)
{
	(void)state;
	assert_int_equal(open_rings(0), 0);
	assert_int_equal(open_rings(CPUS * RING), 0);
	assert_int_equal(open_rings(CPUS * RING - 1), -UNI_EFORMAT);
	ring[2].nr_subs = UNI_RING_SUBS_MAX;
	ring[3].base = ring[2].base + UNI_RING_SUBS_MAX * (uint64_t)UNI_TRACE_SUB_SIZE;
	assert_int_equal(open_rings((uint64_t)64 << 20), -UNI_EFORMAT);
	assert_int_equal(open_rings(0), 0);
}

static void lies_apart(void **state)
{
	(void)state;
	ring[1].base = ring[3].base;
	assert_int_equal(open_rings(0), -UNI_EFORMAT);
	ring[1].base = ring[3].base + RING - UNI_TRACE_SUB_SIZE;
	assert_int_equal(open_rings(0), -UNI_EFORMAT);
	ring[1].base = ring[3].base - RING + UNI_TRACE_SUB_SIZE;
	assert_int_equal(open_rings(0), -UNI_EFORMAT);
	ring[1].base = ring[3].base + RING;
	assert_int_equal(open_rings(0), 0);
}

/* A guest that does not know its counter's rate has it from its hypervisor. */
static void rate_of_the_hypervisor(void **state)
{
	const struct {
		uint64_t says, told, hz;
	} row[] = { { 0, 0, 0 }, { 0, 2600000000, 2600000000 }, { 1000000, 2600000000, 1000000 } };
	struct uni_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct uni_ring_source source = { .read = read_self,
			.counter_hz = row[i].told };
		struct uni_ring *r = NULL;

		head.tsc_hz = row[i].says;
		assert_int_equal(uni_ring_open(&source, (uint64_t)&head, &r, &err), 0);
		assert_int_equal(uni_ring_info(r)->tsc_hz, row[i].hz);
		uni_ring_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(fits_memory, state_rings),
		cmocka_unit_test_setup(lies_apart, state_rings),
		cmocka_unit_test_setup(rate_of_the_hypervisor, state_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
