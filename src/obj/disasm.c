/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/disasm.h"

#include <capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define NAME_OF_(major) "libcapstone.so." #major
#define NAME_OF(major)	NAME_OF_(major)
#define LIBRARY		NAME_OF(CS_API_MAJOR)

struct uni_disasm {
	void *library;
	cs_err (*open)(cs_arch arch, cs_mode mode, csh *handle);
	cs_err (*option)(csh handle, cs_opt_type type, size_t value);
	cs_insn *(*malloc)(csh handle);
	bool (*disasm_iter)(
		csh handle, const uint8_t **code, size_t *size, uint64_t *address, cs_insn *insn);
	void (*free)(cs_insn *insn, size_t count);
	cs_err (*close)(csh *handle);
	csh handle;
	cs_insn *insn;
	uint16_t machine;
};

void uni_disasm_load(void)
{
	(void)dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static int load_library(struct uni_disasm *d, struct uni_err *err)
{
	const struct {
		const char *name;
		void **ret;
	} symbols[] = {
		{ "cs_open", (void **)&d->open },
		{ "cs_option", (void **)&d->option },
		{ "cs_malloc", (void **)&d->malloc },
		{ "cs_disasm_iter", (void **)&d->disasm_iter },
		{ "cs_free", (void **)&d->free },
		{ "cs_close", (void **)&d->close },
	};

	d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (d->library == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"instructions need Capstone: install %s (Debian: libcapstone%d)", LIBRARY,
			CS_API_MAJOR);
	for (size_t i = 0; i < uni_array_len(symbols); i++) {
		*symbols[i].ret = dlsym(d->library, symbols[i].name);
		if (*symbols[i].ret == NULL)
			return uni_err_set(
				err, UNI_ENOTSUP, "%s has no %s", LIBRARY, symbols[i].name);
	}
	return 0;
}

static int open_handle(struct uni_disasm *d, struct uni_err *err)
{
	bool x86 = d->machine == EM_X86_64;

	if (!x86 && d->machine != EM_AARCH64)
		return uni_err_set(err, UNI_ENOTSUP, "no instructions of this architecture");
	if (d->open(x86 ? CS_ARCH_X86 : CS_ARCH_ARM64, x86 ? CS_MODE_64 : CS_MODE_LITTLE_ENDIAN,
		    &d->handle) != CS_ERR_OK)
		return uni_err_set(err, UNI_ENOTSUP, "%s does not know this architecture", LIBRARY);
	(void)d->option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	if (x86)
		(void)d->option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	d->insn = d->malloc(d->handle);
	return d->insn != NULL ? 0 : uni_err_nomem(err);
}

int uni_disasm_open(const struct uni_arch *arch, struct uni_disasm **ret, struct uni_err *err)
{
	struct uni_disasm *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return uni_err_nomem(err);
	d->machine = arch != NULL ? arch->elf_machine : EM_NONE;
	rc = load_library(d, err);
	if (rc == 0)
		rc = open_handle(d, err);
	if (rc == 0)
		*ret = d;
	else
		uni_disasm_close(d);
	return rc;
}

void uni_disasm_close(struct uni_disasm *d)
{
	if (d == NULL)
		return;
	if (d->insn != NULL)
		d->free(d->insn, 1);
	if (d->handle != 0)
		(void)d->close(&d->handle);
	if (d->library != NULL)
		(void)dlclose(d->library);
	free(d);
}

static enum uni_insn_kind kind_of(const cs_detail *detail)
{
	enum uni_insn_kind kind = UNI_INSN_OTHER;

	for (uint8_t i = 0; i < detail->groups_count; i++) {
		if (detail->groups[i] == CS_GRP_CALL)
			return UNI_INSN_CALL;
		if (detail->groups[i] == CS_GRP_RET || detail->groups[i] == CS_GRP_IRET)
			return UNI_INSN_RETURN;
		if (detail->groups[i] == CS_GRP_JUMP)
			kind = UNI_INSN_JUMP;
	}
	return kind;
}

/* A direct one has its target as its last operand. */
static uint64_t target_of(const struct uni_disasm *d, const cs_detail *detail)
{
	if (d->machine == EM_X86_64) {
		const cs_x86 *x = &detail->x86;

		return x->op_count == 1 && x->operands[0].type == X86_OP_IMM
			       ? (uint64_t)x->operands[0].imm
			       : 0;
	}
	return detail->arm64.op_count != 0 &&
			       detail->arm64.operands[detail->arm64.op_count - 1].type ==
				       ARM64_OP_IMM
		       ? (uint64_t)detail->arm64.operands[detail->arm64.op_count - 1].imm
		       : 0;
}

void uni_disasm_one(
	struct uni_disasm *d, const uint8_t *code, size_t size, uint64_t addr, struct uni_insn *ret)
{
	size_t step = d->machine == EM_AARCH64 ? uni_min(size, (size_t)4) : 1, left = size;
	const uint8_t *at = code;
	char text[UNI_INSN_TEXT + 64];
	uint64_t next = addr;
	int n = 0;

	*ret = (struct uni_insn){ .addr = addr, .size = (uint32_t)step, .kind = UNI_INSN_BAD };
	if (d->disasm_iter(d->handle, &at, &left, &next, d->insn) && d->insn->size != 0 &&
		d->insn->size <= size) {
		ret->size = d->insn->size;
		ret->kind = (uint8_t)kind_of(d->insn->detail);
		if (ret->kind == UNI_INSN_JUMP || ret->kind == UNI_INSN_CALL)
			ret->target = target_of(d, d->insn->detail);
		n = snprintf(text, sizeof(text), "%s%s%s", d->insn->mnemonic,
			d->insn->op_str[0] != '\0' ? " " : "", d->insn->op_str);
	} else {
		n = snprintf(text, sizeof(text), ".byte");
		for (size_t i = 0; i < step; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s0x%02x",
				i == 0 ? " " : ", ", code[i]);
	}
	(void)uni_text_clean(ret->text, sizeof(ret->text), text, (size_t)uni_max(n, 0));
}
