/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of aarch64 as QEMU's plugin reads them; the words are those of GNU as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "plugin/plugin.h"

#define PC 0x401000u

struct insn {
	const char *text;
	uint32_t word;
};

static const uint8_t *bytes_of(const struct insn *insn)
{
	return (const uint8_t *)&insn->word;
}

static const struct {
	struct insn insn;
	enum flow flow;
	bool ends;
	uint64_t target;
} flows[] = {
	{ { "nop", 0xd503201f }, FLOW_ON, false, NOWHERE },
	{ { "b .+16", 0x14000004 }, FLOW_ON, true, PC + 16 },
	{ { "b .-8", 0x17fffffe }, FLOW_ON, true, PC - 8 },
	{ { "bl .+16", 0x94000004 }, FLOW_CALL, true, PC + 16 },
	{ { "bl .-16", 0x97fffffc }, FLOW_CALL, true, PC - 16 },
	{ { "blr x3", 0xd63f0060 }, FLOW_CALL, true, NOWHERE },
	{ { "blraa x3, x4", 0xd73f0864 }, FLOW_CALL, true, NOWHERE },
	{ { "blraaz x3", 0xd63f087f }, FLOW_CALL, true, NOWHERE },
	{ { "br x30", 0xd61f03c0 }, FLOW_JUMP, true, NOWHERE },
	{ { "braa x3, x4", 0xd71f0864 }, FLOW_JUMP, true, NOWHERE },
	{ { "ret", 0xd65f03c0 }, FLOW_RETURN, true, NOWHERE },
	{ { "ret x1", 0xd65f0020 }, FLOW_RETURN, true, NOWHERE },
	{ { "retaa", 0xd65f0bff }, FLOW_RETURN, true, NOWHERE },
	{ { "eret", 0xd69f03e0 }, FLOW_IRET, true, NOWHERE },
	{ { "b.eq .-8", 0x54ffffc0 }, FLOW_ON, false, PC - 8 },
	{ { "b.ne .+1024", 0x54002001 }, FLOW_ON, false, PC + 1024 },
	{ { "cbz w3, .+8", 0x34000043 }, FLOW_ON, false, PC + 8 },
	{ { "cbnz x3, .-8", 0xb5ffffc3 }, FLOW_ON, false, PC - 8 },
	{ { "tbz w3, #5, .+8", 0x36280043 }, FLOW_ON, false, PC + 8 },
	{ { "tbnz x3, #40, .-32768", 0xb7440003 }, FLOW_ON, false, PC - 32768 },
	{ { "svc #0", 0xd4000001 }, FLOW_SYSCALL, false, NOWHERE },
	{ { "hvc #0", 0xd4000002 }, FLOW_SYSCALL, false, NOWHERE },
	{ { "smc #0", 0xd4000003 }, FLOW_SYSCALL, false, NOWHERE },
	{ { "brk #1", 0xd4200020 }, FLOW_ON, false, NOWHERE },
	{ { "udf #0", 0x00000000 }, FLOW_ON, false, NOWHERE },
	{ { "isb", 0xd5033fdf }, FLOW_ON, false, NOWHERE },
};

static void flow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct flow_insn f = arch_aarch64.flow(PC, bytes_of(&flows[i].insn), 4);

		if (f.flow != flows[i].flow || f.ends != flows[i].ends ||
			f.target != flows[i].target)
			fail_msg("%s: flow %d, ends %d, target 0x%lx", flows[i].insn.text, f.flow,
				f.ends, f.target);
	}
}

static const struct {
	struct insn insn;
	bool may_stop;
} stops[] = {
	{ { "nop", 0xd503201f }, false },
	{ { "b .+16", 0x14000004 }, false },
	{ { "bl .+16", 0x94000004 }, false },
	{ { "blr x3", 0xd63f0060 }, false },
	{ { "ret", 0xd65f03c0 }, false },
	{ { "cbz w3, .+8", 0x34000043 }, false },
	{ { "tbnz x3, #40, .-32768", 0xb7440003 }, false },
	{ { "b.eq .-8", 0x54ffffc0 }, false },
	{ { "paciasp", 0xd503233f }, false },
	{ { "bti c", 0xd503245f }, false },
	{ { "add x0, x1, x2", 0x8b020020 }, false },
	{ { "add x0, x1, #4", 0x91001020 }, false },
	{ { "movz x0, #1", 0xd2800020 }, false },
	{ { "udiv x0, x1, x2", 0x9ac20820 }, false },
	{ { "retaa", 0xd65f0bff }, true },
	{ { "autiasp", 0xd50323bf }, true },
	{ { "wfi", 0xd503207f }, true },
	{ { "yield", 0xd503203f }, true },
	{ { "svc #0", 0xd4000001 }, true },
	{ { "eret", 0xd69f03e0 }, true },
	{ { "ldr x0, [x1]", 0xf9400020 }, true },
	{ { "str x0, [x1]", 0xf9000020 }, true },
	{ { "ldr x0, .+8", 0x58000040 }, true },
	{ { "mrs x0, cntvct_el0", 0xd53be040 }, true },
	{ { "fadd d0, d1, d2", 0x1e622820 }, true },
	{ { "udf #0", 0x00000000 }, true },
};

static void may_stop(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		if (arch_aarch64.may_stop(bytes_of(&stops[i].insn), 4) != stops[i].may_stop)
			fail_msg("%s is told wrongly", stops[i].insn.text);
	}
}

static void behind_call(void **state)
{
	static const uint32_t code[] = { 0x94000004, 0xd63f0060, 0xd503201f };

	(void)state;
	assert_true(arch_aarch64.is_behind_call((const uint8_t *)&code[1]));
	assert_true(arch_aarch64.is_behind_call((const uint8_t *)&code[2]));
	assert_false(arch_aarch64.is_behind_call((const uint8_t *)&code[3]));
}

static const struct {
	struct insn insn;
	bool switches;
} switches[] = {
	{ { "mov sp, x9", 0x9100013f }, true },
	{ { "sub sp, x0, #16", 0xd100401f }, true },
	{ { "mov sp, x29", 0x910003bf }, false },
	{ { "add sp, x29, #16", 0x910043bf }, false },
	{ { "add sp, sp, #16", 0x910043ff }, false },
	{ { "mov x29, sp", 0x910003fd }, false },
	{ { "mov x0, x9", 0xaa0903e0 }, false },
};

static const struct {
	struct insn insn;
	int64_t moved;
} moves[] = {
	{ { "add sp, sp, #16", 0x910043ff }, 16 },
	{ { "sub sp, sp, #32", 0xd10083ff }, -32 },
	{ { "sub sp, sp, #1, lsl #12", 0xd14007ff }, -4096 },
	{ { "sub sp, x0, #16", 0xd100401f }, 0 },
	{ { "mov x0, x9", 0xaa0903e0 }, 0 },
};

static void stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		if (arch_aarch64.switches_stack(bytes_of(&switches[i].insn), 4) !=
			switches[i].switches)
			fail_msg("%s is taken for something else", switches[i].insn.text);
	}
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		if (arch_aarch64.sp_moved(bytes_of(&moves[i].insn), 4) != moves[i].moved)
			fail_msg("%s moves it otherwise", moves[i].insn.text);
	}
}

/* With the stack pointer as the base; link: where the return address goes, 0: nowhere. */
static const struct {
	struct insn insn;
	int64_t offset, moved, link;
} accesses[] = {
	{ { "stp x29, x30, [sp, #-96]!", 0xa9ba7bfd }, -96, -96, -88 },
	{ { "stp x19, x30, [sp, #16]", 0xa9017bf3 }, 16, 0, 24 },
	{ { "stp x30, x19, [sp, #16]", 0xa9014ffe }, 16, 0, 16 },
	{ { "stp x19, x20, [sp, #-32]!", 0xa9be53f3 }, -32, -32, 0 },
	{ { "stp d8, d9, [sp, #32]", 0x6d0227e8 }, 32, 0, 0 },
	{ { "str x30, [sp, #-16]!", 0xf81f0ffe }, -16, -16, -16 },
	{ { "str x30, [sp, #8]", 0xf90007fe }, 8, 0, 8 },
	{ { "stur x30, [sp, #-8]", 0xf81f83fe }, -8, 0, -8 },
	{ { "str x29, [sp, #8]", 0xf90007fd }, 8, 0, 0 },
	{ { "ldr x30, [sp], #16", 0xf84107fe }, 0, 16, 0 },
	{ { "ldp x29, x30, [sp], #96", 0xa8c67bfd }, 0, 96, 0 },
	{ { "ldp x19, x20, [sp, #16]", 0xa94153f3 }, 16, 0, 0 },
	{ { "ldrb w0, [sp, #3]", 0x39400fe0 }, 3, 0, 0 },
	{ { "str q0, [sp, #32]", 0x3d800be0 }, 32, 0, 0 },
	{ { "ldr w0, [sp, #12]", 0xb9400fe0 }, 12, 0, 0 },
	{ { "stp w0, w1, [sp, #8]", 0x290107e0 }, 8, 0, 0 },
	{ { "str w30, [sp, #8]", 0xb9000bfe }, 8, 0, 0 },
};

static const struct insn no_access[] = {
	{ "str x30, [x0, #8]", 0xf900041e },
	{ "ldr x0, [x1, #8]", 0xf9400420 },
	{ "add sp, sp, #16", 0x910043ff },
};

static void sp_access(void **state)
{
	struct sp_access a;

	(void)state;
	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		if (!arch_aarch64.sp_access(bytes_of(&accesses[i].insn), 4, &a) ||
			a.offset != accesses[i].offset || a.moved != accesses[i].moved ||
			a.saves_link != (accesses[i].link != 0) ||
			(a.saves_link && a.link != accesses[i].link))
			fail_msg("%s: offset %ld, moved %ld, link %d %ld", accesses[i].insn.text,
				a.offset, a.moved, a.saves_link, a.link);
	}
	for (size_t i = 0; i < sizeof(no_access) / sizeof(no_access[0]); i++)
		assert_false(arch_aarch64.sp_access(bytes_of(&no_access[i]), 4, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow),
		cmocka_unit_test(may_stop),
		cmocka_unit_test(behind_call),
		cmocka_unit_test(stacks),
		cmocka_unit_test(sp_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
