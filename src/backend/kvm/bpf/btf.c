/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/btf.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define BASE_PATH   "/sys/kernel/btf/vmlinux"
#define MODULE_PATH "/sys/kernel/btf/kvm"

struct cut {
	const struct btf *kernel;
	struct btf *to;
	char **name; /* sorted */
	size_t nr_names;
	uint32_t *number; /* of a type of the kernel's in to; 0: it is not there */
	uint32_t *queue;  /* the types that go to to, in this order */
	size_t nr_queued;
	uint32_t first; /* the number of the first of them */
};

static bool has_name(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_FWD:
		return t->name_off != 0;
	default:
		return false;
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int collect_names(struct cut *c, const struct btf *programs)
{
	uint32_t end = btf__type_cnt(programs);

	c->name = calloc(end, sizeof(*c->name));
	if (c->name == NULL)
		return -1;
	for (uint32_t i = 1; i < end; i++) {
		const struct btf_type *t = btf__type_by_id(programs, i);
		const char *name = btf__name_by_offset(programs, t->name_off);
		const char *form = name != NULL ? strstr(name, "___") : NULL;

		if (name == NULL || !has_name(t))
			continue;
		c->name[c->nr_names] =
			form != NULL ? strndup(name, (size_t)(form - name)) : strdup(name);
		if (c->name[c->nr_names] == NULL)
			return -1;
		c->nr_names++;
	}
	qsort(c->name, c->nr_names, sizeof(*c->name), compare_names);
	return 0;
}

/* The number that a type gets; 0, as void: it is a function, or not there. */
static uint32_t take_type(struct cut *c, uint32_t type)
{
	if (type == 0 || type >= btf__type_cnt(c->kernel) ||
		btf_is_func_proto(btf__type_by_id(c->kernel, type)))
		return 0;
	if (c->number[type] == 0) {
		c->number[type] = c->first + (uint32_t)c->nr_queued;
		c->queue[c->nr_queued++] = type;
	}
	return c->number[type];
}

/* The first of that name among all types is the kernel's own. */
static int keep_number(struct cut *c)
{
	int number = btf__find_by_name_kind(c->kernel, UNI_KVM_BTF_NUMBERED, BTF_KIND_STRUCT);

	c->first = 1;
	for (; (int)c->first < number; c->first++) {
		if (btf__add_ptr(c->to, 0) < 0)
			return -1;
	}
	if (number > 0)
		(void)take_type(c, (uint32_t)number);
	return 0;
}

static void take_named(struct cut *c)
{
	uint32_t end = btf__type_cnt(c->kernel);

	for (uint32_t i = 1; i < end; i++) {
		const struct btf_type *t = btf__type_by_id(c->kernel, i);
		const char *name;

		if (!has_name(t))
			continue;
		name = btf__name_by_offset(c->kernel, t->name_off);
		if (name != NULL && bsearch(&name, c->name, c->nr_names, sizeof(*c->name),
					    compare_names) != NULL)
			(void)take_type(c, i);
	}
}

/* Takes what a type contains, and gives it the numbers of that. */
static void take_parts(struct cut *c, struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
		t->type = 0;
		return;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		t->type = take_type(c, t->type);
		return;
	case BTF_KIND_ARRAY:
		btf_array(t)->type = take_type(c, btf_array(t)->type);
		btf_array(t)->index_type = take_type(c, btf_array(t)->index_type);
		return;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; i < btf_vlen(t); i++)
			btf_members(t)[i].type = take_type(c, btf_members(t)[i].type);
		return;
	default:
		return;
	}
}

/* The queue grows meanwhile. */
static int copy_queue(struct cut *c)
{
	for (size_t i = 0; i < c->nr_queued; i++) {
		int number =
			btf__add_type(c->to, c->kernel, btf__type_by_id(c->kernel, c->queue[i]));

		if (number != (int)c->number[c->queue[i]])
			return -1;
		/* The library has no other way to change a type that it has. */
		take_parts(
			c, (struct btf_type *)(uintptr_t)btf__type_by_id(c->to, (uint32_t)number));
	}
	return 0;
}

struct btf *uni_kvm_btf_cut(const struct btf *kernel, const struct btf *programs)
{
	struct cut c = { .kernel = kernel, .to = btf__new_empty() };
	bool done;

	c.number = calloc(btf__type_cnt(kernel), sizeof(*c.number));
	c.queue = calloc(btf__type_cnt(kernel), sizeof(*c.queue));
	done = c.to != NULL && c.number != NULL && c.queue != NULL &&
	       collect_names(&c, programs) == 0 && keep_number(&c) == 0;
	if (done) {
		take_named(&c);
		done = copy_queue(&c) == 0;
	}
	for (size_t i = 0; i < c.nr_names; i++)
		free(c.name[i]);
	free(c.name);
	free(c.number);
	free(c.queue);
	if (done)
		return c.to;
	btf__free(c.to);
	return NULL;
}

int uni_kvm_btf_write(int fd, const struct btf *programs)
{
	struct btf *base = btf__parse_raw(BASE_PATH), *module = NULL, *few = NULL;
	const void *data = NULL;
	uint32_t size = 0;
	int rc = -1;

	if (base != NULL && access(MODULE_PATH, R_OK) == 0) {
		module = btf__parse_raw_split(MODULE_PATH, base);
		if (module != NULL)
			few = uni_kvm_btf_cut(module, programs);
	} else if (base != NULL) {
		few = uni_kvm_btf_cut(base, programs);
	}
	if (few != NULL)
		data = btf__raw_data(few, &size);
	if (data != NULL && uni_write_full(fd, data, size) == 0)
		rc = 0;
	btf__free(few);
	btf__free(module);
	btf__free(base);
	return rc;
}
