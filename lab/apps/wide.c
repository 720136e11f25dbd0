/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As many vCPUs as there are. Number n calls wide_(n % 8) rounds=N (50) times, and once more to
 * stay in it for good, halted. So a guest of hundreds costs its host next to nothing. The place and
 * the calls of each vCPU are known.
 */
#include "lab.h"
#include "cpu.h"
#include "lab_wide.h"

const char lab_app_name[] = "wide";

struct lab_wide lab_wide;

static void called(bool last)
{
	lab_wide.calls[lab_cpu_id()]++;
	if (!last)
		return;
	__atomic_fetch_add(&lab_wide.nr_standing, 1, __ATOMIC_RELEASE);
	lab_vcpu_park();
}

#define WIDE(n)                                  \
	LAB_FUNC static void wide_##n(bool last) \
	{                                        \
		called(last);                    \
		__asm__ volatile("" : : "i"(n)); \
	}

WIDE(0)
WIDE(1)
WIDE(2)
WIDE(3)
WIDE(4)
WIDE(5)
WIDE(6)
WIDE(7)

static void (*const fn[LAB_WIDE_FNS])(
	bool last) = { wide_0, wide_1, wide_2, wide_3, wide_4, wide_5, wide_6, wide_7 };

LAB_FUNC static void wide_work(unsigned cpu)
{
	uint64_t rounds = lab_rounds(50);

	for (uint64_t i = 0; i < rounds; i++)
		fn[cpu % LAB_WIDE_FNS](false);
	if (cpu == 0) {
		while (__atomic_load_n(&lab_wide.nr_standing, __ATOMIC_ACQUIRE) + 1 <
			lab_wide.nr_cpus)
			lab_relax();
		lab_printf("wide: %u vCPUs stand\n", lab_wide.nr_cpus);
	}
	fn[cpu % LAB_WIDE_FNS](true);
}

LAB_FUNC void app_main(void)
{
	lab_wide.magic = LAB_WIDE_MAGIC;
	lab_wide.nr_cpus = lab_smp_start(wide_work);
	wide_work(0);
}
