/* SPDX-License-Identifier: BSD-2-Clause */
/* The module for Xen with libraries of our own in place of Xen's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xencall.h>
#include <xenforeignmemory.h>
#include <xengnttab.h>

#include "backend/xen/module.h"

extern const struct uni_xen_module uni_xen_module;

static const struct uni_xen_module *const m = &uni_xen_module;

/* The libraries, and the calls of them. */
static struct {
	bool no_call, no_memory, no_grants, no_pages, no_store, refused;
	const char *library, *lacks;
	unsigned opened, closed, libraries, unloaded, asked, stores, stores_closed;
	unsigned op;
	uint64_t arg, arg2;
	int prot;
} is;

static char call, memory, grants, store, library;
static uint8_t pages[2 * 4096], frames[4096];

xencall_handle *xencall_open(struct xentoollog_logger *l, unsigned flags)
{
	if (is.no_call) {
		errno = ENOENT;
		return NULL;
	}
	is.opened++;
	return (xencall_handle *)(void *)&call;
}

int xencall_close(xencall_handle *h)
{
	is.closed++;
	return 0;
}

xenforeignmemory_handle *xenforeignmemory_open(struct xentoollog_logger *l, unsigned flags)
{
	errno = 0;
	if (is.no_memory)
		return NULL;
	is.opened++;
	return (xenforeignmemory_handle *)(void *)&memory;
}

int xenforeignmemory_close(xenforeignmemory_handle *h)
{
	is.closed++;
	return 0;
}

xengnttab_handle *xengnttab_open(struct xentoollog_logger *l, unsigned flags)
{
	if (is.no_grants)
		return NULL;
	is.opened++;
	return (xengnttab_handle *)(void *)&grants;
}

int xengnttab_close(xengnttab_handle *h)
{
	is.closed++;
	return 0;
}

void *xencall_alloc_buffer_pages(xencall_handle *h, size_t nr)
{
	memset(pages, 0xee, sizeof(pages));
	return is.no_pages ? NULL : pages;
}

void xencall_free_buffer_pages(xencall_handle *h, void *p, size_t nr)
{
	assert_true(p == pages && nr == 1);
}

int xencall1(xencall_handle *h, unsigned op, uint64_t arg)
{
	is.op = op;
	is.arg = arg;
	errno = EPERM;
	return is.refused ? -1 : 7;
}

int xencall2(xencall_handle *h, unsigned op, uint64_t arg, uint64_t arg2)
{
	is.arg2 = arg2;
	return xencall1(h, op, arg);
}

void *xenforeignmemory_map(xenforeignmemory_handle *h, uint32_t dom, int prot, size_t nr,
	const xen_pfn_t arr[], int err[])
{
	is.prot = prot;
	err[0] = (int)dom;
	return arr[0] == 9 && nr == 1 ? frames : NULL;
}

int xenforeignmemory_unmap(xenforeignmemory_handle *h, void *addr, size_t nr)
{
	is.closed += addr == frames && nr == 1;
	return 0;
}

void *xengnttab_map_domain_grant_refs(
	xengnttab_handle *h, uint32_t count, uint32_t domid, uint32_t *refs, int prot)
{
	is.prot = prot;
	return refs[0] == 8 && count == 1 && domid == 5 ? frames : NULL;
}

int xengnttab_unmap(xengnttab_handle *h, void *start, uint32_t count)
{
	is.closed += start == frames && count == 1;
	return 0;
}

static void *store_open(unsigned long flags)
{
	is.stores++;
	return is.no_store ? NULL : &store;
}

static void store_close(void *h)
{
	assert_ptr_equal(h, &store);
	is.stores_closed++;
}

static void *store_get(void *h, uint32_t transaction, const char *path, unsigned *len)
{
	assert_ptr_equal(h, &store);
	assert_int_equal(transaction, 0); /* none */
	if (strcmp(path, "/name") != 0)
		return NULL;
	*len = 4;
	return strdup("demo");
}

static char **store_directory(void *h, uint32_t transaction, const char *path, unsigned *nr)
{
	assert_int_equal(transaction, 0);
	*nr = strcmp(path, "/") == 0 ? 3 : 0;
	return *nr != 0 ? calloc(3, sizeof(char *)) : NULL;
}

/* Its build calls these three by other names. */
void *dlopen(const char *name, int flags)
{
	is.asked++;
	if (is.library == NULL || strcmp(name, is.library) != 0)
		return NULL;
	is.libraries++;
	return &library;
}

void *dlsym(void *h, const char *name)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} fns[] = {
		{ "xs_open", (void (*)(void))store_open },
		{ "xs_close", (void (*)(void))store_close },
		{ "xs_read", (void (*)(void))store_get },
		{ "xs_directory", (void (*)(void))store_directory },
	};

	assert_ptr_equal(h, &library);
	for (unsigned i = 0; i < 4; i++) {
		if (strcmp(fns[i].name, name) == 0 && (is.lacks == NULL || strcmp(name, is.lacks)))
			return *(void *const *)&fns[i].fn;
	}
	return NULL;
}

int dlclose(void *h)
{
	is.unloaded++;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&is, 0, sizeof(is));
	is.library = "libxenstore.so.4";
	return 0;
}

static struct uni_xen_conn *connect_it(void)
{
	struct uni_xen_conn *c = NULL;
	char why[64];

	assert_int_equal(m->open(&c, why, sizeof(why)), 0);
	assert_non_null(c);
	return c;
}

static void what_is_missing(void **state)
{
	struct uni_xen_conn *c = NULL;
	char why[64];

	(void)state;
	is.no_call = true;
	assert_int_equal(m->open(&c, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "no hypercalls: No such file or directory");
	is.no_call = false;
	is.no_memory = true;
	assert_int_equal(m->open(&c, why, sizeof(why)), -EIO);
	assert_string_equal(why, "no foreign memory: Input/output error");
	assert_null(c);
	assert_int_equal(is.closed, is.opened);
	m->close(NULL);
}

static void memory_and_calls(void **state)
{
	static const uint8_t zeros[4096];
	const uint64_t frame = 9, other = 10;
	const uint32_t ref = 8;
	struct uni_xen_conn *c = connect_it();
	int err = 0;
	void *p = m->buffer(c, 1);

	(void)state;
	assert_ptr_equal(p, pages);
	assert_memory_equal(p, zeros, 4096);
	assert_int_equal(pages[4096], 0xee);
	m->buffer_free(c, p, 1);
	is.no_pages = true;
	assert_null(m->buffer(c, 1));
	assert_int_equal(m->call1(c, 36, p), 7);
	assert_true(is.op == 36 && is.arg == (uintptr_t)p);
	assert_int_equal(m->call2(c, 35, p, 11), 7);
	assert_true(is.op == 35 && is.arg2 == 11);
	is.refused = true;
	assert_int_equal(m->call1(c, 36, p), -EPERM);
	assert_int_equal(m->call2(c, 36, p, 0), -EPERM);
	assert_ptr_equal(m->map(c, 5, &frame, 1, &err), frames);
	assert_int_equal(is.prot, PROT_READ);
	assert_int_equal(err, 5);
	assert_null(m->map(c, 5, &other, 1, &err));
	assert_ptr_equal(m->map_rw(c, 5, &frame, 1, &err), frames);
	assert_int_equal(is.prot, PROT_READ | PROT_WRITE);
	m->unmap(c, frames, 1);
	assert_ptr_equal(m->grant_map(c, 5, &ref, 1), frames);
	assert_int_equal(is.prot, PROT_READ);
	assert_null(m->grant_map(c, 5, &ref, (size_t)UINT32_MAX + 1));
	m->grant_unmap(c, frames, 1);
	assert_int_equal(is.closed, 2);
	m->close(c);
	assert_int_equal(is.closed, 2 + is.opened);
	is.no_grants = true;
	c = connect_it();
	assert_null(m->grant_map(c, 5, &ref, 1));
	m->close(c);
}

/* Under either of the library's names; it is looked for once, and not before it is needed. */
static void values(void **state)
{
	static const char *const names[] = { "libxenstore.so.4", "libxenstore.so.3.0" };

	for (unsigned i = 0; i < 2; i++) {
		struct uni_xen_conn *c;
		size_t size = 1;
		char *v, **list;

		(void)begin(state);
		is.library = names[i];
		c = connect_it();
		assert_int_equal(is.asked, 0);
		v = m->store_read(c, "/name", &size);
		assert_string_equal(v, "demo");
		assert_int_equal(size, 4);
		free(v);
		assert_null(m->store_read(c, "/none", &size));
		assert_int_equal(size, 0);
		list = m->store_list(c, "/", &size);
		assert_non_null(list);
		assert_int_equal(size, 3);
		free(list);
		assert_null(m->store_list(c, "/none", &size));
		assert_int_equal(size, 0);
		assert_int_equal(is.asked, 1 + i);
		assert_int_equal(is.stores, 1);
		m->close(c);
		assert_true(is.stores_closed == 1 && is.unloaded == 1);
		assert_int_equal(is.closed, is.opened);
	}
}

static void no_store(void **state)
{
	static const char *const lacks[] = { NULL, NULL, "xs_open", "xs_close", "xs_read",
		"xs_directory" };

	for (unsigned i = 0; i < 6; i++) {
		struct uni_xen_conn *c;
		size_t size = 1;

		(void)begin(state);
		is.library = i == 0 ? NULL : is.library;
		is.no_store = i == 1;
		is.lacks = lacks[i];
		c = connect_it();
		assert_null(m->store_read(c, "/name", &size));
		assert_int_equal(size, 0);
		size = 1;
		assert_null(m->store_list(c, "/", &size));
		assert_int_equal(size, 0);
		assert_int_equal(is.asked, i == 0 ? 2 : 1); /* not for each value */
		assert_int_equal(is.stores, i == 1);
		m->close(c);
		assert_int_equal(is.stores_closed, 0);
		assert_int_equal(is.unloaded, is.libraries);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_missing, begin),
		cmocka_unit_test_setup(memory_and_calls, begin),
		cmocka_unit_test_setup(values, begin),
		cmocka_unit_test_setup(no_store, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
