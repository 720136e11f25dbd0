/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of x86_64 as QEMU's plugin reads them; the bytes are those of GNU as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "plugin/plugin.h"

#define PC 0x401000u

static const struct {
	const char *text, *bytes;
	size_t size;
	enum flow flow;
	bool ends;
	uint64_t target;
} flows[] = {
	{ "nop", "\x90", 1, FLOW_ON, false, NOWHERE },
	{ "call .+0x10", "\xe8\x0b\x00\x00\x00", 5, FLOW_CALL, true, PC + 0x10 },
	{ "call .-0x10", "\xe8\xeb\xff\xff\xff", 5, FLOW_CALL, true, PC - 0x10 },
	{ "call .+5", "\xe8\x00\x00\x00\x00", 5, FLOW_ON, true, PC + 5 },
	{ "call *%rax", "\xff\xd0", 2, FLOW_CALL, true, NOWHERE },
	{ "call *8(%r12)", "\x41\xff\x54\x24\x08", 5, FLOW_CALL, true, NOWHERE },
	{ "notrack call *%r11", "\x3e\x41\xff\xd3", 4, FLOW_CALL, true, NOWHERE },
	{ "jmp .+2", "\xeb\x00", 2, FLOW_ON, true, PC + 2 },
	{ "jmp .+0x80000005", "\xe9\x00\x00\x00\x80", 5, FLOW_ON, true,
		PC + 5 - UINT64_C(0x80000000) },
	{ "jmp *%rcx", "\xff\xe1", 2, FLOW_JUMP, true, NOWHERE },
	{ "push 8(%rax)", "\xff\x70\x08", 3, FLOW_ON, false, NOWHERE },
	{ "jne .-2", "\x75\xfc", 2, FLOW_ON, false, PC - 2 },
	{ "jne .+0x106", "\x0f\x85\x00\x01\x00\x00", 6, FLOW_ON, false, PC + 0x106 },
	{ "loop .", "\xe2\xfe", 2, FLOW_ON, false, PC },
	{ "ret", "\xc3", 1, FLOW_RETURN, true, NOWHERE },
	{ "repz ret", "\xf3\xc3", 2, FLOW_RETURN, true, NOWHERE },
	{ "ret $8", "\xc2\x08\x00", 3, FLOW_RETURN, true, NOWHERE },
	{ "lretq", "\x48\xcb", 2, FLOW_JUMP, true, NOWHERE },
	{ "iretq", "\x48\xcf", 2, FLOW_IRET, true, NOWHERE },
	{ "syscall", "\x0f\x05", 2, FLOW_SYSCALL, false, NOWHERE },
	{ "sysretq", "\x48\x0f\x07", 3, FLOW_IRET, true, NOWHERE },
	{ "rep movsb", "\xf3\xa4", 2, FLOW_ON, false, PC },
	{ "movsb", "\xa4", 1, FLOW_ON, false, NOWHERE },
	{ "rep stosq", "\xf3\x48\xab", 3, FLOW_ON, false, PC },
};

static const struct {
	const char *text, *bytes;
	size_t size;
	bool may_stop;
} stops[] = {
	{ "lea 8(%rax), %rcx", "\x48\x8d\x48\x08", 4, false },
	{ "add %rax, %rcx", "\x48\x01\xc1", 3, false },
	{ "add %rax, (%rcx)", "\x48\x01\x01", 3, true },
	{ "add $1, %al", "\x04\x01", 2, false },
	{ "mov $1, %r8", "\x49\xc7\xc0\x01\x00\x00\x00", 7, true }, /* not worth it */
	{ "mov $1, %r8d", "\x41\xb8\x01\x00\x00\x00", 6, false },
	{ "mov (%rax), %eax", "\x8b\x00", 2, true },
	{ "mov %esp, %eax", "\x89\xe0", 2, false },
	{ "mov %eax, %ss", "\x8e\xd0", 2, true },
	{ "push %rax", "\x50", 1, true },
	{ "div %ecx", "\xf7\xf1", 2, true },
	{ "mul %ecx", "\xf7\xe1", 2, false },
	{ "inc %ecx", "\xff\xc1", 2, false },
	{ "incl (%rcx)", "\xff\x01", 2, true },
	{ "jne .-2", "\x75\xfc", 2, false },
	{ "jmp .+2", "\xeb\x00", 2, false },
	{ "loop .", "\xe2\xfe", 2, true },
	{ "pause", "\xf3\x90", 2, true },
	{ "nop", "\x90", 1, false },
	{ "nopw 0(%rax)", "\x66\x0f\x1f\x00", 4, false },
	{ "movzbl %al, %eax", "\x0f\xb6\xc0", 3, false },
	{ "movzbl (%rax), %eax", "\x0f\xb6\x00", 3, true },
	{ "cmove %ecx, %eax", "\x0f\x44\xc1", 3, false },
	{ "mov %cr3, %rax", "\x0f\x20\xd8", 3, true },
	{ "rdtsc", "\x0f\x31", 2, true },
	{ "addps %xmm1, %xmm0", "\x0f\x58\xc1", 3, true },
	{ "in %dx, %al", "\xec", 1, true },
	{ "hlt", "\xf4", 1, true },
	{ "int3", "\xcc", 1, true },
	{ "ud2", "\x0f\x0b", 2, true },
};

static void traits(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		unsigned traits;
	} c[] = {
		{ "\xf7\xf1", 2, INSN_TRAP },		    /* div %ecx */
		{ "\x48\xf7\xfe", 3, INSN_TRAP },	    /* idiv %rsi */
		{ "\xf7\x31", 2, INSN_TRAP | INSN_DEVICE }, /* divl (%rcx) */
		{ "\xf7\x21", 2, INSN_DEVICE },		    /* mull (%rcx) */
		{ "\x0f\x0b", 2, INSN_NEVER },		    /* ud2 */
		{ "\x0f\xff\xc0", 3, INSN_NEVER },	    /* ud0 %eax, %eax */
		{ "\x8b\x00", 2, INSN_DEVICE },		    /* mov (%rax), %eax */
		{ "\x55", 1, 0 },			    /* push %rbp */
		{ "\xc3", 1, 0 },			    /* ret */
		{ "\xe8\x10\x00\x00\x00", 5, 0 },	    /* call */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_int_equal(
			arch_x86_64.traits((const uint8_t *)c[i].bytes, c[i].size), c[i].traits);
}

static void writes_to_ports(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		bool output;
	} c[] = {
		{ "\xe7\xf4", 2, true },	/* out %eax, $0xf4 */
		{ "\xe6\x80", 2, true },	/* out %al, $0x80 */
		{ "\xee", 1, true },		/* out %al, (%dx) */
		{ "\x66\xef", 2, true },	/* out %ax, (%dx) */
		{ "\xed", 1, false },		/* in (%dx), %eax */
		{ "\xe5\x60", 2, false },	/* in $0x60, %eax */
		{ "\x0f\xef", 2, false },	/* pxor */
		{ "\xeb\x00", 2, false },	/* jmp */
		{ "\xe8\xe6\0\0\0", 5, false }, /* call */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_int_equal(
			arch_x86_64.is_output((const uint8_t *)c[i].bytes, c[i].size), c[i].output);
}

static void may_stop(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		if (arch_x86_64.may_stop((const uint8_t *)stops[i].bytes, stops[i].size) !=
			stops[i].may_stop)
			fail_msg("%s is told wrongly", stops[i].text);
	}
}

static void behind_call(void **state)
{
	static const char calls[][8] = { "\x90\x90\xe8\x01\x02\x03\x04",
		"\x90\x90\x90\x90\x90\xff\xd0", "\x90\x90\x41\xff\x54\x24\x08",
		"\xff\x14\x25\x01\x02\x03\x04" };
	static const char other[] = "\x90\x90\x48\x8d\x49\xff\xc8";

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_true(arch_x86_64.is_behind_call((const uint8_t *)calls[i] + 7));
	assert_false(arch_x86_64.is_behind_call((const uint8_t *)other + 7));
}

static void flow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct flow_insn f =
			arch_x86_64.flow(PC, (const uint8_t *)flows[i].bytes, flows[i].size);

		if (f.flow != flows[i].flow || f.ends != flows[i].ends ||
			f.target != flows[i].target)
			fail_msg("%s: flow %d, ends %d, target 0x%lx", flows[i].text, f.flow,
				f.ends, f.target);
	}
}

static const struct {
	const char *text, *bytes;
	size_t size;
	bool switches, pops;
} stack[] = {
	{ "mov %rsp, 8(%rdi)", "\x48\x89\x67\x08", 4, false, false },
	{ "mov 8(%rsi), %rsp", "\x48\x8b\x66\x08", 4, true, false },
	{ "mov %rbx, %rsp", "\x48\x89\xdc", 3, true, false },
	{ "mov %rbp, %rsp", "\x48\x89\xec", 3, false, false },
	{ "mov %rbp, %rsp (8b)", "\x48\x8b\xe5", 3, false, false },
	{ "mov %r13, %rsp", "\x4c\x89\xec", 3, true, false },
	{ "mov %rax, %r12", "\x49\x89\xc4", 3, false, false },
	{ "mov (%rax), %r12", "\x4c\x8b\x20", 3, false, false },
	{ "xchg %rsp, %rax", "\x48\x87\xe0", 3, true, false },
	{ "pop %rsp", "\x5c", 1, true, true },
	{ "pop %r12", "\x41\x5c", 2, false, true },
	{ "pop %rbx", "\x5b", 1, false, true },
	{ "popf", "\x9d", 1, false, true },
	{ "ret", "\xc3", 1, false, true },
	{ "push %rbx", "\x53", 1, false, false },
	{ "add $8, %rsp", "\x48\x83\xc4\x08", 4, false, false },
};

static void stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)stack[i].bytes;
		struct sp_access access;

		if (arch_x86_64.switches_stack(bytes, stack[i].size) != stack[i].switches ||
			arch_x86_64.sp_access(bytes, stack[i].size, &access) != stack[i].pops)
			fail_msg("%s is taken for something else", stack[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow),
		cmocka_unit_test(may_stop),
		cmocka_unit_test(traits),
		cmocka_unit_test(writes_to_ports),
		cmocka_unit_test(behind_call),
		cmocka_unit_test(stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
