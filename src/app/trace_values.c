/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/trace_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/symbols.h"
#include "app/term.h"
#include "trace/values.h"

#define OBJECTS_MAX   1024 /* that are looked up, each among all symbols */
#define VARIABLES_MAX 1024 /* a guest is given 64; a wrong trace may have any number */

void uni_trace_values_init(struct uni_trace_values *v, const struct uni_recording *rec,
	uint32_t guest, const char *symbols, const struct uni_opt_list *debug_dirs)
{
	*v = (struct uni_trace_values){
		.rec = rec, .guest = guest, .symbols = symbols, .search = uni_search_of(debug_dirs)
	};
	uni_strbuf_init(&v->text);
}

void uni_trace_values_deinit(struct uni_trace_values *v)
{
	uni_vec_foreach (p, &v->known)
		free(p->params);
	uni_vec_free(&v->known);
	uni_vec_free(&v->variable);
	uni_strbuf_deinit(&v->text);
	uni_debug_destroy(v->debug);
	uni_image_destroy(v->image);
}

/* Once. Without an image and without an error: there is none to look at. */
static void load_image(struct uni_trace_values *v, struct uni_err *err)
{
	const struct uni_record_meta *meta = uni_recording_guest(v->rec, v->guest).meta;
	const char *path = v->symbols != NULL ? v->symbols : meta->image_path;

	v->loaded = true;
	if (path[0] == '\0' || uni_symbols_kind_of(path) != UNI_SYMBOLS_ELF)
		return;
	if (uni_image_load_from(path, &v->search, &v->image, err) != 0 || v->symbols != NULL ||
		strcmp(uni_image_id(v->image), meta->image_id) == 0)
		return;
	(void)uni_err_set(
		err, UNI_EMISMATCH, "%s is another build now than when it was traced", path);
	uni_image_destroy(v->image);
	v->image = NULL;
}

/* Only when there are values to print. */
static void look_for_debug(struct uni_trace_values *v)
{
	struct uni_err err = { 0 };

	v->looked = true;
	if (!v->loaded)
		load_image(v, &err);
	if (v->image != NULL)
		(void)uni_debug_of_image(v->image, &v->search, &v->debug, &err);
	if (v->debug == NULL && err.code != 0)
		uni_note("%s: arguments and values are shown as registers", err.msg);
}

const struct uni_params *uni_trace_values_params(void *values, uint32_t func, uint64_t address)
{
	struct uni_trace_values *v = values;
	const uint64_t bias = uni_recording_guest(v->rec, v->guest).meta->bias;
	struct uni_known_params *k;

	if (!v->looked)
		look_for_debug(v);
	if (v->debug == NULL)
		return NULL;
	while (v->known.nr <= func) {
		if (!uni_vec_push(&v->known, (struct uni_known_params){ 0 }))
			return NULL;
	}
	k = &v->known.v[func];
	if (k->looked)
		return k->params;
	k->looked = true;
	k->params = malloc(sizeof(*k->params));
	if (k->params != NULL && uni_debug_params(v->debug, address - bias, k->params) != 0) {
		free(k->params);
		k->params = NULL;
	}
	return k->params;
}

/* The address in the image that has this low half in the guest. False: none has. */
static bool find_svma(const struct uni_trace_values *v, uint32_t low, uint64_t *ret)
{
	const uint64_t bias = uni_recording_guest(v->rec, v->guest).meta->bias;

	for (size_t i = 0; v->image != NULL && i < uni_image_nr_segments(v->image); i++) {
		const struct uni_segment *s = uni_image_segment(v->image, i);
		uint32_t offset = low - (uint32_t)(s->vaddr + bias);

		if (offset < s->mem_size) {
			*ret = s->vaddr + offset;
			return true;
		}
	}
	return false;
}

/* Names are asked for once each. */
const char *uni_trace_values_variable(void *values, uint32_t low)
{
	struct uni_trace_values *v = values;
	struct uni_known_variable one = { .low = low };
	uint64_t svma;

	uni_vec_foreach (k, &v->variable) {
		if (k->low == low)
			return k->name;
	}
	if (!v->looked)
		look_for_debug(v);
	if (find_svma(v, low, &svma))
		uni_variable_name(v->image, v->debug, svma, one.name);
	else
		(void)snprintf(one.name, sizeof(one.name), "0x%" PRIx32, low);
	return v->variable.nr < VARIABLES_MAX && uni_vec_push(&v->variable, one)
		       ? v->variable.v[v->variable.nr - 1].name
		       : "?";
}

void uni_trace_values_at(void *values, uint64_t address, char *ret, size_t cap)
{
	struct uni_trace_values *v = values;
	const uint64_t bias = uni_recording_guest(v->rec, v->guest).meta->bias;
	const char *name = NULL;
	struct uni_err none = { 0 };
	uint64_t offset = 0;

	if (!v->loaded)
		load_image(v, &none);
	if (v->image != NULL && v->objects++ < OBJECTS_MAX)
		name = uni_image_name_at(v->image, address - bias, &offset);
	if (name == NULL)
		ret[0] = '\0';
	else if (offset == 0)
		(void)snprintf(ret, cap, "%s", name);
	else
		(void)snprintf(ret, cap, "%s+0x%" PRIx64, name, offset);
}

/* "@heap.used=5" */
static void put_reads(struct uni_trace_values *v, const uint64_t *words, size_t nr, bool is_value)
{
	struct uni_trace_got got[UNI_TRACE_READS_OF];
	size_t n = uni_trace_reads(words, nr, is_value, got);

	for (size_t i = 0; i < n; i++) {
		uni_strbuf_addf(&v->text, "%s@%s=", v->text.len != 0 ? ", " : "",
			uni_trace_values_variable(v, got[i].address));
		if (got[i].is_signed)
			uni_strbuf_addf(&v->text, "%" PRId64, (int64_t)got[i].value);
		else
			uni_strbuf_addf(&v->text, "%" PRIu64, got[i].value);
	}
}

void uni_trace_values_text(struct uni_trace_values *v, uint64_t address,
	const struct uni_call_event *e, char *buf, size_t size)
{
	const uint64_t *words = uni_calls_words(v->calls, e);
	const struct uni_params *p = uni_trace_values_params(v, e->func, address);
	bool is_value = e->cls == UNI_TRACE_CLASS_EXIT_VALUE;

	uni_strbuf_reset(&v->text);
	if (is_value)
		uni_trace_value_text(p, words[0], &v->text);
	else
		uni_trace_args_text(p, words, e->nr, &v->text);
	put_reads(v, words, e->nr, is_value);
	(void)snprintf(buf, size, "%s", v->text.s);
}
