/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/elffile.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Real images have under ten. Limits the work for a hostile file. */
#define SEGMENTS_MAX 1024

static int check_segment(const char *name, const struct uni_elf *e, uint32_t i,
	const struct uni_elf_ph *ph, struct uni_err *err)
{
	if (ph->file_size > ph->mem_size)
		return uni_err_set(err, UNI_EFORMAT,
			"%s: segment %u has more bytes in the file than in memory", name, i);
	if (!uni_range_ok(ph->vaddr, ph->mem_size) || !uni_range_ok(ph->paddr, ph->mem_size))
		return uni_err_set(
			err, UNI_EFORMAT, "%s: segment %u wraps around the address space", name, i);
	if (!uni_range_contains(0, e->size, ph->offset, ph->file_size))
		return uni_err_set(err, UNI_EFORMAT,
			"%s: segment %u lies outside the file: truncated?", name, i);
	return 0;
}

static int read_segments(
	const char *name, const struct uni_elf *e, struct uni_segments *s, struct uni_err *err)
{
	/* A debug-only file's program headers describe the bytes of the stripped file. */
	const bool no_bytes = uni_elf_is_debug_only(e);
	uint64_t total = 0;

	for (uint32_t i = 0; i < e->nr_ph; i++) {
		struct uni_elf_ph ph = uni_elf_ph(e, i);
		int rc;

		if (ph.type != PT_LOAD || ph.mem_size == 0)
			continue;
		if (no_bytes)
			ph.file_size = ph.offset = 0;
		rc = check_segment(name, e, i, &ph, err);
		if (rc != 0)
			return rc;
		total += ph.file_size; /* at most SEGMENTS_MAX times the file's size */
		if (s->nr == SEGMENTS_MAX || total > 2 * (uint64_t)e->size)
			return uni_err_set(
				err, UNI_EFORMAT, "%s: too many or overlapping segments", name);
		s->v[s->nr++] = (struct uni_segment){
			.vaddr = ph.vaddr,
			.paddr = ph.paddr,
			.mem_size = ph.mem_size,
			.bytes = e->data + ph.offset,
			.file_size = (size_t)ph.file_size,
			.exec = (ph.flags & PF_X) != 0,
			.write = (ph.flags & PF_W) != 0,
		};
	}
	return 0;
}

int uni_segments_read(
	const char *name, const struct uni_elf *e, struct uni_segments *ret, struct uni_err *err)
{
	struct uni_segments s = { .v = calloc(SEGMENTS_MAX, sizeof(*s.v)) };
	int rc;

	if (s.v == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", name);
	rc = read_segments(name, e, &s, err);
	if (rc != 0) {
		uni_segments_deinit(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

void uni_segments_deinit(struct uni_segments *s)
{
	free(s->v);
	*s = (struct uni_segments){ 0 };
}

static const uint8_t *find_bytes(
	const struct uni_segments *s, uint64_t svma, uint64_t mask, size_t len)
{
	for (size_t i = 0; i < s->nr; i++) {
		uint64_t start = s->v[i].vaddr & mask;

		if (uni_range_contains(start, s->v[i].file_size, svma & mask, len))
			return s->v[i].bytes + ((svma & mask) - start);
	}
	return NULL;
}

bool uni_segments_copy(const struct uni_segments *s, uint64_t svma, void *buf, size_t len)
{
	const uint8_t *p = len == 0 ? NULL : find_bytes(s, svma, UINT64_MAX, len);

	if (p == NULL)
		return len == 0;
	memcpy(buf, p, len);
	return true;
}

uint64_t uni_segments_code_bytes(const struct uni_segments *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nr; i++)
		n += s->v[i].exec ? s->v[i].file_size : 0;
	return n;
}

bool uni_segments_same_code(
	const struct uni_segments *a, const struct uni_segments *b, uint64_t mask)
{
	if (uni_segments_code_bytes(a) == 0)
		return false;
	for (size_t i = 0; i < a->nr; i++) {
		const struct uni_segment *seg = &a->v[i];
		const uint8_t *other;

		if (!seg->exec || seg->file_size == 0)
			continue;
		other = find_bytes(b, seg->vaddr, mask, seg->file_size);
		if (other == NULL || memcmp(seg->bytes, other, seg->file_size) != 0)
			return false;
	}
	return true;
}

/* REX.W before one of the most frequent opcodes: add, sub, cmp, mov, lea, test, xor, 81/83 group.
 */
static bool is_rex_pair(uint8_t rex, uint8_t op)
{
	static const uint8_t ops[] = { 0x01, 0x03, 0x29, 0x2b, 0x31, 0x39, 0x3b, 0x81, 0x83, 0x85,
		0x89, 0x8b, 0x8d, 0xc7 };

	return (rex & 0xf8) == 0x48 && memchr(ops, op, sizeof(ops)) != NULL;
}

/*
 * In 32-bit code these prefixes are `dec` of a register, which is rare before such an opcode. GCC's
 * i386 code has one such pair in several hundred bytes; its x86_64 code has one in about ten.
 */
static bool looks_64bit(const struct uni_segments *s)
{
	uint64_t pairs = 0, bytes = uni_segments_code_bytes(s);

	for (size_t i = 0; i < s->nr; i++) {
		const struct uni_segment *seg = &s->v[i];

		for (size_t k = 1; seg->exec && k < seg->file_size; k++)
			pairs += is_rex_pair(seg->bytes[k - 1], seg->bytes[k]);
	}
	return pairs != 0 && pairs >= bytes / 64;
}

unsigned uni_elf_code_machine(const struct uni_elf *e, const struct uni_segments *s)
{
	/*
	 * Some boot loaders only take 32-bit ELF, so 64-bit kernels are relabelled for them
	 * (Unikraft, Mini-OS).
	 */
	if (!e->is64 && e->machine == EM_386 && looks_64bit(s))
		return EM_X86_64;
	return e->machine;
}
