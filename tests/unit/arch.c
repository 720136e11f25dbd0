/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "arch/arch.h"
#include "arch/x86_64/x86_64.h"
#include "base/checked.h"

static void register_tables_agree(void **state)
{
	const struct uni_arch *a = &uni_arch_x86_64;
	uint64_t dwarf = 0;
	unsigned system = 0;
	bool used[1024] = { false };

	assert_ptr_equal(uni_arch_by_elf_machine(62), a);
	assert_ptr_equal(uni_arch_by_name("x86_64"), a);
	assert_null(uni_arch_by_name("vax"));
	assert_int_equal(a->gdb_g_size, 608);
	for (size_t i = 0; i < a->nr_gdb_regs; i++) {
		const struct uni_gdb_reg *r = &a->gdb_regs[i];

		assert_true(r->size == 4 || r->size == 8);
		assert_true(r->offset + r->size <= a->gdb_g_size);
		for (unsigned b = 0; b < r->size; b++) {
			assert_false(used[r->offset + b]);
			used[r->offset + b] = true;
		}
		if (r->sys) {
			assert_true(r->number < UNI_SYS_MAX && a->sys_names[r->number] != NULL);
			assert_true((system >> r->number & 1) == 0);
			system |= 1u << r->number;
		} else {
			assert_true(r->number < a->nr_regs && (dwarf >> r->number & 1) == 0);
			dwarf |= 1ull << r->number;
		}
	}
	assert_true(dwarf == (1ull << a->nr_regs) - 1);
	assert_int_equal(system, (1u << UNI_SYS_MAX) - 1);
	for (unsigned i = 0; i < a->nr_regs; i++) {
		assert_non_null(a->reg_names[i]);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(a->reg_names[i], a->reg_names[k]);
	}
	assert_string_equal(a->reg_names[a->fp_reg], "rbp");
	assert_string_equal(a->reg_names[a->sp_reg], "rsp");
	assert_string_equal(a->reg_names[a->pc_reg], "rip");
}

#define CODE(s) (const uint8_t *)(s), sizeof(s) - 1

static void prologues_are_recognised(void **state)
{
	static const struct {
		const uint8_t *code;
		size_t n;
		int push, mov; /* -1: sets up no frame */
	} t[] = {
		{ CODE("\x55\x48\x89\xe5"), 0, 1 },
		{ CODE("\x55\x48\x8b\xec"), 0, 1 },
		{ CODE("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xc3"), 4, 5 },
		{ CODE("\x55\x31\xc0\x48\x89\xe5"), 0, 3 },		/* xor eax,eax between */
		{ CODE("\x55\xb8\x01\x00\x00\x00\x48\x89\xe5"), 0, 6 }, /* mov eax,1 */
		{ CODE("\x48\x8d\x47\x08\x55\x48\x89\xe5"), 4, 5 },	/* lea rax,[rdi+8] first */
		{ CODE("\x48\x8b\x05\x10\x20\x30\x40\x55\x48\x89\xe5"), 7, 8 }, /* mov rax,[rip+] */
		{ CODE("\x48\x63\xff\x55\x48\x89\xe5"), 3, 4 },			/* movsxd rdi,edi */
		{ CODE("\x66\x0f\xef\xc0\x55\x48\x89\xe5"), 4, 5 },		/* pxor xmm0,xmm0 */
		{ CODE("\x48\x83\xc7\x10\x55\x48\x89\xe5"), 4, 5 },		/* add rdi,16 */
		{ CODE("\x49\xb8\1\2\3\4\5\6\7\x08\x55\x48\x89\xe5"), 10, 11 }, /* movabs r8 */
		{ CODE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xe0\x41\xff\x72\xf8\x55\x48\x89\xe5"), 13,
			14 },						 /* realigned stack */
		{ CODE("\x55\x48\x89\xe6"), -1, 0 },			 /* mov rsi,rsp; the end */
		{ CODE("\x55\x48\x89"), -1, 0 },			 /* cut off */
		{ CODE("\x48\x89\xe5"), -1, 0 },			 /* mov without push */
		{ CODE("\x53\x55\x48\x89\xe5"), -1, 0 },		 /* push rbx first */
		{ CODE("\x48\x83\xec\x10\x55\x48\x89\xe5"), -1, 0 },	 /* sub rsp,16 first */
		{ CODE("\x48\x8d\x64\x24\xf8\x55\x48\x89\xe5"), -1, 0 }, /* lea rsp,[rsp-8] */
		{ CODE("\x55\x48\x8d\x6f\x10\x48\x89\xe5"), -1, 0 }, /* lea rbp,[rdi+16] between */
		{ CODE("\xbd\x00\x00\x00\x00\x55\x48\x89\xe5"), -1, 0 }, /* mov ebp,0 */
		{ CODE("\x8d\x04\x37\xc3"), -1, 0 },		     /* lea eax,[rdi+rsi]; ret */
		{ CODE("\xc3\x55\x48\x89\xe5"), -1, 0 },	     /* ret first */
		{ CODE("\x85\xff\x74\x05\x55\x48\x89\xe5"), -1, 0 }, /* test, je: shrink-wrapped */
		{ CODE(""), -1, 0 },
	};

	for (size_t i = 0; i < uni_array_len(t); i++) {
		struct uni_x86_64_prologue p = { 0 };
		bool yes = uni_x86_64_prologue(t[i].code, t[i].n, &p);

		assert_int_equal(yes, t[i].push >= 0);
		assert_int_equal(uni_arch_x86_64.sets_frame(t[i].code, t[i].n), yes);
		if (yes) {
			assert_int_equal(p.push, t[i].push);
			assert_int_equal(p.mov, t[i].mov);
		}
	}
}

/* r13 and r12 as destinations share their low bits with rbp and rsp. */
static void extended_registers_are_not_the_frame(void **state)
{
	assert_true(
		uni_arch_x86_64.sets_frame(CODE("\x49\x89\xfd\x55\x48\x89\xe5"))); /* mov r13,rdi */
	assert_false(
		uni_arch_x86_64.sets_frame(CODE("\x48\x89\xfd\x55\x48\x89\xe5"))); /* mov rbp,rdi */
	assert_true(uni_arch_x86_64.sets_frame(
		CODE("\x4c\x8b\x27\x55\x48\x89\xe5"))); /* mov r12,[rdi] */
	assert_false(uni_arch_x86_64.sets_frame(
		CODE("\x48\x8b\x27\x55\x48\x89\xe5"))); /* mov rsp,[rdi] */
	assert_true(uni_arch_x86_64.sets_frame(
		CODE("\x41\xbd\1\0\0\0\x55\x48\x89\xe5"))); /* mov r13d,1 */
}

/* Every prefix of every code: no byte beyond n is looked at (under ASan). */
static void cut_off_code_is_safe(void **state)
{
	uint64_t rng = 88172645463325252ull;
	uint32_t offset;

	for (unsigned i = 0; i < 200000; i++) {
		size_t n = i % 20;
		uint8_t *code = malloc(n + 1);

		for (size_t k = 0; k < n; k++) {
			rng ^= rng << 13;
			rng ^= rng >> 7;
			rng ^= rng << 17;
			code[k] = (uint8_t)(rng >> 32);
		}
		code = realloc(code, n == 0 ? 1 : n);
		assert_non_null(code);
		(void)uni_arch_x86_64.sets_frame(code, n);
		(void)uni_x86_64_epilogue(code, n, &offset);
		(void)uni_x86_64_frame_popped(code, n);
		(void)uni_x86_64_pushed(code, n, &offset);
		free(code);
	}
}

static void calls_are_recognised(void **state)
{
	static const struct {
		const char *end; /* 7 bytes */
		bool direct, indirect;
	} t[] = {
		{ "\x90\x90\xe8\x10\x00\x00\x00", true, false },
		{ "\x90\x90\x90\x90\x90\xff\xd0", false, true },  /* call rax */
		{ "\x90\x90\x90\x90\x41\xff\xd3", false, true },  /* call r11 */
		{ "\x90\x90\x90\x90\x90\xff\x10", false, true },  /* call [rax] */
		{ "\x90\x90\x90\x90\xff\x50\x18", false, true },  /* call [rax+24] */
		{ "\x90\x90\x90\x90\xff\x14\xc5", false, false }, /* a SIB that needs 4 more */
		{ "\xff\x14\xc5\x00\x10\x60\x00", false, true },  /* call [rax*8+601000h] */
		{ "\x90\x90\x90\xff\x54\x24\x08", false, true },  /* call [rsp+8] */
		{ "\x90\xff\x15\x00\x10\x00\x00", false, true },  /* call [rip+1000h] */
		{ "\x90\xff\x93\x00\x01\x00\x00", false, true },  /* call [rbx+100h] */
		{ "\xff\x94\x24\x00\x01\x00\x00", false, true },  /* call [rsp+100h] */
		{ "\x90\x90\x90\x90\x90\xff\xe0", false, false }, /* jmp rax */
		{ "\x90\x90\x90\x90\x90\xff\xd8", false, false }, /* far call */
		{ "\x90\x90\x90\x90\x90\x90\x90", false, false },
	};
	uint64_t target;

	for (size_t i = 0; i < uni_array_len(t); i++) {
		const uint8_t *b = (const uint8_t *)t[i].end;

		assert_int_equal(uni_x86_64_direct_call(b, 0x1000, &target), t[i].direct);
		assert_int_equal(uni_x86_64_indirect_call(b), t[i].indirect);
	}
	assert_true(uni_x86_64_direct_call(
		(const uint8_t *)"\x90\x90\xe8\xf0\xff\xff\xff", 0x1000, &target));
	assert_true(target == 0xff0);
	assert_true(uni_x86_64_frame_popped(CODE("\x90\x5d")));
	assert_false(uni_x86_64_frame_popped(CODE("\x41\x5d")));
	assert_true(uni_x86_64_frame_popped(CODE("\x90\xc9")));
}

static void epilogues_are_recognised(void **state)
{
	static const struct {
		const uint8_t *code;
		size_t n;
		int offset; /* -1: none */
	} t[] = {
		{ CODE("\xc3"), 0 }, { CODE("\xf3\xc3"), 0 }, { CODE("\xc2\x08\x00"), 0 },
		{ CODE("\x48\x0f\xaf\xc6\x48\x01\xd0\xc3"), 0 },  /* imul, add, ret */
		{ CODE("\xc5\xf8\x77\xc3"), 0 },		  /* vzeroupper, ret */
		{ CODE("\x48\x83\xc4\x18\x41\x5c\x5b\xc3"), 40 }, /* add rsp,24, 2 pops */
		{ CODE("\x41\x5d\xc3"), 8 },			  /* pop r13 is not rbp */
		{ CODE("\x41\x8f\x46\x10\xc3"), 8 },		  /* pop [r14+16] */
		{ CODE("\x8f\x86\xd8\x00\x00\x00\x4d\x8b\x7e\x08\xc3"), 8 }, /* [rsi+216] */
		{ CODE("\x41\x8f\xc6\xc3"), -1 }, /* pop r14, in its longer form */
		{ CODE("\x41\x8f\x46"), -1 },
		{ CODE("\x5d\xc3"), -1 },			/* pop rbp: the frame is there */
		{ CODE("\xc9\xc3"), -1 },			/* leave */
		{ CODE("\x5c\xc3"), -1 },			/* pop rsp */
		{ CODE("\x48\x83\xec\x18\xc3"), -1 },		/* sub rsp */
		{ CODE("\x48\x83\xc4\xf8\xc3"), -1 },		/* add rsp,-8 */
		{ CODE("\xe8\x00\x00\x00\x00\xc3"), -1 },	/* a call */
		{ CODE("\xeb\x00\xc3"), -1 },			/* a jump */
		{ CODE("\xf7\xc7\x01\x00\x00\x00\xc3"), -1 },	/* test edi,1: not decoded */
		{ CODE("\xf3"), -1 }, { CODE("\x90\x90"), -1 }, /* cut off */
	};
	uint32_t offset;

	for (size_t i = 0; i < uni_array_len(t); i++) {
		bool yes = uni_x86_64_epilogue(t[i].code, t[i].n, &offset);

		assert_int_equal(yes, t[i].offset >= 0);
		if (yes)
			assert_int_equal(offset, t[i].offset);
	}
}

static void pushes_are_counted(void **state)
{
	static const struct {
		const uint8_t *code;
		size_t n;
		bool all;
		unsigned offset;
	} t[] = {
		{ CODE(""), true, 0 },
		{ CODE("\xf3\x0f\x1e\xfa\x53\x41\x54"), true, 16 },  /* push rbx, r12 */
		{ CODE("\x48\x83\xec\x18\x31\xc0"), true, 24 },	     /* sub rsp,24; xor */
		{ CODE("\x48\x81\xec\x10\x01\x00\x00"), true, 272 }, /* sub rsp,272 */
		{ CODE("\x48\x83\xec\x7f\x31\xc0"), true, 127 },     /* sub rsp,127 */
		{ CODE("\x48\x81\xec\x00\x00\x00\x80"), false, 0 },  /* absurd */
		{ CODE("\x48\x83\xec\xf8"), false, 0 },		     /* sub rsp,-8 */
		{ CODE("\x53\x75\x02\x55"), false, 8 },		     /* push; jne; push */
		{ CODE("\x55\x48\x89\xe5\x53"), false, 8 },	     /* a frame after all */
		{ CODE("\x53\x48\x83"), false, 8 },		     /* cut off */
	};
	uint32_t offset;

	for (size_t i = 0; i < uni_array_len(t); i++) {
		assert_int_equal(uni_x86_64_pushed(t[i].code, t[i].n, &offset), t[i].all);
		assert_int_equal(offset, t[i].offset);
	}
}

static void hints_find_functions(void **state)
{
	static const struct uni_func_hint f[] = { { 0x1000, 0x10, 0 }, { 0x1010, 1, 0 },
		{ 0x2000, 0x100, 0 }, { UINT64_MAX - 15, 16, 0 } };
	const struct uni_unwind_hints h = { .func = f, .nr_funcs = 4 };

	assert_null(uni_hints_find(&h, 0xfff));
	assert_ptr_equal(uni_hints_find(&h, 0x1000), &f[0]);
	assert_ptr_equal(uni_hints_find(&h, 0x100f), &f[0]);
	assert_ptr_equal(uni_hints_find(&h, 0x1010), &f[1]);
	assert_null(uni_hints_find(&h, 0x1011));
	assert_ptr_equal(uni_hints_find(&h, 0x20ff), &f[2]);
	assert_null(uni_hints_find(&h, 0x2100));
	assert_ptr_equal(uni_hints_find(&h, UINT64_MAX), &f[3]);
}

/* Most of the code, by its size, and not by the number of functions. */
static void most_code_is_frameless(void **state)
{
	for (uint32_t size = 0; size <= 100; size++) {
		const struct uni_func_hint f[] = { { 0x1000, 100 - size, 0 },
			{ 0x2000, size, UNI_FUNC_FRAMELESS }, { 0x3000, 0, UNI_FUNC_FRAMELESS } };
		const struct uni_unwind_hints h = { .func = f, .nr_funcs = 3 };

		assert_int_equal(uni_hints_frameless(&h), size > 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_code_is_frameless),
		cmocka_unit_test(register_tables_agree),
		cmocka_unit_test(prologues_are_recognised),
		cmocka_unit_test(extended_registers_are_not_the_frame),
		cmocka_unit_test(cut_off_code_is_safe),
		cmocka_unit_test(calls_are_recognised),
		cmocka_unit_test(epilogues_are_recognised),
		cmocka_unit_test(pushes_are_counted),
		cmocka_unit_test(hints_find_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
