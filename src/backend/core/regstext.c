/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "backend/core/file.h"

struct text {
	struct uni_core_file *f;
	struct uni_regs regs; /* of the vCPU that is being read */
	bool any;	      /* it has a register */
};

/* Other names: QEMU's (also for a vCPU in another mode), and gdb's. */
static const struct {
	const char *theirs, *ours;
} aliases[] = {
	{ "rfl", "rflags" },
	{ "efl", "rflags" },
	{ "eflags", "rflags" },
	{ "eip", "rip" },
	{ "esp", "rsp" },
	{ "ebp", "rbp" },
};

static size_t count_blanks(const char *p)
{
	return strspn(p, " \t");
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A hexadecimal number of at most 64 bits, with or without 0x, that ends where a word ends. */
static const char *parse_register_hex(const char *p, uint64_t *ret)
{
	unsigned digits = 0;
	uint64_t v = 0;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (; isxdigit((unsigned char)*p); p++, digits++) {
		unsigned d =
			(unsigned)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10);

		if (v >> 60 != 0)
			return NULL;
		v = v << 4 | d;
	}
	if (digits == 0 || is_name(*p))
		return NULL;
	*ret = v;
	return p;
}

static bool same_word(const char *name, const char *word, size_t len)
{
	return name != NULL && strlen(name) == len && strncasecmp(name, word, len) == 0;
}

/* QEMU's X05 is x5. */
static bool same_padded(const char *name, const char *word, size_t len)
{
	return len == 3 && word[1] == '0' && strlen(name) == 2 && (word[0] | 32) == 'x' &&
	       name[0] == 'x' && name[1] == word[2];
}

/* Replaces gdb's common names, and cuts off the exception level. */
static bool common_name(const struct uni_arch *arch, const char **word, size_t *len)
{
	if (same_word("pc", *word, *len))
		*word = arch->reg_names[arch->pc_reg];
	else if (same_word("sp", *word, *len))
		*word = arch->reg_names[arch->sp_reg];
	else if (*len > 4 && strncasecmp(*word + *len - 4, "_el1", 4) == 0) {
		*len -= 4;
		return true;
	} else
		return false;
	*len = strlen(*word);
	return true;
}

static bool set_register(struct text *t, const char *word, size_t len, uint64_t v)
{
	const struct uni_arch *arch = t->f->arch;
	bool common = common_name(arch, &word, &len);

	for (size_t i = 0; !common && i < uni_array_len(aliases); i++) {
		if (same_word(aliases[i].theirs, word, len)) {
			word = aliases[i].ours;
			len = strlen(word);
			break;
		}
	}
	for (unsigned i = 0; i < arch->nr_regs; i++) {
		if (same_word(arch->reg_names[i], word, len) ||
			same_padded(arch->reg_names[i], word, len)) {
			uni_regs_set(&t->regs, i, v);
			return true;
		}
	}
	for (unsigned i = 0; i < UNI_SYS_MAX; i++) {
		if (same_word(arch->sys_names[i], word, len)) {
			uni_regs_set_sys(&t->regs, i, v);
			return true;
		}
	}
	if (same_word("hlt", word, len) && v == 1)
		t->regs.state = UNI_VCPU_HALTED;
	return false;
}

/* A QEMU segment: selector, base, limit, flags. */
static void set_base(struct text *t, const char *word, size_t len, const char *rest)
{
	uint64_t base;

	if (len != 2 || parse_register_hex(rest + count_blanks(rest), &base) == NULL)
		return;
	if (same_word("fs", word, len))
		(void)set_register(t, "fs_base", 7, base);
	else if (same_word("gs", word, len))
		(void)set_register(t, "gs_base", 7, base);
}

static void read_line(struct text *t, const char *p, const char *end)
{
	for (bool first = true; p < end; first = false) {
		const char *word, *after;
		uint64_t v;
		size_t len;

		while (p < end && !is_name(*p))
			p++;
		word = p;
		while (p < end && is_name(*p))
			p++;
		len = (size_t)(p - word);
		after = p + count_blanks(p);
		if (*after == '=')
			after += 1 + count_blanks(after + 1);
		else if (!first || after == p)
			continue;
		after = parse_register_hex(after, &v);
		if (len == 0 || after == NULL || after > end)
			continue;
		t->any |= set_register(t, word, len, v);
		set_base(t, word, len, after);
		p = after;
	}
}

/* Adds the vCPU that has been read, if there was one. */
static int end_vcpu(struct text *t, struct uni_err *err)
{
	int rc = 0;

	if (t->any) {
		const struct uni_core_arch *ops = t->f->ops;

		(void)ops->complete(&t->regs);
		if (!t->regs.pc_valid)
			return uni_err_set(err, UNI_EFORMAT,
				"the registers of vCPU %llu lack %s: give NAME=HEX for each, %s",
				(unsigned long long)t->f->nr_vcpus, ops->pc, ops->registers);
		rc = uni_core_add_vcpu(t->f, &t->regs, err);
		t->f->nr_vcpus++;
	}
	t->regs = (struct uni_regs){ .state = UNI_VCPU_RUNNING };
	t->any = false;
	return rc;
}

int uni_core_regs_text(struct uni_core_file *f, const char *text, struct uni_err *err)
{
	struct text t = { .f = f };
	int rc;

	for (const char *p = text; *p != '\0';) {
		const char *end = p + strcspn(p, "\r\n");

		p += count_blanks(p);
		if (strncasecmp(p, "CPU#", 4) == 0) {
			rc = end_vcpu(&t, err);
			if (rc != 0)
				return rc;
		} else {
			read_line(&t, p, end);
		}
		p = end + (*end != '\0');
	}
	rc = end_vcpu(&t, err);
	if (rc == 0 && f->vcpu.nr == 0)
		rc = uni_err_set(err, UNI_EFORMAT,
			"there are no registers in the text: it holds NAME=HEX for each, or what "
			"QEMU's `info registers -a` prints");
	return rc;
}

static bool tells_tables(const struct uni_core_arch *ops, const struct uni_regs *r)
{
	uint64_t v;

	for (size_t i = 0; i < uni_array_len(ops->needs_one_of); i++) {
		if (uni_regs_get_sys(r, ops->needs_one_of[i], &v))
			return true;
	}
	return false;
}

int uni_core_file_complete(struct uni_core_file *f, const char *sysregs, struct uni_err *err)
{
	struct text t = { .f = f };
	bool known = true;
	uint64_t v;

	if (f->ops->no_tables == NULL || f->space != UNI_GMEM_PHYSICAL)
		return 0;
	for (const char *p = sysregs; *p != '\0';) {
		const char *end = p + strcspn(p, "\r\n");

		read_line(&t, p, end);
		p = end + (*end != '\0');
	}
	uni_vec_foreach (r, &f->vcpu) {
		for (unsigned i = 0; i < UNI_SYS_MAX; i++) {
			if (uni_regs_get_sys(&t.regs, i, &v))
				uni_regs_set_sys(r, i, v);
		}
		known = known && tells_tables(f->ops, r) && f->ops->complete(r);
	}
	if (known)
		return 0;
	return uni_err_set(err, UNI_ENOTSUP, "%s", f->ops->no_tables);
}
