/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of the Xen module, a separate shared object. Only the module is linked with Xen's
 * libraries, so the program runs where there are none. The module knows no layouts and makes no
 * decisions. The program does that, and its tests use a table of their own.
 */
#ifndef UNI_BACKEND_XEN_MODULE_H
#define UNI_BACKEND_XEN_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define UNI_XEN_MODULE_SYMBOL  "uni_xen_module"
#define UNI_XEN_MODULE_VERSION 2u /* changes with anything below */

struct uni_xen_conn; /* the module's */

/* Calls return 0 or more, or -errno. One thread at a time uses a connection; it is never forked. */
struct uni_xen_module {
	uint32_t version;
	uint32_t size; /* of this struct */

	/* If there are no hypercalls or mappings: -errno, and the reason as text. */
	int (*open)(struct uni_xen_conn **ret, char *why, size_t cap);
	void (*close)(struct uni_xen_conn *c); /* NULL-safe; buffers were freed before */

	/*
	 * Zeroed, page-aligned memory that the hypervisor may read and write; NULL: out of memory.
	 */
	void *(*buffer)(struct uni_xen_conn *c, size_t nr_pages);
	void (*buffer_free)(struct uni_xen_conn *c, void *p, size_t nr_pages);

	/* Hypercalls; the arguments point into buffers of the same connection. */
	int (*call1)(struct uni_xen_conn *c, unsigned op, void *arg);
	int (*call2)(struct uni_xen_conn *c, unsigned op, void *arg, uint64_t arg2);

	/*
	 * Maps frames of a domain in a row, for reading; err_ret[i] is 0 if frame i is there. NULL:
	 * none is.
	 */
	const uint8_t *(*map)(struct uni_xen_conn *c, uint32_t domid, const uint64_t *frame,
		size_t nr, int *err_ret);
	void (*unmap)(struct uni_xen_conn *c, const uint8_t *at, size_t nr);
	/* The same for reading and writing; unmap() is for it, too. */
	uint8_t *(*map_rw)(struct uni_xen_conn *c, uint32_t domid, const uint64_t *frame, size_t nr,
		int *err_ret);

	/*
	 * Maps pages that a domain grants us, for reading. NULL: not all of them; errno says why.
	 */
	const uint8_t *(*grant_map)(
		struct uni_xen_conn *c, uint32_t domid, const uint32_t *ref, size_t nr);
	void (*grant_unmap)(struct uni_xen_conn *c, const uint8_t *at, size_t nr);

	/* xenstore; the caller frees the result with free(). NULL: no such path, or no xenstore. */
	char *(*store_read)(struct uni_xen_conn *c, const char *path, size_t *size_ret);
	char **(*store_list)(struct uni_xen_conn *c, const char *path, size_t *nr_ret);
};

#endif
