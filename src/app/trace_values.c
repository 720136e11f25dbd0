/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/trace_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/symbols.h"
#include "app/term.h"
#include "trace/values.h"

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
	uni_strbuf_deinit(&v->text);
	uni_debug_destroy(v->debug);
	uni_image_destroy(v->image);
}

/* Only when there are values to print. */
static void look_for_debug(struct uni_trace_values *v)
{
	const struct uni_record_meta *meta = uni_recording_guest(v->rec, v->guest).meta;
	const char *path = v->symbols != NULL ? v->symbols : meta->image_path;
	struct uni_err err = { 0 };

	v->looked = true;
	if (path[0] == '\0' || uni_symbols_kind_of(path) != UNI_SYMBOLS_ELF)
		return;
	if (uni_image_load_from(path, &v->search, &v->image, &err) == 0 && v->symbols == NULL &&
		strcmp(uni_image_id(v->image), meta->image_id) != 0)
		(void)uni_err_set(&err, UNI_EMISMATCH,
			"%s is another build now than when it was traced", path);
	else if (v->image != NULL)
		(void)uni_debug_of_image(v->image, &v->search, &v->debug, &err);
	if (v->debug == NULL)
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

void uni_trace_values_text(struct uni_trace_values *v, uint64_t address,
	const struct uni_call_event *e, char *buf, size_t size)
{
	const uint64_t *words = uni_calls_words(v->calls, e);
	const struct uni_params *p = uni_trace_values_params(v, e->func, address);

	uni_strbuf_reset(&v->text);
	if (e->cls == UNI_TRACE_CLASS_EXIT_VALUE)
		uni_trace_value_text(p, words[0], &v->text);
	else
		uni_trace_args_text(p, words, e->nr, &v->text);
	(void)snprintf(buf, size, "%s", v->text.s);
}
