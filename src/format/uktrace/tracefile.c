/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/tracefile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "format/uktrace/pickle.h"

#define OBJECTS_MAX 8

bool uni_ukt_file_is(const void *data, size_t size)
{
	const uint8_t *p = data;

	/* A protocol, and then a dictionary: at once, or in a frame of nine bytes' head. */
	if (size < 3 || p[0] != 0x80 || p[1] < 2 || p[1] > 5)
		return false;
	return p[2] == '}' || (size > 11 && p[2] == 0x95 && p[11] == '}');
}

static bool is_key(const struct uni_pickle_value *k, const char *name)
{
	return k->kind == UNI_PICKLE_TEXT && k->size == strlen(name) &&
	       memcmp(k->data, name, k->size) == 0;
}

/* Values are text: "1". */
static uint64_t text_number(const struct uni_pickle_value *v)
{
	char s[32] = "";
	uint64_t n = 0;

	if (v->kind == UNI_PICKLE_INT)
		return v->v;
	if (v->kind == UNI_PICKLE_TEXT && v->size < sizeof(s))
		memcpy(s, v->data, v->size);
	return uni_parse_u64(s, &n) ? n : 0;
}

static void take_pairs(const struct uni_pickle *p, struct uni_ukt_file *ret)
{
	for (size_t i = 0; i < p->pairs.nr; i++) {
		const struct uni_pickle_value *k = &p->pairs.v[i].key, *v = &p->pairs.v[i].value;

		if (is_key(k, "format_version"))
			ret->version = text_number(v);
		else if (is_key(k, "uniscope_bias"))
			ret->bias = text_number(v);
		else if (is_key(k, "uniscope_capacity"))
			ret->capacity = text_number(v);
		else if (is_key(k, "uniscope_full"))
			ret->full = text_number(v) != 0;
	}
}

static int take_bytes(const struct uni_pickle_value *v, uint8_t **data_ret, size_t *size_ret)
{
	*data_ret = malloc(v->size + 1);
	if (*data_ret == NULL)
		return -UNI_ENOMEM;
	if (v->size != 0)
		memcpy(*data_ret, v->data, v->size);
	*size_ret = v->size;
	return 0;
}

static int take_elf(const struct uni_pickle_value *v, struct uni_ukt_file *ret)
{
	ret->elf = malloc(UNI_TEXT_MAX);
	if (ret->elf == NULL)
		return -UNI_ENOMEM;
	(void)uni_text_clean(ret->elf, UNI_TEXT_MAX, v->data, v->size);
	return 0;
}

/* Takes objects by their type, because not all files have all of them. */
static int take_object(const struct uni_pickle *p, unsigned nr, struct uni_ukt_file *ret)
{
	const struct uni_pickle_value *v = &p->result;

	switch (v->kind) {
	case UNI_PICKLE_DICT:
		if (nr == 0)
			take_pairs(p, ret);
		return nr == 0 ? 0 : -UNI_EFORMAT;
	case UNI_PICKLE_TEXT:
		return ret->elf == NULL ? take_elf(v, ret) : -UNI_EFORMAT;
	case UNI_PICKLE_INT:
		if (ret->ptr_size != 0 || (v->v != 4 && v->v != 8))
			return -UNI_EFORMAT;
		ret->ptr_size = (unsigned)v->v;
		return 0;
	case UNI_PICKLE_BYTES:
		if (ret->defs == NULL && p->cut)
			return -UNI_EFORMAT;
		ret->cut = p->cut;
		if (ret->defs == NULL)
			return take_bytes(v, &ret->defs, &ret->defs_size);
		if (ret->buffer == NULL)
			return take_bytes(v, &ret->buffer, &ret->buffer_size);
		return -UNI_EFORMAT;
	default:
		return -UNI_EFORMAT;
	}
}

static int read_objects(
	const uint8_t *data, size_t size, struct uni_ukt_file *ret, struct uni_err *err)
{
	size_t at = 0;
	int rc = 0;

	for (unsigned nr = 0; rc == 0 && ret->buffer == NULL && nr < OBJECTS_MAX; nr++) {
		struct uni_pickle p;

		rc = uni_pickle_load(data + at, size - at, &p, err);
		if (rc == 0)
			rc = take_object(&p, nr, ret);
		if (p.cut && rc == -UNI_EFORMAT)
			(void)uni_err_set(err, UNI_EFORMAT,
				"the file is cut short: its definitions are not whole");
		at += p.used;
		uni_pickle_free(&p);
	}
	if (rc == 0 && (ret->buffer == NULL || ret->ptr_size == 0))
		rc = -UNI_EFORMAT;
	if (rc != 0 && (err == NULL || err->code == 0))
		return uni_err_set(err, (enum uni_errcode) - rc, "%s",
			rc == -UNI_EFORMAT ? "this is no trace file of Unikraft's uk-trace"
					   : uni_strerror(rc));
	return rc;
}

int uni_ukt_file_read(const void *data, size_t size, struct uni_ukt_file *ret, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_ukt_file){ 0 };
	rc = read_objects(data, size, ret, err);
	if (rc != 0)
		uni_ukt_file_free(ret);
	return rc;
}

void uni_ukt_file_free(struct uni_ukt_file *f)
{
	free(f->elf);
	free(f->defs);
	free(f->buffer);
	*f = (struct uni_ukt_file){ 0 };
}

static void put_pair(struct uni_sink *out, const char *key, uint64_t v)
{
	char value[24];

	(void)snprintf(value, sizeof(value), "%" PRIu64, v);
	uni_pickle_put_text(out, key);
	uni_pickle_put_text(out, value);
	uni_sink_putc(out, 's');
}

void uni_ukt_file_write(const struct uni_ukt_file *f, bool with_elf, struct uni_sink *out)
{
	uni_pickle_begin(out);
	uni_sink_putc(out, '}');
	put_pair(out, "format_version", f->version);
	put_pair(out, "uniscope_bias", f->bias);
	put_pair(out, "uniscope_capacity", f->capacity);
	put_pair(out, "uniscope_full", f->full);
	uni_pickle_end(out);
	if (with_elf) {
		uni_pickle_begin(out);
		uni_pickle_put_text(out, f->elf != NULL ? f->elf : "");
		uni_pickle_end(out);
	}
	uni_pickle_begin(out);
	uni_sink_putc(out, 'K'); /* an integer of one byte */
	uni_sink_putc(out, (char)f->ptr_size);
	uni_pickle_end(out);
	uni_pickle_begin(out);
	uni_pickle_put_bytes(out, f->defs, f->defs_size);
	uni_pickle_end(out);
	uni_pickle_begin(out);
	uni_pickle_put_bytes(out, f->buffer, f->buffer_size);
	uni_pickle_end(out);
}
