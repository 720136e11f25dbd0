/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the functions to be counted, and a way to the guest that has breakpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/code.h"
#include "app/counting.h"
#include "app/resolve.h"
#include "base/checked.h"
#include "base/text.h"

/* The guest's image, then those that were found in its memory. */
static struct uni_located image_of(const struct uni_guest *g, size_t i)
{
	return i == 0 ? (struct uni_located){ .image = g->image, .bias = g->bias } : g->more[i - 1];
}

static int choose_function(
	const struct uni_guest *g, const char *name, uint64_t *ret, struct uni_err *err)
{
	size_t nr = 0;

	if (uni_parse_u64(name, ret))
		return 0;
	if (g->image == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"%s: functions are found in the image: give it with -e, or give an address "
			"(0x...)",
			name);
	for (size_t i = 0; i <= g->nr_more; i++) {
		const struct uni_located one = image_of(g, i);
		const struct uni_symbol *sym;
		int rc = uni_code_choose(one.image, name, one.bias, &sym, err);

		if (rc != 0)
			return rc;
		if (sym == NULL)
			continue;
		if (nr++ != 0)
			return uni_err_set(err, UNI_EUSAGE,
				"several images have a function %s: give the address of one, "
				"0x%" PRIx64 " or 0x%" PRIx64,
				name, *ret, sym->addr + one.bias);
		*ret = sym->addr + one.bias;
	}
	if (nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"no function %s in the image. If it is inlined everywhere, it has no code "
			"of its own to stop at",
			name);
	return 0;
}

/* A later instruction would give the flag to the guest, which would trap. */
static bool begins_with_flags(const struct uni_guest *g, const struct uni_image *img, uint64_t svma)
{
	bool (*stores_flags)(const uint8_t *, size_t) = g->t->arch->stores_flags;

	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *s = uni_image_segment(img, i);
		uint64_t at = svma - s->vaddr;

		if (uni_range_contains(s->vaddr, s->file_size, svma, 1))
			return stores_flags != NULL &&
			       stores_flags(s->bytes + at, s->file_size - at);
	}
	return false;
}

static int check_function(const struct uni_guest *g, const struct uni_count *c, const char *name,
	uint64_t addr, struct uni_err *err)
{
	for (size_t i = 0; i < c->nr; i++) {
		if (c->f[i].addr == addr)
			return uni_err_set(
				err, UNI_EUSAGE, "%s and %s are one function", c->f[i].name, name);
	}
	if (addr == 0)
		return uni_err_set(err, UNI_EUSAGE, "%s: no function is at address 0", name);
	if (addr % g->t->arch->insn != 0)
		return uni_err_set(err, UNI_EUSAGE, "%s: no instruction begins there", name);
	for (size_t i = 0; g->image != NULL && i <= g->nr_more; i++) {
		const struct uni_located one = image_of(g, i);

		if (begins_with_flags(g, one.image, addr - one.bias))
			return uni_err_set(err, UNI_ENOTSUP,
				"%s begins with pushf, and cannot be counted: a step over that "
				"would leave the trap flag in the memory of the guest",
				name);
	}
	return 0;
}

int uni_count_find(const struct uni_guest *g, const struct uni_count_args *args,
	struct uni_count *ret, struct uni_err *err)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < args->nr; i++) {
		uint64_t addr;
		int rc = choose_function(g, args->function[i], &addr, err);

		if (rc == 0)
			rc = check_function(g, ret, args->function[i], addr, err);
		if (rc != 0)
			return rc;
		ret->f[ret->nr].name = args->function[i];
		ret->f[ret->nr++].addr = addr;
	}
	return 0;
}

/* Another backend that reaches the same process, and has breakpoints. */
static const char *other_way(const struct uni_target_info *info, char *keys, size_t cap)
{
	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		const struct uni_target_ops *ops = uni_target_backends[i];

		if (ops->breaks != NULL && ops->claims != NULL && ops->claims(info, keys, cap))
			return ops->scheme;
	}
	return NULL;
}

int uni_count_target(const char *target, char **ret, struct uni_err *err)
{
	struct uni_spec *spec = calloc(1, sizeof(*spec));
	struct uni_target_info *info = calloc(1, sizeof(*info));
	const struct uni_target_ops *ops;
	const char *scheme = NULL;
	char keys[512];
	int rc = spec == NULL || info == NULL ? uni_err_nomem(err)
					      : uni_guest_resolve(target, spec, err);

	ops = rc == 0 ? uni_target_backend(spec->scheme) : NULL;
	/* An unknown scheme is reported by whoever attaches. */
	if (rc == 0 && (ops == NULL || ops->breaks != NULL)) {
		*ret = strdup(spec->text);
	} else if (rc == 0) {
		rc = uni_target_probe(spec, info, err);
		scheme = rc == 0 ? other_way(info, keys, sizeof(keys)) : NULL;
		if (rc == 0 && scheme == NULL)
			rc = uni_err_set(err, UNI_ENOTSUP,
				"%s: calls are counted through the gdb stub of QEMU. This guest "
				"has "
				"none, and no monitor to switch one on. Start QEMU with -gdb "
				"unix:PATH,server=on,wait=off",
				spec->text);
		if (rc == 0 && asprintf(ret, "%s:%s", scheme, keys) < 0)
			*ret = NULL;
	}
	if (rc == 0 && *ret == NULL)
		rc = uni_err_nomem(err);
	free(info);
	free(spec);
	return rc;
}
