/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/forced.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/err.h"
#include "backend/vmm/maps.h"

static const struct uni_vmm_forced_map *find_forced_map(
	const struct uni_vmm_forced *f, uint64_t hva)
{
	for (size_t i = 0; i < f->map.nr; i++) {
		if (uni_range_has(f->map.v[i].start, f->map.v[i].size, hva))
			return &f->map.v[i];
	}
	return NULL;
}

/* Only memory: a file with a name would keep the changes. */
static bool is_memory(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

static int open_map(int pid, const struct uni_vmm_map *m, uint64_t *offset_ret)
{
	uint64_t end = m->start;
	char path[96];

	end += m->size;
	if (m->shared) {
		*offset_ret = m->offset;
		(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
			m->start, end);
	} else {
		*offset_ret = m->start;
		(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	}
	return open(path, O_RDWR | O_CLOEXEC);
}

int uni_vmm_forced_add(struct uni_vmm_forced *f, int pid, const struct uni_vmm_maps *maps,
	uint64_t hva, size_t len)
{
	for (size_t done = 0; done < len;) {
		const struct uni_vmm_map *m = uni_vmm_maps_find(maps, hva + done);
		struct uni_vmm_forced_map one;

		if (m == NULL)
			return 0;
		done += m->size - (hva + done - m->start);
		if (m->writable || find_forced_map(f, m->start) != NULL)
			continue;
		one = (struct uni_vmm_forced_map){ .start = m->start, .size = m->size };
		one.fd = open_map(pid, m, &one.offset);
		if (one.fd < 0)
			continue;
		if (m->shared && !is_memory(one.fd)) {
			(void)close(one.fd);
			continue;
		}
		if (!uni_vec_push(&f->map, one)) {
			(void)close(one.fd);
			return -UNI_ENOMEM;
		}
	}
	return 0;
}

void uni_vmm_forced_deinit(struct uni_vmm_forced *f)
{
	for (size_t i = 0; i < f->map.nr; i++)
		(void)close(f->map.v[i].fd);
	uni_vec_free(&f->map);
}

int uni_vmm_forced_write(
	const struct uni_vmm_forced *f, int pid, uint64_t hva, const void *buf, size_t len)
{
	for (size_t done = 0, n; done < len; done += n) {
		const struct uni_vmm_forced_map *m = find_forced_map(f, hva + done);
		struct iovec local = { (uint8_t *)(uintptr_t)buf + done, len - done };
		struct iovec remote = { (void *)(uintptr_t)(hva + done), len - done };
		ssize_t got;

		if (m != NULL) {
			n = uni_min(len - done, (size_t)(m->size - (hva + done - m->start)));
			got = pwrite(m->fd, local.iov_base, n,
				(off_t)(m->offset + (hva + done - m->start)));
			if (got != (ssize_t)n)
				return -UNI_EFAULT;
			continue;
		}
		got = process_vm_writev(pid, &local, 1, &remote, 1, 0);
		if (got <= 0)
			return -UNI_EFAULT;
		n = (size_t)got;
	}
	return 0;
}
