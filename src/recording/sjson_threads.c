/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "recording/sjson_priv.h"

/* JSON readers, ours too, take integers up to 2^63 - 1. */
static void put_number(struct uni_json *j, uint64_t v)
{
	uni_json_kv(u64, j, "number", uni_min(v, (uint64_t)INT64_MAX));
}

void uni_session_put_threads(struct uni_json *j, const struct uni_session_guest *g)
{
	uni_json_kv(str, j, "model", g->meta.model);
	uni_json_kv(bool, j, "all_threads", g->meta.threads);
	uni_json_key(j, "threads");
	uni_json_array(j);
	for (size_t i = 0; i < g->nr_thread; i++) {
		const struct uni_record_thread *t = &g->thread[i];

		uni_json_object(j);
		uni_json_kv(u64, j, "id", t->id);
		uni_json_kv(str, j, "name", t->name);
		uni_json_kv(hex, j, "object", t->object);
		if (t->has_number)
			put_number(j, t->number);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

/* Absent is fine, another type is not. */
static bool get_text(const json_t *obj, const char *key, char *ret, size_t cap)
{
	const json_t *v = json_object_get(obj, key);

	if (v != NULL && !json_is_string(v))
		return false;
	if (v != NULL)
		(void)uni_text_clean(ret, cap, json_string_value(v), json_string_length(v));
	return true;
}

static bool parse_thread(const json_t *obj, uint32_t id, struct uni_record_thread *ret)
{
	const json_t *number = json_object_get(obj, "number");
	const json_t *is = json_object_get(obj, "id");
	char object[32] = "";

	ret->id = id;
	if (!json_is_integer(is) || json_integer_value(is) != (json_int_t)id)
		return false;
	if (number != NULL && (!json_is_integer(number) || json_integer_value(number) < 0))
		return false;
	ret->has_number = number != NULL;
	if (ret->has_number)
		ret->number = (uint64_t)json_integer_value(number);
	return get_text(obj, "name", ret->name, sizeof(ret->name)) &&
	       get_text(obj, "object", object, sizeof(object)) &&
	       (object[0] == '\0' || uni_parse_u64(object, &ret->object));
}

static int compare_names(const void *a, const void *b)
{
	const struct uni_record_thread *const *p = a, *const *q = b;

	return strcmp((*p)->name, (*q)->name);
}

static bool mark_twins(struct uni_record_thread *thread, size_t nr)
{
	struct uni_record_thread **by_name = malloc(nr * sizeof(struct uni_record_thread *));

	if (by_name == NULL)
		return false;
	for (size_t i = 0; i < nr; i++)
		by_name[i] = &thread[i];
	qsort(by_name, nr, sizeof(*by_name), compare_names);
	for (size_t i = 1; i < nr; i++) {
		if (strcmp(by_name[i - 1]->name, by_name[i]->name) == 0)
			by_name[i - 1]->has_twin = by_name[i]->has_twin = true;
	}
	free(by_name);
	return true;
}

const char *uni_session_parse_threads(const json_t *guest, struct uni_session_guest *ret)
{
	const json_t *list = json_object_get(guest, "threads");
	size_t nr = json_array_size(list);

	if (!get_text(guest, "model", ret->meta.model, sizeof(ret->meta.model)))
		return "model";
	ret->meta.threads = json_is_true(json_object_get(guest, "all_threads"));
	if (list != NULL && !json_is_array(list))
		return "threads";
	if (nr == 0)
		return NULL;
	ret->thread = nr <= UNI_SESSION_THREADS_MAX ? calloc(nr, sizeof(*ret->thread)) : NULL;
	if (ret->thread == NULL)
		return "threads";
	ret->nr_thread = ret->cap_thread = nr;
	for (size_t i = 0; i < nr; i++) {
		if (!parse_thread(json_array_get(list, i), (uint32_t)i + 1, &ret->thread[i]))
			return "threads";
	}
	return mark_twins(ret->thread, nr) ? NULL : "threads";
}
