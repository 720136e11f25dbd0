/* SPDX-License-Identifier: BSD-2-Clause */
/* Call frame information compiled into rows. tests/e2e/oracle_rows.c compares whole images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "obj/cfi.h"

#define CODE 0xffffffff80200000ull
#define ADDR (CODE + 0x10000)

/* A section under construction. */
struct buf {
	uint8_t b[4096];
	size_t n;
	bool eh, wide;
};

static void put(struct buf *s, uint64_t v, size_t bytes)
{
	assert_true(s->n + bytes <= sizeof(s->b));
	for (size_t i = 0; i < bytes; i++)
		s->b[s->n++] = (uint8_t)(v >> 8 * i);
}

static void bytes(struct buf *s, const void *p, size_t n)
{
	assert_true(s->n + n <= sizeof(s->b));
	memcpy(s->b + s->n, p, n);
	s->n += n;
}

/* Begins an entry; end() fills its length in. */
static size_t begin(struct buf *s)
{
	size_t at = s->n;

	if (s->wide)
		put(s, UINT32_MAX, 4);
	put(s, 0, s->wide ? 8 : 4);
	return at;
}

static void end(struct buf *s, size_t at)
{
	size_t head = s->wide ? 12 : 4, size = s->wide ? 8 : 4, n = s->n;

	s->n = at + head - size;
	put(s, n - at - head, size);
	s->n = n;
}

/* CFA rsp + 8, return address at CFA - 8. */
#define INITIAL "\x0c\x07\x08\x90\x01"

static size_t cie(struct buf *s, const char *augmentation, const char *data, size_t len)
{
	size_t at = begin(s);

	if (s->eh)
		put(s, 0, 4);
	else
		put(s, UINT64_MAX, s->wide ? 8 : 4);
	put(s, s->eh ? 1 : 4, 1);
	bytes(s, augmentation, strlen(augmentation) + 1);
	if (!s->eh)
		put(s, 8, 2); /* address size, segment size */
	bytes(s, "\x01\x78\x10", 3);
	if (augmentation[0] == 'z') {
		put(s, len, 1);
		bytes(s, data, len);
	}
	bytes(s, INITIAL, sizeof(INITIAL) - 1);
	end(s, at);
	return at;
}

static size_t plain_cie(struct buf *s)
{
	return s->eh ? cie(s, "zR", "\x1b", 1) : cie(s, "", NULL, 0);
}

/* pc-relative 4 bytes in .eh_frame, 8 absolute ones in .debug_frame. */
static void fde(
	struct buf *s, size_t cie_at, uint64_t start, uint64_t size, const char *insn, size_t len)
{
	size_t at = begin(s), id = s->n;

	put(s, s->eh ? id - cie_at : cie_at, s->wide && !s->eh ? 8 : 4);
	if (s->eh) {
		put(s, start - (ADDR + s->n), 4);
		put(s, size, 4);
		put(s, 0, 1);
	} else {
		put(s, start, 8);
		put(s, size, 8);
	}
	bytes(s, insn, len);
	end(s, at);
}
#define FDE(s, cie, start, size, insn) fde((s), (cie), (start), (size), (insn), sizeof(insn) - 1)

static struct uni_cfi_bad bad_seen; /* by the last compile_all() */

static struct uni_cfi *compile_all(const struct buf *s, size_t nr, const uint64_t *entry)
{
	const struct uni_cfi_code code[] = { { CODE, 0x10000 }, { 0x100000, 0x1000 } };
	struct uni_cfi_section section[2];
	struct uni_cfi_source src = { .arch = &uni_arch_x86_64,
		.section = section,
		.nr_sections = nr,
		.code = code,
		.nr_code = 2,
		.entry = entry,
		.nr_entries = entry != NULL,
		.bad = &bad_seen };
	struct uni_cfi *c;

	for (size_t i = 0; i < nr; i++)
		section[i] = (struct uni_cfi_section){
			.data = s[i].b, .size = s[i].n, .addr = ADDR, .eh = s[i].eh
		};
	assert_int_equal(uni_cfi_compile(&src, &c), 0);
	return c;
}

static struct uni_cfi *compile(const struct buf *s)
{
	return compile_all(s, 1, NULL);
}

static const struct uni_cfi_rule *at(const struct uni_cfi *c, uint64_t offset)
{
	assert_non_null(c);
	return uni_cfi_find(&c->table, CODE + offset);
}

static void expect_cfa(const struct uni_cfi *c, uint64_t offset, unsigned reg, int32_t arg)
{
	const struct uni_cfi_rule *r = at(c, offset);

	assert_non_null(r);
	assert_int_equal(r->cfa.how, UNI_CFI_REG);
	assert_int_equal(r->cfa.reg, reg);
	assert_int_equal(r->cfa.arg, arg);
}

static void expect_fp(const struct uni_cfi *c, uint64_t offset, enum uni_cfi_how how, int32_t arg)
{
	const struct uni_cfi_rule *r = at(c, offset);

	assert_non_null(r);
	assert_int_equal(r->fp.how, how);
	assert_int_equal(r->fp.arg, arg);
	assert_int_equal(r->ra.how, UNI_CFI_AT_CFA);
	assert_int_equal(r->ra.arg, -8);
}

/* push rbp; mov rbp, rsp; ...; leave; ret; and more code behind it. */
#define FRAMED                 \
	"\x41\x0e\x10\x86\x02" \
	"\x43\x0d\x06"         \
	"\x02\x20\x0a\x0c\x07\x08\xc6\x41\x0b"

static void expect_framed(const struct uni_cfi *c, uint64_t start)
{
	expect_cfa(c, start, UNI_X86_RSP, 8);
	expect_fp(c, start, UNI_CFI_SAME, 0);
	expect_cfa(c, start + 1, UNI_X86_RSP, 16);
	expect_fp(c, start + 1, UNI_CFI_AT_CFA, -16);
	expect_cfa(c, start + 3, UNI_X86_RSP, 16);
	expect_cfa(c, start + 4, UNI_X86_RBP, 16);
	expect_cfa(c, start + 0x23, UNI_X86_RBP, 16);
	expect_cfa(c, start + 0x24, UNI_X86_RSP, 8);
	expect_fp(c, start + 0x24, UNI_CFI_SAME, 0);
	expect_cfa(c, start + 0x25, UNI_X86_RBP, 16);
	expect_cfa(c, start + 0x3f, UNI_X86_RBP, 16);
	assert_null(at(c, start + 0x40));
}

static void rows_of_a_function(void **state)
{
	for (unsigned form = 0; form < 4; form++) {
		struct buf s = { .eh = form < 2, .wide = (form & 1) != 0 };
		size_t first = plain_cie(&s);
		struct uni_cfi *c;

		FDE(&s, first, CODE + 0x100, 0x40, FRAMED);
		FDE(&s, first, CODE, 0x40, FRAMED); /* out of order */
		c = compile(&s);
		expect_framed(c, 0);
		expect_framed(c, 0x100);
		assert_null(at(c, 0xff));
		assert_null(at(c, (uint64_t)-1));
		/* Equal rules are one rule: nothing, rsp + 8, rsp + 16, rbp + 16. */
		assert_int_equal(c->table.nr_rules, 4);
		assert_int_equal(c->table.regs, 0);
		uni_cfi_destroy(c);
	}
}

static void ways_to_advance(void **state)
{
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s);
	struct uni_cfi *c;

	FDE(&s, first, CODE, 0x4000,
		"\x02\x04\x0e\x10"     /* 1 byte */
		"\x03\x00\x01\x0e\x18" /* 2 bytes */
		"\x04\x00\x10\x00\x00\x0e\x20"
		"\x1d\x04\x00\x00\x00\x00\x00\x00\x00\x0e\x28"
		"\x03\xff\xff\x0e\x30"); /* behind the end: of no use */
	c = compile(&s);
	expect_cfa(c, 3, UNI_X86_RSP, 8);
	expect_cfa(c, 4, UNI_X86_RSP, 16);
	expect_cfa(c, 0x104, UNI_X86_RSP, 24);
	expect_cfa(c, 0x1104, UNI_X86_RSP, 32);
	expect_cfa(c, 0x1108, UNI_X86_RSP, 40);
	expect_cfa(c, 0x3fff, UNI_X86_RSP, 40);
	assert_null(at(c, 0x4000));
	uni_cfi_destroy(c);
}

static void all_the_rules(void **state)
{
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s);
	const struct uni_cfi_rule *r;
	struct uni_cfi *c;

	FDE(&s, first, CODE, 0x40,
		"\x2e\x10"			 /* GNU_args_size */
		"\x41\x12\x06\x7e"		 /* def_cfa_sf rbp, 16 */
		"\x41\x13\x7d"			 /* def_cfa_offset_sf 24 */
		"\x41\x11\x06\x02"		 /* offset_extended_sf rbp, -16 */
		"\x41\x2f\x06\x03"		 /* GNU_negative_offset_extended rbp, 24 */
		"\x41\x14\x06\x01"		 /* val_offset rbp, -8 */
		"\x41\x15\x06\x7f"		 /* val_offset_sf rbp, 8 */
		"\x41\x07\x06"			 /* undefined */
		"\x41\x08\x06"			 /* same_value */
		"\x41\x09\x06\x03"		 /* register rbp, rbx */
		"\x41\x06\x06"			 /* restore_extended */
		"\x41\x05\x06\x04"		 /* offset_extended rbp, -32 */
		"\x41\x2d\x00\x05\x80\x02\x01"); /* nothing, nop, a register that we do not have */
	c = compile(&s);
	expect_cfa(c, 1, UNI_X86_RBP, 16);
	expect_cfa(c, 2, UNI_X86_RBP, 24);
	expect_fp(c, 3, UNI_CFI_AT_CFA, -16);
	expect_fp(c, 4, UNI_CFI_AT_CFA, 24);
	expect_fp(c, 5, UNI_CFI_IS_CFA, -8);
	expect_fp(c, 6, UNI_CFI_IS_CFA, 8);
	expect_fp(c, 7, UNI_CFI_UNDEF, 0);
	expect_fp(c, 8, UNI_CFI_SAME, 0);
	r = at(c, 9);
	assert_int_equal(r->fp.how, UNI_CFI_REG);
	assert_int_equal(r->fp.reg, UNI_X86_RBX);
	expect_fp(c, 10, UNI_CFI_SAME, 0);
	expect_fp(c, 11, UNI_CFI_AT_CFA, -32);
	expect_fp(c, 0x3f, UNI_CFI_AT_CFA, -32);
	/* rbx is needed for rbp, so it is followed. */
	assert_int_equal(c->table.regs, 1u << UNI_X86_RBX);
	uni_cfi_destroy(c);
}

/* An expression takes no offset, as in libgcc. OCaml 5 writes one for each word that it pushes. */
static void offset_of_an_expression(void **state)
{
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s);
	struct uni_cfi *c;

	FDE(&s, first, CODE, 0x40,
		"\x41\x0a\x0f\x05\x77\x08\x06\x23\x08"
		"\x41\x0e\x10\x41\x0b");
	c = compile(&s);
	assert_int_equal(bad_seen.nr, 0);
	assert_int_equal(at(c, 1)->cfa.how, UNI_CFI_IS_EXPR);
	assert_ptr_equal(at(c, 2), at(c, 1));
	expect_cfa(c, 3, UNI_X86_RSP, 8);
	uni_cfi_destroy(c);
}

/* A stack pointer in a word of the stack; one in a record of another; a return address popped. */
static void code_that_switches_stacks(void **state)
{
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s);
	struct uni_cfi *c;

	FDE(&s, first, CODE, 0x40, "\x41\x0f\x05\x77\x08\x06\x23\x08");
	c = compile(&s);
	assert_false(
		uni_cfi_switches(&c->table, UNI_X86_RSP) || uni_cfi_pops(&c->table, UNI_X86_RSP));
	assert_int_equal(c->table.regs >> UNI_X86_R14 & 1, 0);
	uni_cfi_destroy(c);
	FDE(&s, first, CODE + 0x40, 0x40, "\x41\x0f\x08\x77\x38\x06\x23\x00\x06\x23\x08");
	FDE(&s, first, CODE + 0x80, 0x40, "\x47\x0e\x00\x4b\x0e\x08");
	c = compile(&s);
	assert_true(
		uni_cfi_switches(&c->table, UNI_X86_RSP) && uni_cfi_pops(&c->table, UNI_X86_RSP));
	assert_true((c->table.regs >> UNI_X86_R14 & 1) == 1 && !uni_cfi_switches(&c->table, 6));
	uni_cfi_destroy(c);
}

/* A function that finds its CFA by r10 (GCC, to align a stack), and one that saves r10 and rbx. */
static void registers_that_are_needed(void **state)
{
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s), interrupt = cie(&s, "zRS", "\x1b", 1);
	const struct uni_cfi_rule *r;
	struct uni_cfi *c;

	FDE(&s, first, CODE, 0x40, "\x45\x0c\x0a\x00\x49\x0f\x03\x76\x78\x06");
	FDE(&s, interrupt, CODE + 0x100, 0x40, "\x05\x0a\x05\x05\x03\x06\x05\x07\x02");
	FDE(&s, interrupt, CODE + 0x140, 0x40, "\x00"); /* returns as any other: OCaml 5 */
	c = compile(&s);
	expect_cfa(c, 5, UNI_X86_R10, 0);
	assert_int_equal(at(c, 0x140)->flags, 0);
	r = at(c, 14);
	assert_int_equal(r->cfa.how, UNI_CFI_IS_EXPR);
	assert_int_equal(c->table.op[r->cfa.arg].opcode, UNI_CFI_OP_REG);
	assert_int_equal(c->table.op[r->cfa.arg].arg2, UNI_X86_RBP);
	assert_int_equal(c->table.op[r->cfa.arg].arg, -8);
	assert_int_equal(c->table.op[r->cfa.arg + 1].opcode, UNI_CFI_OP_LOAD);
	assert_int_equal(c->table.op[r->cfa.arg + 1].arg, 8);
	assert_int_equal(c->table.op[r->cfa.arg + 2].opcode, UNI_CFI_OP_END);
	assert_int_equal(c->table.regs, 1u << UNI_X86_R10);
	assert_int_equal(r->flags, 0);
	r = at(c, 0x100);
	assert_int_equal(r->flags, UNI_CFI_SIGNAL);
	assert_int_equal(r->nr_other, 2); /* sp and r10, not rbx */
	assert_int_equal(c->table.other[r->other].of, UNI_X86_RSP);
	assert_int_equal(c->table.other[r->other].arg, -16);
	assert_int_equal(c->table.other[r->other + 1].of, UNI_X86_R10);
	assert_int_equal(c->table.other[r->other + 1].arg, -40);
	/* A call leaves nothing of r10, and the functions that say nothing about it lose it. */
	r = at(c, 0);
	assert_int_equal(r->nr_other, 1);
	assert_int_equal(c->table.other[r->other].how, UNI_CFI_UNDEF);
	uni_cfi_destroy(c);
}

static void outermost_frames(void **state)
{
	const uint64_t entry = CODE + 0x110;
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s);
	struct uni_cfi *c;

	FDE(&s, first, CODE, 0x40, "\x07\x10");
	FDE(&s, first, CODE + 0x100, 0x40, FRAMED);
	c = compile_all(&s, 1, &entry);
	assert_int_equal(at(c, 0)->ra.how, UNI_CFI_UNDEF);
	assert_int_equal(at(c, 0x100)->ra.how, UNI_CFI_UNDEF);
	assert_int_equal(at(c, 0x13f)->ra.how, UNI_CFI_UNDEF);
	uni_cfi_destroy(c);
}

/* A wrong entry costs its own rows and nothing else. */
static void nonsense_has_no_rows(void **state)
{
	static const struct {
		const char *insn;
		size_t len;
		uint64_t good; /* offset up to which rows are there */
	} bad[] = {
#define BAD(insn, good) { insn, sizeof(insn) - 1, good }
		BAD("\x41\x0e\x10\x41\x3f", 2), /* unknown instruction */
		BAD("\x41\x0b", 1),		/* restores what was not remembered */
		BAD("\x41\x0c\x07", 1),		/* cut short */
		BAD("\x41\x0e\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 1),
		BAD("\x41\x05\x06\xff\xff\xff\xff\xff\xff\x7f", 1),
		BAD("\x41\x0c\x40\x08", 1), /* a register that we do not have */
		BAD("\x41\x0f\x01\x03", 1), /* an absolute address */
		BAD("\x41\x0f\x02\x08", 1), /* longer than there is */
		BAD("\x41\x0f\x04\x77\x00\x2f\x7f", 1),
		BAD("\x41\x0f\x05\x77\x00\x28\xff\xff", 1), /* a branch into an operation */
		BAD("\x41\x0f\x00", 1),			    /* an empty expression */
		BAD("\x41\x0f\x01\x77\x41\x0d\x06", 1),
		BAD("\x41\x0f\x02\x77\x00\x41\x0d\x06", 2), /* no register to change */
		BAD("\x41\x16\x10\x01\x03", 1),		    /* no return address, no caller */
		BAD("\x01\x00\x00\x00\x80", 0),		    /* set_loc far below */
	};
	struct buf s;

	for (size_t i = 0; i < uni_array_len(bad); i++) {
		struct uni_cfi *c;
		size_t first, entry;

		memset(&s, 0, sizeof(s));
		s.eh = true;
		first = plain_cie(&s);
		entry = s.n;
		fde(&s, first, CODE, 0x40, bad[i].insn, bad[i].len);
		FDE(&s, first, CODE + 0x100, 0x40, FRAMED);
		c = compile(&s);
		assert_int_equal(bad_seen.nr, 1);
		assert_true(bad_seen.eh);
		assert_int_equal(bad_seen.entry, entry);
		assert_int_equal(bad_seen.start, CODE);
		assert_int_equal(bad_seen.opcode, s.b[bad_seen.insn]);
		if (i == 0) { /* the last of its instructions */
			assert_int_equal(bad_seen.opcode, 0x3f);
			assert_memory_equal(s.b + bad_seen.insn - 4, bad[0].insn, 5);
		}
		expect_framed(c, 0x100);
		for (uint64_t k = 0; k < 0x40; k++)
			assert_int_equal(at(c, k) != NULL, k < bad[i].good);
		uni_cfi_destroy(c);
	}
}

static void functions_that_cannot_be(void **state)
{
	struct buf s[2] = { { .eh = true }, { .eh = false } };
	size_t first = plain_cie(&s[0]), other = plain_cie(&s[1]);
	struct uni_cfi *c;

	FDE(&s[0], first, CODE, 0x40, FRAMED);
	FDE(&s[0], first, CODE + 0x20, 0x40, "\x0e\x50"); /* overlaps */
	FDE(&s[0], first, CODE + 0xfff0, 0x40, FRAMED);	  /* ends outside the code */
	FDE(&s[0], first, CODE + 0x300, 0, FRAMED);
	FDE(&s[0], 2, CODE + 0x400, 0x40, FRAMED); /* of no CIE */
	FDE(&s[1], other, CODE - 1, 0x80, "\x0e\x60");
	FDE(&s[1], other, CODE + 0x10, 0x80, "\x0e\x60"); /* known better */
	FDE(&s[1], other, CODE + 0x500, 0x40, FRAMED);
	FDE(&s[1], other, 0, 0x40, FRAMED);	   /* a function that the linker dropped */
	FDE(&s[1], other, 0x100000, 0x40, FRAMED); /* 4 GiB away from most code */
	c = compile_all(s, 2, NULL);
	expect_framed(c, 0);
	assert_null(at(c, 0x300));
	assert_null(at(c, 0x400));
	expect_framed(c, 0x500);
	assert_null(at(c, 0xfff0));
	assert_null(uni_cfi_find(&c->table, 0x100000));
	assert_null(uni_cfi_find(&c->table, 0));
	uni_cfi_destroy(c);
}

/* Encodings of addresses: how, in how many bytes; 0: refused. */
static void encodings(void **state)
{
	static const struct {
		uint8_t encoding, len;
	} tab[] = { { 0x00, 8 }, { 0x04, 8 }, { 0x0c, 8 }, { 0x10, 8 }, { 0x1b, 4 }, { 0x1c, 8 },
		{ 0x14, 8 }, { 0x0b, 4 }, { 0x50, 8 }, { 0x9b, 0 }, { 0xff, 0 }, { 0x2b, 0 },
		{ 0x3b, 0 }, { 0x05, 0 } };

	for (size_t i = 0; i < uni_array_len(tab); i++) {
		const char data[2] = { (char)tab[i].encoding, '\0' };
		struct buf s = { .eh = true };
		size_t first = cie(&s, "zR", data, 1), head = begin(&s);
		uint64_t from;
		struct uni_cfi *c;

		put(&s, s.n - first, 4);
		while (tab[i].encoding == 0x50 && (ADDR + s.n) % 8 != 0)
			put(&s, 0xee, 1);
		from = (tab[i].encoding & 0x70) == 0x10 ? ADDR + s.n : 0;
		put(&s, CODE - from, tab[i].len != 0 ? tab[i].len : 8);
		put(&s, 0x40, tab[i].len != 0 ? tab[i].len : 8);
		put(&s, 0, 1);
		bytes(&s, FRAMED, sizeof(FRAMED) - 1);
		end(&s, head);
		c = compile(&s);
		if (tab[i].len != 0)
			expect_framed(c, 0);
		else
			assert_null(c);
		uni_cfi_destroy(c);
	}
}

static void augmentations(void **state)
{
	struct buf s = { .eh = true };
	size_t personality = cie(&s, "zPLR", "\x9b\x01\x02\x03\x04\x1b\x1b", 7);
	size_t unknown = cie(&s, "zQR", "\x1b", 1), old = cie(&s, "eh", NULL, 0);
	struct uni_cfi *c;

	FDE(&s, personality, CODE, 0x40, FRAMED);
	FDE(&s, unknown, CODE + 0x100, 0x40, FRAMED);
	FDE(&s, old, CODE + 0x200, 0x40, FRAMED);
	put(&s, 0, 4); /* the end */
	FDE(&s, personality, CODE + 0x300, 0x40, FRAMED);
	c = compile(&s);
	expect_framed(c, 0);
	assert_null(at(c, 0x100));
	assert_null(at(c, 0x200));
	assert_null(at(c, 0x300));
	uni_cfi_destroy(c);
}

/* Nothing is read behind the end, and what came before it is used. */
static void cut_anywhere(void **state)
{
	struct buf s = { .eh = true };
	size_t first = plain_cie(&s), n;

	FDE(&s, first, CODE, 0x40, FRAMED);
	n = s.n;
	FDE(&s, first, CODE + 0x100, 0x40, FRAMED);
	for (size_t whole = s.n; s.n > 0; s.n--) {
		struct uni_cfi *c = compile(&s);

		assert_int_equal(c != NULL, s.n >= n);
		if (c != NULL)
			assert_int_equal(at(c, 0x100) != NULL, s.n == whole);
		uni_cfi_destroy(c);
	}
}

/* A row holds from its first byte to the next row's, across buckets and in them. */
static void each_address_has_its_row(void **state)
{
	static const struct uni_cfi_row row[] = { { 0, 1 }, { 3, 2 }, { 0x12, 3 }, { 0x28, 0 },
		{ 0x2a, 1 }, { 0x30, 0 } };
	static const uint32_t bucket[] = { 0, 1, 2 };
	static const struct uni_cfi_rule rule[4];
	const struct uni_cfi_table t = { .base = 0x1000,
		.row = row,
		.bucket = bucket,
		.rule = rule,
		.nr_rows = 6,
		.nr_buckets = 3,
		.nr_rules = 4,
		.size = 0x30,
		.shift = 4 };

	for (uint64_t pc = 0xff0; pc < 0x1040; pc++) {
		uint32_t want = 0;

		for (size_t i = 0; i < 6; i++) {
			if (pc >= t.base && pc - t.base >= row[i].start)
				want = row[i].rule;
		}
		assert_ptr_equal(uni_cfi_find(&t, pc), want != 0 ? &rule[want] : NULL);
	}
}

/* Many addresses share an entry of the memory of rules, and some are outside of all code. */
static void remembered_rules_are_those_of_the_rows(void **state)
{
	static const struct uni_cfi_row row[] = { { 0, 1 }, { 0x103, 2 }, { 0x10001, 3 },
		{ 0x18000, 0 }, { 0x18010, 1 }, { 0x20000, 0 } };
	static const uint32_t bucket[] = { 0, 5 };
	static const struct uni_cfi_rule rule[4];
	static uint64_t memo[UNI_CFI_MEMO];
	const struct uni_cfi_table t = { .base = 0x1000,
		.row = row,
		.bucket = bucket,
		.rule = rule,
		.nr_rows = 6,
		.nr_buckets = 2,
		.nr_rules = 4,
		.size = 0x20000,
		.shift = 17,
		.memo = memo };

	for (size_t i = 0; i < UNI_CFI_MEMO; i++)
		memo[i] = UNI_CFI_MEMO_EMPTY;
	for (uint64_t pc = 0xf00; pc < 0x21100; pc += 7) {
		const struct uni_cfi_rule *want = uni_cfi_find(&t, pc);

		assert_ptr_equal(uni_cfi_recall(&t, pc), want);
		assert_ptr_equal(uni_cfi_recall(&t, pc), want);
		assert_ptr_equal(uni_cfi_recall(&t, 0x1000), &rule[1]);
		assert_ptr_equal(uni_cfi_recall(&t, pc), want);
	}
	assert_null(uni_cfi_recall(&t, UINT64_MAX));
	assert_null(uni_cfi_recall(&t, t.base + (1ull << 32)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_its_row),
		cmocka_unit_test(remembered_rules_are_those_of_the_rows),
		cmocka_unit_test(rows_of_a_function),
		cmocka_unit_test(ways_to_advance),
		cmocka_unit_test(all_the_rules),
		cmocka_unit_test(offset_of_an_expression),
		cmocka_unit_test(code_that_switches_stacks),
		cmocka_unit_test(registers_that_are_needed),
		cmocka_unit_test(outermost_frames),
		cmocka_unit_test(nonsense_has_no_rows),
		cmocka_unit_test(functions_that_cannot_be),
		cmocka_unit_test(encodings),
		cmocka_unit_test(augmentations),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
