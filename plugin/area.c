/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared file: a sparse mapping. A page is used once the file system has given it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.h"

#define PIECE (UINT64_C(1) << 20) /* bytes asked for at once */
#define PAGE  4096u

static const struct {
	uint64_t size, max;
} parts[UNI_EXACT_PARTS] = {
	[UNI_EXACT_PART_FUNCTIONS] = { sizeof(struct uni_exact_function),
		UNI_EXACT_FUNCTIONS + UNI_EXACT_FOUND + 1 },
	[UNI_EXACT_PART_NODES] = { sizeof(struct uni_exact_node), UNI_EXACT_NODES },
	[UNI_EXACT_PART_BLOCKS] = { sizeof(struct uni_exact_block), UNI_EXACT_BLOCKS },
	[UNI_EXACT_PART_LENGTHS] = { 1, UNI_EXACT_LENGTHS },
	[UNI_EXACT_PART_CUTS] = { sizeof(struct uni_exact_cut), UNI_EXACT_CUTS },
};

static uint64_t room_of(unsigned part)
{
	return (parts[part].size * parts[part].max + PAGE - 1) / PAGE * PAGE;
}

int area_open(struct area *a, const char *path, const char **why_ret)
{
	struct flock l = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = UNI_EXACT_LOCK_OF_QEMU,
		.l_len = 1 };
	uint64_t size = PAGE;
	struct stat st;
	void *base;

	for (unsigned i = 0; i < UNI_EXACT_PARTS; i++)
		size += room_of(i);
	a->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->fd < 0 || fstat(a->fd, &st) != 0) {
		*why_ret = strerror(errno);
		return -1;
	}
	if (!S_ISREG(st.st_mode) || st.st_size != 0) {
		*why_ret = "it is there already and not empty";
		return -1;
	}
	(void)fcntl(a->fd, F_OFD_SETLK, &l); /* as long as QEMU lives */
	if (posix_fallocate(a->fd, 0, PAGE) != 0 || ftruncate(a->fd, (off_t)size) != 0) {
		*why_ret = "no room on the disk";
		return -1;
	}
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (base == MAP_FAILED) {
		*why_ret = strerror(errno);
		return -1;
	}
	a->base = base;
	a->header = base;
	size = PAGE;
	for (unsigned i = 0; i < UNI_EXACT_PARTS; i++) {
		a->header->part[i].at = size;
		size += room_of(i);
	}
	return 0;
}

void *area_entries(const struct area *a, enum uni_exact_part part)
{
	uint64_t at = PAGE;

	for (unsigned i = 0; i < part; i++)
		at += room_of(i);
	return a->base + at;
}

void *area_add(struct area *a, enum uni_exact_part part, uint64_t n, uint64_t *index_ret)
{
	uint64_t first = a->nr[part], want = (first + n) * parts[part].size;
	uint64_t at = (uint64_t)((uint8_t *)area_entries(a, part) - a->base);

	if (n > parts[part].max - first || a->full[part])
		return NULL;
	while (a->kept[part] < want) {
		uint64_t left = room_of(part) - a->kept[part], more = left < PIECE ? left : PIECE;

		if (posix_fallocate(a->fd, (off_t)(at + a->kept[part]), (off_t)more) != 0) {
			a->full[part] = true;
			return NULL;
		}
		a->kept[part] += more;
	}
	a->nr[part] += n;
	if (index_ret != NULL)
		*index_ret = first;
	__atomic_store_n(&a->header->part[part].nr, a->nr[part], __ATOMIC_RELEASE);
	return a->base + at + first * parts[part].size;
}
