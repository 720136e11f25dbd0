/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/kvm/bpf/btf.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"

#define FILE_MAX ((size_t)64 << 20)

/* The two sections of one BTF. */
struct parts {
	const uint8_t *types, *strings;
	uint32_t types_size, strings_size;
};

static bool split_up(const void *data, size_t size, struct parts *ret)
{
	struct btf_header h;

	if (size < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != BTF_VERSION || h.hdr_len < sizeof(h) ||
		h.hdr_len > size || h.type_len % 4 != 0)
		return false;
	size -= h.hdr_len;
	if (!uni_range_contains(0, size, h.type_off, h.type_len) ||
		!uni_range_contains(0, size, h.str_off, h.str_len))
		return false;
	*ret = (struct parts){ .types = (const uint8_t *)data + h.hdr_len + h.type_off,
		.strings = (const uint8_t *)data + h.hdr_len + h.str_off,
		.types_size = h.type_len,
		.strings_size = h.str_len };
	return true;
}

static uint8_t *put(uint8_t *at, const void *data, size_t size)
{
	if (size != 0)
		memcpy(at, data, size);
	return at + size;
}

int uni_btf_join(const void *base, size_t base_size, const void *split, size_t split_size,
	void **ret, size_t *size_ret)
{
	struct btf_header h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h) };
	struct parts a, b;
	uint8_t *out, *at;

	if (!split_up(base, base_size, &a) || !split_up(split, split_size, &b) ||
		__builtin_add_overflow(a.types_size, b.types_size, &h.type_len) ||
		__builtin_add_overflow(a.strings_size, b.strings_size, &h.str_len))
		return -UNI_EFORMAT;
	h.str_off = h.type_len;
	*size_ret = sizeof(h) + (size_t)h.type_len + h.str_len;
	out = malloc(*size_ret);
	if (out == NULL)
		return -UNI_ENOMEM;
	at = put(out, &h, sizeof(h));
	at = put(at, a.types, a.types_size);
	at = put(at, b.types, b.types_size);
	at = put(at, a.strings, a.strings_size);
	(void)put(at, b.strings, b.strings_size);
	*ret = out;
	return 0;
}

static int save(const void *data, size_t size, int *fd_ret, struct uni_err *err)
{
	int fd = memfd_create("uniscope-btf", MFD_CLOEXEC), r = -errno;

	if (fd >= 0)
		r = uni_write_full(fd, data, size);
	if (r == 0) {
		*fd_ret = fd;
		return 0;
	}
	if (fd >= 0)
		(void)close(fd);
	return uni_err_set(err, UNI_EIO, "cannot keep the types of the kernel: %s", strerror(-r));
}

int uni_btf_with_kvm(int *fd_ret, struct uni_err *err)
{
	_cleanup_free_ char *base = NULL, *split = NULL;
	_cleanup_free_ void *joined = NULL;
	size_t base_size, split_size, size = 0;
	int rc;

	*fd_ret = -1;
	if (uni_read_regular("/sys/kernel/btf/kvm", FILE_MAX, &split, &split_size, NULL) != 0)
		return 0;
	rc = uni_read_regular("/sys/kernel/btf/vmlinux", FILE_MAX, &base, &base_size, err);
	if (rc != 0)
		return rc;
	rc = uni_btf_join(base, base_size, split, split_size, &joined, &size);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"the types of the kernel or of KVM's module make no sense");
	return save(joined, size, fd_ret, err);
}
