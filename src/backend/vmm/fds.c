/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/fds.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/door.h"
#include "base/text.h"

bool uni_vmm_vcpu_of_link(const char *link, uint32_t *ret)
{
	static const char prefix[] = "anon_inode:kvm-vcpu:";
	uint64_t id;

	if (strncmp(link, prefix, sizeof(prefix) - 1) != 0)
		return false;
	if (!uni_parse_u64(link + sizeof(prefix) - 1, &id) || id > UINT32_MAX)
		return false;
	*ret = (uint32_t)id;
	return true;
}

static void add_vcpu(struct uni_vmm_fds *ret, uint32_t id, int fd)
{
	uint32_t i = ret->nr_vcpus;

	for (uint32_t k = 0; k < ret->nr_vcpus; k++)
		ret->duplicate = ret->duplicate || ret->vcpu[k].id == id;
	if (ret->nr_vcpus == UNI_VCPU_MAX) {
		ret->nr_vcpus_left_off++;
		return;
	}
	for (; i > 0 && ret->vcpu[i - 1].id > id; i--)
		ret->vcpu[i] = ret->vcpu[i - 1];
	ret->vcpu[i].id = id;
	ret->vcpu[i].fd = fd;
	ret->nr_vcpus++;
}

static void add_link(struct uni_vmm_fds *ret, const char *link, int fd)
{
	uint32_t id;

	if (uni_vmm_vcpu_of_link(link, &id))
		add_vcpu(ret, id, fd);
	else if (strcmp(link, "anon_inode:kvm-vm") == 0)
		ret->nr_vms++;
	else if (strcmp(link, "/dev/kvm") == 0 && ret->kvm_fd < 0)
		ret->kvm_fd = fd;
	else if (strcmp(link, "/dev/sev") == 0)
		ret->sev = true;
	else if (strstr(link, "kvm-gmem") !=
		 NULL) /* the name of its file system has changed over time */
		ret->guest_memfd = true;
}

int uni_vmm_fds_read(int pid, struct uni_vmm_fds *ret)
{
	char path[64], link[128];
	const struct dirent *e;
	size_t nr_hidden = 0, nr_seen = 0;
	DIR *dir;

	memset(ret, 0, sizeof(*ret));
	ret->kvm_fd = -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = uni_door_opendir(path);
	if (dir == NULL)
		return errno == EACCES || errno == EPERM ? -UNI_EPERM : -UNI_EGONE;
	while ((e = readdir(dir)) != NULL) {
		ssize_t n = uni_door_readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		uint64_t fd;

		if (n < 0 && errno == EACCES)
			nr_hidden++;
		if (n <= 0 || !uni_parse_u64(e->d_name, &fd) || fd > INT32_MAX)
			continue;
		nr_seen++;
		link[n] = '\0';
		add_link(ret, link, (int)fd);
	}
	(void)closedir(dir);
	/* Root without CAP_SYS_PTRACE may see that there are files, but not which. */
	return nr_hidden != 0 && nr_seen == 0 ? -UNI_EPERM : 0;
}
