/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest's page, by the kernel interfaces of any domain, privileged or not, without Xen's
 * libraries. /dev/xen/gntdev maps pages that others grant us. /dev/xen/xenbus takes requests for
 * xenstore (Xen's docs/misc/xenstore.txt).
 */
#include "backend/grant.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"

#define GNTDEV	   "/dev/xen/gntdev"
#define XENBUS	   "/dev/xen/xenbus"
#define DOMIDS	   0x7ff0u /* higher numbers have special meanings */
#define STORE_READ 2u
#define PATH_BYTES 64
#define VALUE_MAX  32 /* our value is a number, an error is a word */

/* The kernel's interface (include/uapi/xen/gntdev.h; that header needs other headers of Xen's). */
struct map_request {
	uint32_t count, pad;
	uint64_t index; /* offset to map it from */
	uint32_t domid, ref;
};
#define MAP_REQUEST _IOC(_IOC_NONE, 'G', 0, sizeof(struct map_request))

_Static_assert(sizeof(struct map_request) == 24, "layout");

struct store_head {
	uint32_t type, request, transaction, size;
};

static bool parse_u32(const char *text, uint32_t *ret)
{
	uint64_t v;

	if (!uni_parse_u64(text, &v) || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

bool uni_grant_parse(const char *text, struct uni_grant *ret)
{
	const char *colon = strchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);
	struct uni_grant g = { .has_ref = colon != NULL };
	char domain[8];

	if (len >= sizeof(domain))
		return false;
	memcpy(domain, text, len);
	domain[len] = '\0';
	if (!parse_u32(domain, &g.domid) || g.domid >= DOMIDS ||
		(g.has_ref && !parse_u32(colon + 1, &g.ref)))
		return false;
	*ret = g;
	return true;
}

static bool read_all(int fd, void *buf, size_t size)
{
	uint8_t *to = buf;

	while (size != 0) {
		ssize_t n = read(fd, to, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		size -= (size_t)n;
	}
	return true;
}

/*
 * Reads the value in xenstore, up to VALUE_MAX bytes, as a string; false: there is none, or we may
 * not read it.
 */
static bool read_store(const char *path, char ret[VALUE_MAX + 1])
{
	_cleanup_close_ int fd = open(XENBUS, O_RDWR | O_CLOEXEC);
	struct store_head head = { .type = STORE_READ, .size = (uint32_t)strlen(path) + 1 };
	uint8_t request[sizeof(head) + PATH_BYTES];

	if (fd < 0)
		return false;
	memcpy(request, &head, sizeof(head));
	memcpy(request + sizeof(head), path, head.size);
	if (uni_write_full(fd, request, sizeof(head) + head.size) != 0 ||
		!read_all(fd, &head, sizeof(head)) || head.type != STORE_READ ||
		head.size > VALUE_MAX || !read_all(fd, ret, head.size))
		return false;
	ret[head.size] = '\0';
	return true;
}

static int find_ref(struct uni_grant *g, struct uni_err *err)
{
	char path[PATH_BYTES], value[VALUE_MAX + 1];

	(void)snprintf(
		path, sizeof(path), "/local/domain/%" PRIu32 "/data/uniscope/ring-ref", g->domid);
	if (!read_store(path, value))
		return uni_err_set(err, UNI_ENOENT,
			"xen: domain %" PRIu32 " offers us no port: in xenstore there is no %s "
			"that this domain may read",
			g->domid, path);
	if (!parse_u32(value, &g->ref))
		return uni_err_set(err, UNI_EINVAL, "xen: %s is no grant reference", path);
	return 0;
}

/* As long as it is open, no other uniscope in this domain maps the same page. */
static int have_alone(const struct uni_grant *g, int *ret, struct uni_err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
		"uniscope/grant/%" PRIu32 "/%" PRIu32, g->domid, g->ref);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					  (size_t)len)) != 0) {
		int e = errno;

		if (fd >= 0)
			(void)close(fd);
		return uni_err_set(err, e == EADDRINUSE ? UNI_EBUSY : UNI_EIO,
			e == EADDRINUSE
				? "xen: another uniscope has the port of domain %" PRIu32 "%s"
				: "xen: the port of domain %" PRIu32 " cannot be had alone: %s",
			g->domid, e == EADDRINUSE ? "" : strerror(e));
	}
	*ret = fd;
	return 0;
}

static int open_device(int *ret, struct uni_err *err)
{
	int fd = open(GNTDEV, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return uni_err_set(err, UNI_ENOTSUP,
			"xen: there is no %s: this is no domain of Xen, or its kernel lacks the "
			"module xen-gntdev",
			GNTDEV);
	if (fd < 0)
		return uni_err_set(err, errno == EACCES ? UNI_EPERM : UNI_EIO,
			"xen: cannot open " GNTDEV ": %s", strerror(errno));
	*ret = fd;
	return 0;
}

static int map_grant(const struct uni_grant *g, int fd, void **ret, struct uni_err *err)
{
	struct map_request m = { .count = 1, .domid = g->domid, .ref = g->ref };
	void *at = MAP_FAILED;

	if (ioctl(fd, MAP_REQUEST, &m) == 0)
		at = mmap(NULL, UNI_GRANT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			(off_t)m.index);
	if (at == MAP_FAILED)
		return uni_err_set(err, UNI_EIO,
			"xen: domain %" PRIu32 "'s grant %" PRIu32
			" cannot be mapped (%s): it has to be to this domain, to be written",
			g->domid, g->ref, strerror(errno));
	*ret = at;
	return 0;
}

int uni_grant_map(const struct uni_grant *which, struct uni_grant_page *ret, struct uni_err *err)
{
	_cleanup_close_ int device = -1, alone = -1;
	struct uni_grant g = *which;
	void *at = NULL;
	int rc = open_device(&device, err);

	if (rc == 0 && !g.has_ref)
		rc = find_ref(&g, err);
	if (rc == 0)
		rc = have_alone(&g, &alone, err);
	if (rc == 0)
		rc = map_grant(&g, device, &at, err);
	if (rc != 0)
		return rc;
	*ret = (struct uni_grant_page){ .at = at, .domid = g.domid, .ref = g.ref };
	ret->fd[0] = uni_take_fd(&device);
	ret->fd[1] = uni_take_fd(&alone);
	return 0;
}

void uni_grant_unmap(struct uni_grant_page *p)
{
	if (p->stays)
		return;
	(void)munmap(p->at, UNI_GRANT_PAGE);
	for (size_t i = 0; i < uni_array_len(p->fd); i++) {
		if (p->fd[i] >= 0)
			(void)close(p->fd[i]);
	}
}
