/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/xen/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json_load.h"
#include "base/text.h"
#include "backend/xen/uuid.h"

#define NOTES_MAX ((size_t)1 << 20)

/* A value as cleaned text; false: there is none. */
static bool read_text(struct uni_xen_call *x, const char *path, char *ret, size_t cap)
{
	size_t size = 0;
	_cleanup_free_ char *v =
		uni_xen_call_module(x)->store_read(uni_xen_call_conn(x), path, &size);

	ret[0] = '\0';
	if (v == NULL)
		return false;
	(void)uni_text_clean(ret, cap, v, size);
	return true;
}

static int compare_domids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

size_t uni_xen_store_domains(struct uni_xen_call *x, uint32_t *ret, size_t cap)
{
	size_t nr = 0, n = 0;
	_cleanup_free_ char **names =
		uni_xen_call_module(x)->store_list(uni_xen_call_conn(x), "/local/domain", &nr);

	for (size_t i = 0; names != NULL && i < nr && n < cap; i++) {
		uint64_t domid;

		if (uni_parse_u64(names[i], &domid) && domid != 0 && domid < UNI_XEN_DOMAIN_MAX)
			ret[n++] = (uint32_t)domid;
	}
	qsort(ret, n, sizeof(*ret), compare_domids);
	return n;
}

void uni_xen_store_name(struct uni_xen_call *x, uint32_t domid, char *ret, size_t cap)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/local/domain/%u/name", domid);
	(void)read_text(x, path, ret, cap);
}

const char *uni_xen_store_kind(struct uni_xen_call *x, const struct uni_xen_dominfo *d)
{
	char path[64], kind[8];

	if (!d->hvm)
		return "pv";
	(void)snprintf(path, sizeof(path), "/libxl/%u/type", d->domid);
	return read_text(x, path, kind, sizeof(kind)) && strcmp(kind, "pvh") == 0 ? "pvh" : "hvm";
}

void uni_xen_store_kernel_of(const char *json, size_t size, char *ret, size_t cap)
{
	/* xl puts a zero byte at its end. */
	json_t *root = uni_json_load(json, size, JSON_DISABLE_EOF_CHECK, UNI_JSON_TIMES, NULL);
	const json_t *b_info = json_object_get(root, "b_info");
	const char *kernel = json_string_value(json_object_get(b_info, "kernel"));

	/* xl of 4.7 keeps it among the settings for PV domains. */
	if (kernel == NULL)
		kernel = json_string_value(
			json_object_get(json_object_get(b_info, "type.pv"), "kernel"));
	ret[0] = '\0';
	if (kernel != NULL)
		(void)uni_text_clean(ret, cap, kernel, strlen(kernel));
	json_decref(root);
}

/* xl keeps a domain's configuration in a file, even if xenstore has no kernel (PVH). */
static void kernel_from_notes(const struct uni_xen_dominfo *d, char *ret, size_t cap)
{
	char path[128], uuid[UNI_XEN_UUID_TEXT];
	_cleanup_free_ char *json = NULL;
	size_t size;

	uni_xen_uuid_text(d->uuid, uuid);
	(void)snprintf(
		path, sizeof(path), "/var/lib/xen/userdata-d.%u.%s.libxl-json", d->domid, uuid);
	if (uni_read_regular(path, NOTES_MAX, &json, &size, NULL) == 0)
		uni_xen_store_kernel_of(json, size, ret, cap);
}

void uni_xen_store_image(
	struct uni_xen_call *x, const struct uni_xen_dominfo *d, char *ret, size_t cap)
{
	char path[80], uuid[UNI_XEN_UUID_TEXT];

	uni_xen_uuid_text(d->uuid, uuid);
	(void)snprintf(path, sizeof(path), "/vm/%s/image/kernel", uuid);
	if (!read_text(x, path, ret, cap) || ret[0] == '\0')
		kernel_from_notes(d, ret, cap);
	/* A boot loader's file: it is gone when the domain runs. */
	if (strncmp(ret, "/var/run/", 9) == 0 || strncmp(ret, "/run/", 5) == 0)
		ret[0] = '\0';
}

/* By its name, or by its UUID as `xl list -v` shows it. */
static bool is_called(struct uni_xen_call *x, uint32_t domid, const char *text)
{
	char name[128], uuid[UNI_XEN_UUID_TEXT];
	struct uni_xen_dominfo d;

	uni_xen_store_name(x, domid, name, sizeof(name));
	if (strcmp(name, text) == 0)
		return true;
	if (strlen(text) != UNI_XEN_UUID_TEXT - 1 || uni_xen_call_info(x, domid, &d) != 0)
		return false;
	uni_xen_uuid_text(d.uuid, uuid);
	return strcasecmp(uuid, text) == 0;
}

int uni_xen_store_find(struct uni_xen_call *x, const char *text, uint32_t *ret, struct uni_err *err)
{
	_cleanup_free_ uint32_t *domid = calloc(UNI_XEN_DOMAIN_MAX, sizeof(*domid));
	uint32_t hit = 0;
	uint64_t number;
	size_t nr;

	if (uni_parse_u64(text, &number)) {
		if (number == 0 || number >= UNI_XEN_DOMAIN_MAX)
			return uni_err_set(err, UNI_EUSAGE,
				number == 0 ? "xen: domain 0 is the one that uniscope runs in"
					    : "xen: no domain can have that number");
		*ret = (uint32_t)number;
		return 0;
	}
	if (domid == NULL)
		return uni_err_nomem(err);
	nr = uni_xen_store_domains(x, domid, UNI_XEN_DOMAIN_MAX);
	for (size_t i = 0; i < nr; i++) {
		if (!is_called(x, domid[i], text))
			continue;
		if (hit != 0)
			return uni_err_set(err, UNI_EUSAGE,
				"xen: domains %u and %u have that name: give the number", hit,
				domid[i]);
		hit = domid[i];
	}
	if (hit == 0)
		return uni_err_set(err, UNI_ENOENT,
			"xen: no domain is named %s; `uniscope ls` or `xl list` shows them", text);
	*ret = hit;
	return 0;
}
