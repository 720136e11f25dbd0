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

static void flow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct flow_insn f =
			x86_64_flow(PC, (const uint8_t *)flows[i].bytes, flows[i].size);

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

		if (x86_64_switches_stack(bytes, stack[i].size) != stack[i].switches ||
			x86_64_pops(bytes, stack[i].size) != stack[i].pops)
			fail_msg("%s is taken for something else", stack[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow),
		cmocka_unit_test(stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
