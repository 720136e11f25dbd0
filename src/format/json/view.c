/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node's handle is a hash of the names from the root down to it. So it is the same in another run
 * of the command, in another part of the time, and in another session of the program.
 */
#include "format/json/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/vec.h"
#include "format/json/frame.h"
#include "obj/demangle.h"
#include "profile/focus.h"

struct viewer {
	const struct uni_profile *p; /* the tree, or what --focus makes of it */
	const struct uni_json_view *view;
	uint64_t *hash; /* by node */
	struct uni_json json;
};

static const char *name_of(const struct uni_profile *p, uint32_t node)
{
	const struct uni_frame *f = uni_profile_get_frame(p, uni_profile_node(p, node)->frame);

	return uni_profile_str(p, f->plain != 0 ? f->plain : f->name);
}

/* A parent is always made before its children. */
static void hash_nodes(struct viewer *v)
{
	v->hash[UNI_NODE_ROOT] = 0;
	for (uint32_t i = 1; i < uni_profile_nr_nodes(v->p); i++) {
		const char *name = name_of(v->p, i);

		v->hash[i] = uni_hash_bytes(
			name, strlen(name), v->hash[uni_profile_node(v->p, i)->parent]);
	}
}

static int find_node(const struct viewer *v, uint32_t *ret, struct uni_err *err)
{
	const char *handle = v->view->under;
	uint64_t hash;
	char *end;

	/* The function that --focus names is the only child of the root. */
	*ret = v->view->focus != NULL ? uni_profile_node(v->p, UNI_NODE_ROOT)->child
				      : UNI_NODE_ROOT;
	if (*ret == UNI_NODE_NONE)
		*ret = UNI_NODE_ROOT;
	if (handle == NULL)
		return 0;
	hash = handle[0] == 'n' ? strtoull(handle + 1, &end, 16) : 0;
	for (uint32_t i = 1; handle[0] == 'n' && strlen(handle) == 17 && *end == '\0' &&
			     i < uni_profile_nr_nodes(v->p);
		i++) {
		if (v->hash[i] == hash) {
			*ret = i;
			return 0;
		}
	}
	return uni_err_set(err, UNI_ENOENT,
		"--under %s: no call chain has this handle%s; give one that the same command "
		"printed",
		handle, v->view->focus != NULL ? " below --focus" : "");
}

static void put_handle(struct viewer *v, uint32_t node)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "n%016" PRIx64, v->hash[node]);
	uni_json_kv(str, &v->json, "handle", node != UNI_NODE_ROOT ? text : NULL);
}

static int by_total(const void *a, const void *b)
{
	const struct uni_node *x = *(const struct uni_node *const *)a,
			      *y = *(const struct uni_node *const *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* The heaviest children, and how many there are besides. */
static int put_children(struct viewer *v, const struct uni_profile *p, uint32_t node,
	const char *list, const char *more, bool handles)
{
	UNI_VEC(const struct uni_node *) children = { 0 };
	struct uni_json *j = &v->json;

	for (uint32_t i = uni_profile_node(p, node)->child; i != UNI_NODE_NONE;
		i = uni_profile_node(p, i)->next) {
		if (!uni_vec_push(&children, uni_profile_node(p, i))) {
			uni_vec_free(&children);
			return -UNI_ENOMEM;
		}
	}
	if (children.nr != 0)
		qsort(children.v, children.nr, sizeof(*children.v), by_total);
	uni_json_key(j, list);
	uni_json_array(j);
	for (size_t i = 0; i < uni_min(children.nr, v->view->top); i++) {
		uint32_t at = (uint32_t)(children.v[i] - uni_profile_node(p, 0));

		uni_json_object(j);
		uni_json_kv(str, j, "name", name_of(p, at));
		if (handles)
			put_handle(v, at);
		uni_json_value(j, "self", children.v[i]->self);
		uni_json_value(j, "total", children.v[i]->total);
		if (handles)
			uni_json_kv(bool, j, "leaf", children.v[i]->child == UNI_NODE_NONE);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
	uni_json_kv(u64, j, more, children.nr - uni_min(children.nr, v->view->top));
	uni_vec_free(&children);
	return 0;
}

static int put_functions(struct viewer *v, uint32_t node)
{
	_cleanup_free_ struct uni_func_row *rows = NULL;
	struct uni_json *j = &v->json;
	size_t nr;

	if (uni_profile_functions_below(v->p, node, &rows, &nr) != 0)
		return -UNI_ENOMEM;
	uni_json_key(j, "functions");
	uni_json_array(j);
	for (size_t i = 0; i < uni_min(nr, v->view->top); i++)
		uni_json_function(j, v->p, &rows[i]);
	uni_json_array_end(j);
	uni_json_kv(u64, j, "more_functions", nr - uni_min(nr, v->view->top));
	return 0;
}

static int put_path(struct viewer *v, uint32_t node)
{
	UNI_VEC(uint32_t) path = { 0 };
	bool ok = true;

	for (uint32_t i = node; ok && i != UNI_NODE_ROOT; i = uni_profile_node(v->p, i)->parent)
		ok = uni_vec_push(&path, i);
	uni_json_key(&v->json, "path");
	uni_json_array(&v->json);
	while (path.nr != 0)
		uni_json_str(&v->json, name_of(v->p, path.v[--path.nr]));
	uni_json_array_end(&v->json);
	uni_vec_free(&path);
	return ok ? 0 : -UNI_ENOMEM;
}

static int put_view(struct viewer *v, const struct uni_profile *whole,
	const struct uni_profile *callers, uint32_t node)
{
	struct uni_json *j = &v->json;
	int rc;

	uni_json_object(j);
	uni_json_kv(str, j, "format", "uniscope-view");
	uni_json_kv(u64, j, "version", 1);
	uni_json_kv(str, j, "unit", uni_profile_unit(whole));
	uni_record_part_json(j, v->view->part);
	uni_json_value(j, "total", uni_profile_total(whole));
	if (uni_profile_hidden(whole) != 0.0)
		uni_json_value(j, "hidden", uni_profile_hidden(whole));
	uni_json_kv(str, j, "focus", v->view->focus);
	put_handle(v, node);
	uni_json_value(j, "here", uni_profile_node(v->p, node)->total);
	rc = put_path(v, node);
	if (rc == 0)
		rc = put_functions(v, node);
	if (rc == 0)
		rc = put_children(v, v->p, node, "children", "more_children", true);
	if (rc == 0 && callers != NULL && uni_profile_node(callers, 0)->child != UNI_NODE_NONE)
		rc = put_children(v, callers, uni_profile_node(callers, 0)->child, "callers",
			"more_callers", false);
	uni_json_object_end(j);
	uni_sink_putc(j->out, '\n');
	return rc;
}

/* With `parts`: is it a part or a clone of that function, such as "name.constprop.0"? */
static bool is_named(const struct uni_profile *p, uint32_t string, const char *name, bool parts)
{
	const char *own = uni_profile_str(p, string);
	size_t len = strlen(own), wanted = strlen(name);

	if (parts)
		len = uni_demangle_source_len(own, len);
	return len == wanted && memcmp(own, name, len) == 0;
}

/* The heaviest function of that name. */
static int find_frame(
	const struct uni_profile *p, const char *name, uint32_t *ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_func_row *rows = NULL;
	double most = -1;
	size_t nr;

	if (uni_profile_functions(p, &rows, &nr) != 0)
		return uni_err_nomem(err);
	for (int parts = 0; parts < 2 && most < 0; parts++) {
		for (size_t i = 0; i < nr; i++) {
			const struct uni_frame *f = uni_profile_get_frame(p, rows[i].frame);

			if (rows[i].total <= most ||
				(!is_named(p, f->name, name, parts != 0) &&
					(f->plain == 0 ||
						!is_named(p, f->plain, name, parts != 0))))
				continue;
			most = rows[i].total;
			*ret = rows[i].frame;
		}
	}
	return most >= 0 ? 0
			 : uni_err_set(err, UNI_ENOENT,
				   "--focus %s: no such function has samples here", name);
}

int uni_json_view(const struct uni_profile *p, const struct uni_json_view *view,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_profile *focused = NULL, *callers = NULL;
	struct viewer v = { .p = p, .view = view };
	uint32_t frame = UNI_NODE_NONE, node;
	int rc = 0;

	if (view->focus != NULL) {
		rc = find_frame(p, view->focus, &frame, err);
		if (rc != 0)
			return rc;
		if (uni_profile_focus(p, frame, false, &focused) != 0 ||
			uni_profile_focus(p, frame, true, &callers) != 0)
			rc = uni_err_nomem(err);
		v.p = focused;
	}
	if (rc == 0 && (v.hash = calloc(uni_profile_nr_nodes(v.p) + 1, sizeof(*v.hash))) == NULL)
		rc = uni_err_nomem(err);
	if (rc == 0) {
		hash_nodes(&v);
		rc = find_node(&v, &node, err);
	}
	if (rc == 0) {
		uni_json_init(&v.json, out, true);
		rc = put_view(&v, p, callers, node) == 0 ? 0 : uni_err_nomem(err);
	}
	free(v.hash);
	uni_profile_destroy(focused);
	uni_profile_destroy(callers);
	return rc;
}
