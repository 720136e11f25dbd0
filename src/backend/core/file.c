/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/core/file.h"

#include <elf.h>
#include <stdlib.h>

#include "base/checked.h"

void uni_core_file_deinit(struct uni_core_file *f)
{
	uni_vec_free(&f->vcpu);
	uni_vec_free(&f->region);
}

int uni_core_add_vcpu(struct uni_core_file *f, const struct uni_regs *regs, struct uni_err *err)
{
	if (f->vcpu.nr == UNI_VCPU_MAX)
		return 0;
	if (!uni_vec_push(&f->vcpu, *regs))
		return uni_err_set(err, UNI_ENOMEM, "no memory for registers");
	return 0;
}

int uni_core_each_note(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, const char *name, uint32_t type,
	int (*fn)(struct uni_core_file *f, const struct uni_core_note *n, struct uni_err *err),
	uint64_t *nr_ret, struct uni_err *err)
{
	int rc = 0;

	*nr_ret = 0;
	for (uint32_t i = 0; rc == 0 && i < e->nr_ph; i++) {
		struct uni_core_note n;
		struct uni_cursor c;
		uint8_t *raw;
		size_t size;

		if (ph[i].type != PT_NOTE)
			continue;
		rc = uni_core_elf_bytes(e, ph[i].offset, ph[i].file_size, &raw, &size, err);
		if (rc != 0)
			return rc;
		c = uni_cursor_make(raw, size);
		while (rc == 0 && uni_core_note_next(&c, &n)) {
			if (!uni_core_note_is(&n, name, type))
				continue;
			++*nr_ret;
			rc = fn != NULL ? fn(f, &n, err) : 0;
		}
		free(raw);
	}
	return rc;
}

const struct uni_core_arch *uni_core_arch_of(const struct uni_arch *arch)
{
	static const struct uni_core_arch *const known[] = { &uni_core_x86_64, &uni_core_aarch64 };

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (known[i]->arch == arch)
			return known[i];
	}
	return NULL;
}

static int parse_core(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	size_t i = 0;

	while (uni_core_formats[i + 1] != NULL && !uni_core_formats[i]->sniff(f, e, ph))
		i++;
	return uni_core_formats[i]->open(f, e, ph, err);
}

static int check_core(
	const struct uni_core_file *f, const struct uni_core_elf *e, struct uni_err *err)
{
	const char *why = e->cut || f->missing != 0 ? " (the file is cut off)" : "";

	if (f->vcpu.nr == 0)
		return uni_err_set(err, UNI_EFORMAT, "there are no registers in it%s", why);
	if (f->region.nr == 0)
		return uni_err_set(err, UNI_EFORMAT, "there is no memory in it%s", why);
	return 0;
}

int uni_core_file_elf(struct uni_core_file *f, const struct uni_core_src *src, struct uni_err *err)
{
	struct uni_core_ph *ph = NULL;
	struct uni_core_elf e;
	int rc = uni_core_elf_open(src, &e, err);

	if (rc != 0)
		return rc;
	f->arch = uni_arch_by_elf_machine(e.machine);
	if (e.machine == EM_386)
		return uni_err_set(
			err, UNI_ENOTSUP, "its guest was not in 64-bit mode when it was dumped");
	f->ops = uni_core_arch_of(f->arch);
	if (f->ops == NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "cores of ELF machine %u are not supported", e.machine);
	rc = uni_core_elf_phs(&e, &ph, err);
	if (rc == 0)
		rc = parse_core(f, &e, ph, err);
	free(ph);
	return rc != 0 ? rc : check_core(f, &e, err);
}
