/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/btf.h"

#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/err.h"
#include "base/cleanup.h"
#include "base/io.h"

#define BASE_PATH   "/sys/kernel/btf/vmlinux"
#define MODULE_PATH "/sys/kernel/btf/kvm"
#define BTF_MAX	    (256u << 20)

/* The two parts of a description, inside its bytes. */
struct parts {
	const uint8_t *types, *strings;
	uint32_t types_size, strings_size;
};

static int find_parts(const uint8_t *data, size_t size, struct parts *ret)
{
	struct btf_header h;

	if (size < sizeof(h))
		return -UNI_EFORMAT;
	memcpy(&h, data, sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != 1 || h.hdr_len < sizeof(h) || h.hdr_len > size)
		return -UNI_EFORMAT;
	size -= h.hdr_len;
	if (!uni_range_contains(0, size, h.type_off, h.type_len) ||
		!uni_range_contains(0, size, h.str_off, h.str_len))
		return -UNI_EFORMAT;
	*ret = (struct parts){ data + h.hdr_len + h.type_off, data + h.hdr_len + h.str_off,
		h.type_len, h.str_len };
	return 0;
}

int uni_kvm_btf_join(const uint8_t *base, size_t base_size, const uint8_t *module,
	size_t module_size, uint8_t **ret, size_t *size_ret)
{
	struct btf_header h = { .magic = BTF_MAGIC, .version = 1, .hdr_len = sizeof(h) };
	struct parts a, b;
	uint8_t *p;
	int rc = find_parts(base, base_size, &a);

	if (rc == 0)
		rc = find_parts(module, module_size, &b);
	if (rc != 0)
		return rc;
	if (__builtin_add_overflow(a.types_size, b.types_size, &h.type_len) ||
		__builtin_add_overflow(a.strings_size, b.strings_size, &h.str_len) ||
		h.type_len > BTF_MAX || h.str_len > BTF_MAX)
		return -UNI_EFORMAT;
	h.str_off = h.type_len;
	*size_ret = sizeof(h) + h.type_len + h.str_len;
	*ret = p = malloc(*size_ret);
	if (p == NULL)
		return -UNI_ENOMEM;
	memcpy(p, &h, sizeof(h));
	p += sizeof(h);
	memcpy(p, a.types, a.types_size);
	p += a.types_size;
	memcpy(p, b.types, b.types_size);
	p += b.types_size;
	memcpy(p, a.strings, a.strings_size);
	p += a.strings_size;
	memcpy(p, b.strings, b.strings_size);
	return 0;
}

int uni_kvm_btf_open(char *path_ret, size_t cap)
{
	_cleanup_free_ char *base = NULL;
	_cleanup_free_ char *module = NULL;
	_cleanup_free_ uint8_t *both = NULL;
	_cleanup_close_ int fd = -1;
	size_t base_size = 0, module_size = 0, size = 0;

	if (access(MODULE_PATH, R_OK) != 0 ||
		uni_read_file(MODULE_PATH, BTF_MAX, &module, &module_size, NULL) != 0 ||
		uni_read_file(BASE_PATH, BTF_MAX, &base, &base_size, NULL) != 0 ||
		uni_kvm_btf_join((const uint8_t *)base, base_size, (const uint8_t *)module,
			module_size, &both, &size) != 0)
		return -1;
	fd = memfd_create("uniscope-btf", MFD_CLOEXEC);
	if (fd < 0 || uni_write_full(fd, both, size) != 0)
		return -1;
	(void)snprintf(path_ret, cap, "/proc/self/fd/%d", fd);
	return uni_take_fd(&fd);
}
