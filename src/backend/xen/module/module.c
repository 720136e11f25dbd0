/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Xen module: the only code that calls Xen's libraries. libxencall, libxenforeignmemory and
 * libxengnttab have kept their names and functions since Xen 4.7. libxenstore has changed its name
 * once, but not the functions that we use, so both names are tried.
 */
#include "backend/xen/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xencall.h>
#include <xenforeignmemory.h>
#include <xengnttab.h>
#include <xentoollog.h>

#define PAGE_SIZE 4096u

/* The functions of libxenstore (xenstore.h) that we use. */
struct store {
	void *library, *handle;
	void *(*open)(unsigned long flags);
	void (*close)(void *h);
	void *(*read)(void *h, uint32_t transaction, const char *path, unsigned *len);
	char **(*directory)(void *h, uint32_t transaction, const char *path, unsigned *nr);
};

struct uni_xen_conn {
	xencall_handle *call;
	xenforeignmemory_handle *memory;
	xengnttab_handle *grants; /* NULL: there are none */
	struct store store;
	bool store_tried;
};

/* The libraries would print messages; our caller reports errors in its own words. */
static void drop_message(struct xentoollog_logger *l, xentoollog_level level, int errnoval,
	const char *context, const char *format, va_list al)
{
}

static struct xentoollog_logger silent = { .vmessage = drop_message };

static void conn_close(struct uni_xen_conn *c)
{
	if (c == NULL)
		return;
	if (c->store.handle != NULL)
		c->store.close(c->store.handle);
	if (c->store.library != NULL)
		(void)dlclose(c->store.library);
	if (c->grants != NULL)
		(void)xengnttab_close(c->grants);
	if (c->memory != NULL)
		(void)xenforeignmemory_close(c->memory);
	if (c->call != NULL)
		(void)xencall_close(c->call);
	free(c);
}

static int conn_open(struct uni_xen_conn **ret, char *why, size_t cap)
{
	struct uni_xen_conn *c = calloc(1, sizeof(*c));
	int e;

	if (c == NULL)
		return -ENOMEM;
	/* Used by one thread at a time: its buffers need no lock. */
	c->call = xencall_open(&silent, XENCALL_OPENFLAG_NON_REENTRANT);
	if (c->call != NULL)
		c->memory = xenforeignmemory_open(&silent, 0);
	if (c->memory == NULL) {
		e = errno != 0 ? errno : EIO;
		(void)snprintf(why, cap, "%s: %s",
			c->call == NULL ? "no hypercalls" : "no foreign memory", strerror(e));
		conn_close(c);
		return -e;
	}
	/* Now, as the caller may give up its rights to open more. */
	c->grants = xengnttab_open(&silent, 0);
	*ret = c;
	return 0;
}

static void *alloc_buffer(struct uni_xen_conn *c, size_t nr_pages)
{
	void *p = xencall_alloc_buffer_pages(c->call, nr_pages);

	if (p != NULL)
		memset(p, 0, nr_pages * PAGE_SIZE);
	return p;
}

static void buffer_free(struct uni_xen_conn *c, void *p, size_t nr_pages)
{
	xencall_free_buffer_pages(c->call, p, nr_pages);
}

static int errno_result(int rc)
{
	return rc < 0 ? -errno : rc;
}

static int hypercall_1(struct uni_xen_conn *c, unsigned op, void *arg)
{
	return errno_result(xencall1(c->call, op, (uintptr_t)arg));
}

static int hypercall_2(struct uni_xen_conn *c, unsigned op, void *arg, uint64_t arg2)
{
	return errno_result(xencall2(c->call, op, (uintptr_t)arg, arg2));
}

static uint8_t *map_as(struct uni_xen_conn *c, uint32_t domid, int prot, const uint64_t *frame,
	size_t nr, int *err_ret)
{
	_Static_assert(sizeof(xen_pfn_t) == sizeof(*frame), "64-bit dom0s only");

	return xenforeignmemory_map(c->memory, domid, prot, nr, (const xen_pfn_t *)frame, err_ret);
}

static const uint8_t *map_frames(
	struct uni_xen_conn *c, uint32_t domid, const uint64_t *frame, size_t nr, int *err_ret)
{
	return map_as(c, domid, PROT_READ, frame, nr, err_ret);
}

static uint8_t *map_rw(
	struct uni_xen_conn *c, uint32_t domid, const uint64_t *frame, size_t nr, int *err_ret)
{
	return map_as(c, domid, PROT_READ | PROT_WRITE, frame, nr, err_ret);
}

static void unmap_frames(struct uni_xen_conn *c, const uint8_t *at, size_t nr)
{
	(void)xenforeignmemory_unmap(c->memory, (void *)(uintptr_t)at, nr);
}

static const uint8_t *grant_map(
	struct uni_xen_conn *c, uint32_t domid, const uint32_t *ref, size_t nr)
{
	if (c->grants == NULL || nr > UINT32_MAX)
		return NULL;
	return xengnttab_map_domain_grant_refs(
		c->grants, (uint32_t)nr, domid, (uint32_t *)(uintptr_t)ref, PROT_READ);
}

static void grant_unmap(struct uni_xen_conn *c, const uint8_t *at, size_t nr)
{
	(void)xengnttab_unmap(c->grants, (void *)(uintptr_t)at, (uint32_t)nr);
}

static bool store_load(struct store *s)
{
	static const char *const names[] = { "libxenstore.so.4", "libxenstore.so.3.0" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && s->library == NULL; i++)
		s->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (s->library == NULL)
		return false;
	*(void **)&s->open = dlsym(s->library, "xs_open");
	*(void **)&s->close = dlsym(s->library, "xs_close");
	*(void **)&s->read = dlsym(s->library, "xs_read");
	*(void **)&s->directory = dlsym(s->library, "xs_directory");
	return s->open != NULL && s->close != NULL && s->read != NULL && s->directory != NULL;
}

/* NULL: there is none. */
static struct store *store_of(struct uni_xen_conn *c)
{
	if (!c->store_tried && store_load(&c->store))
		c->store.handle = c->store.open(0);
	c->store_tried = true;
	return c->store.handle != NULL ? &c->store : NULL;
}

static char *store_read(struct uni_xen_conn *c, const char *path, size_t *size_ret)
{
	struct store *s = store_of(c);
	unsigned len = 0;
	char *v = s != NULL ? s->read(s->handle, 0, path, &len) : NULL;

	*size_ret = len;
	return v;
}

static char **store_list(struct uni_xen_conn *c, const char *path, size_t *nr_ret)
{
	struct store *s = store_of(c);
	unsigned nr = 0;
	char **v = s != NULL ? s->directory(s->handle, 0, path, &nr) : NULL;

	*nr_ret = nr;
	return v;
}

extern const struct uni_xen_module uni_xen_module;

__attribute__((visibility("default"))) const struct uni_xen_module uni_xen_module = {
	.version = UNI_XEN_MODULE_VERSION,
	.size = sizeof(struct uni_xen_module),
	.open = conn_open,
	.close = conn_close,
	.buffer = alloc_buffer,
	.buffer_free = buffer_free,
	.call1 = hypercall_1,
	.call2 = hypercall_2,
	.map = map_frames,
	.unmap = unmap_frames,
	.map_rw = map_rw,
	.grant_map = grant_map,
	.grant_unmap = grant_unmap,
	.store_read = store_read,
	.store_list = store_list,
};
