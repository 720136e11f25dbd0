/* SPDX-License-Identifier: BSD-2-Clause */
#include "../support/vcpus.h"
#include "observe.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "lab_truth.h"
#include "backend/vmm/ram.h"

static void add_segment(struct observer *o, const GElf_Phdr *p)
{
	struct uni_text_hint *t = &o->text[o->nr_text];

	if (p->p_type != PT_LOAD || (p->p_flags & PF_W) != 0 || p->p_filesz == 0 ||
		o->nr_text == OBSERVE_TEXT_MAX ||
		!uni_range_contains(0, o->file_size, p->p_offset, p->p_filesz))
		return;
	*t = (struct uni_text_hint){ .gva = p->p_vaddr,
		.paddr = p->p_paddr,
		.bytes = o->file + p->p_offset,
		.size = p->p_filesz,
		.exec = (p->p_flags & PF_X) != 0 };
	if (t->exec) {
		o->text_gva = t->gva;
		o->text_size = t->size;
	}
	o->nr_text++;
}

static uint64_t symbol_value(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr sh;
		Elf_Data *data = elf_getdata(scn, NULL);
		GElf_Sym sym;

		if (gelf_getshdr(scn, &sh) == NULL || sh.sh_type != SHT_SYMTAB)
			continue;
		for (int i = 0; gelf_getsym(data, i, &sym) != NULL; i++) {
			const char *s = elf_strptr(elf, sh.sh_link, sym.st_name);

			if (s != NULL && strcmp(s, name) == 0)
				return sym.st_value;
		}
	}
	return 0;
}

/* GPA of a symbol by the segments' physical addresses. */
static uint64_t physical(Elf *elf, uint64_t va)
{
	size_t nr = 0;
	GElf_Phdr p;

	(void)elf_getphdrnum(elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (gelf_getphdr(elf, (int)i, &p) != NULL && p.p_type == PT_LOAD &&
			uni_range_has(p.p_vaddr, p.p_memsz, va))
			return va - p.p_vaddr + p.p_paddr;
	}
	return 0;
}

bool observer_load(struct observer *o, const char *path)
{
	struct uni_err err = { 0 };
	size_t nr = 0;
	GElf_Phdr p;
	uint64_t truth;
	Elf *elf;

	if (uni_read_file(path, 64u << 20, (char **)&o->file, &o->file_size, &err) != 0) {
		(void)fprintf(stderr, "conformance: %s\n", err.msg);
		return false;
	}
	(void)elf_version(EV_CURRENT);
	elf = elf_memory((char *)o->file, o->file_size);
	if (elf == NULL || elf_getphdrnum(elf, &nr) != 0) {
		(void)fprintf(stderr, "conformance: %s is no ELF image\n", path);
		return false;
	}
	for (size_t i = 0; i < nr; i++) {
		if (gelf_getphdr(elf, (int)i, &p) != NULL)
			add_segment(o, &p);
	}
	truth = symbol_value(elf, "lab_truth");
	if (truth != 0) {
		o->heartbeat_gva = truth + offsetof(struct lab_truth, heartbeat);
		o->heartbeat_gpa = physical(elf, truth) + offsetof(struct lab_truth, heartbeat);
	}
	(void)elf_end(elf);
	return true;
}

bool observer_attach(struct observer *o, int pid)
{
	struct uni_vmm_ram_opts opts = { .text = o->text, .nr_text = o->nr_text };
	struct uni_err err = { 0 };

	if (o->heartbeat_gpa == 0 || pid == 0)
		return false;
	o->pid = pid;
	if (uni_vmm_ram_attach(pid, &opts, &o->ram, NULL, &err) == 0)
		return true;
	(void)fprintf(stderr, "conformance: cannot observe process %d: %s\n", pid, err.msg);
	return false;
}

/* Whatever a busy host needs. */
static const struct uni_as_budget at_leisure = { .bytes = 4096, .table_loads = 64 };

bool observer_attach_beside(struct observer *o, const char *target)
{
	const struct uni_attach_opts opts = { .text = o->text, .nr_text = o->nr_text };
	struct uni_err err = { 0 };
	struct uni_spec spec;
	struct uni_regs r;

	/* Lab guests stay on one root. Its registers may not be had while it is paused. */
	if (o->heartbeat_gva != 0 && uni_spec_parse(target, &spec, &err) == 0 &&
		uni_target_attach(&spec, &opts, &o->other, &err) == 0 &&
		o->other->ops->snap(o->other, VCPUS(1), &r, 0) == 0 &&
		o->other->arch->paging(&r, &o->root) == 0 &&
		uni_as_create(o->other->ops->gmem(o->other), &at_leisure, &o->as, &err) == 0)
		return true;
	(void)fprintf(stderr, "conformance: cannot observe by %s: %s\n", target, err.msg);
	return false;
}

bool observer_sees(const struct observer *o)
{
	return o->ram != NULL || o->as != NULL;
}

void observer_deinit(struct observer *o)
{
	uni_as_destroy(o->as);
	if (o->other != NULL)
		uni_target_detach(o->other);
	uni_gmem_destroy(o->ram);
	free(o->file);
	memset(o, 0, sizeof(*o));
}

bool observer_heartbeat(struct observer *o, uint64_t *ret)
{
	if (o->as != NULL) {
		uni_as_begin(o->as, &o->root);
		return uni_as_read_u64(o->as, uni_gva_of(o->heartbeat_gva), ret) == 0;
	}
	return o->ram != NULL &&
	       uni_gmem_read(o->ram, uni_gpa_of(o->heartbeat_gpa), ret, sizeof(*ret)) == 0;
}

bool observer_runs(struct observer *o, unsigned timeout_ms)
{
	uint64_t until = uni_now_ns() + timeout_ms * UNI_NSEC_PER_MSEC, first, now;

	bool sees = observer_heartbeat(o, &first);

	do {
		(void)usleep(1000);
		sees = sees && observer_heartbeat(o, &now);
	} while (sees && now == first && uni_now_ns() < until);
	if (!sees)
		(void)printf("# the heartbeat cannot be read\n");
	return sees && now != first;
}

bool observer_stands(struct observer *o, unsigned ms)
{
	uint64_t first, now;

	if (!observer_heartbeat(o, &first))
		return false;
	(void)usleep(ms * 1000);
	return observer_heartbeat(o, &now) && now == first;
}
