/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof's profile.proto, gzipped or not. If a sample has several values, the profile's default one
 * counts, else the last, as pprof shows it. Labels, addresses and lines are not kept: name and
 * image identify a function.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZLIB_CONST /* zlib declares its input const */
#include <zlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "format/stack.h"

/* Limit of output bytes for each input byte (real profiles have 3 to 20), and for small inputs in
 * all. */
#define INFLATED_EACH  32
#define INFLATED_SMALL ((size_t)16 << 20)
#define INFLATED_MAX   ((size_t)1 << 30)
#define NOT_THERE      SIZE_MAX

struct function {
	uint64_t name;
};

struct location {
	struct uni_cursor lines; /* the whole message */
	uint64_t mapping, address;
};

struct reader {
	struct uni_stack stack;
	struct uni_import_stats stats;
	UNI_VEC(struct uni_cursor) strings;
	UNI_VEC(struct uni_cursor) samples;
	UNI_VEC(struct function) functions;
	UNI_VEC(struct location) locations;
	UNI_VEC(uint64_t) mappings; /* names */
	struct uni_strtab *ids;	    /* 'f', 'l' or 'm' and the id; places below */
	UNI_VEC(size_t) places;
	UNI_VEC(struct uni_cursor) types;
	uint64_t default_type;
	uint64_t type, unit; /* of the value: strings */
	uint64_t period;     /* 0: none */
	double sum;	     /* of values */
	struct uni_cursor period_type;
	size_t value;	   /* which of a sample's */
	size_t nr_samples; /* another one: how many they were; SIZE_MAX: none says that */
	bool damaged;
};

static bool inflate_bytes(z_stream *z, size_t most, struct uni_strbuf *out)
{
	int r = Z_OK;

	while (r == Z_OK && out->len < most) {
		if (!uni_strbuf_reserve(out, 65536))
			return false;
		z->next_out = (uint8_t *)out->s + out->len;
		z->avail_out = 65536;
		r = inflate(z, Z_NO_FLUSH);
		out->len += 65536 - z->avail_out;
		if (r == Z_BUF_ERROR || (r == Z_OK && z->avail_in == 0 && z->avail_out != 0))
			break;
	}
	return r == Z_STREAM_END;
}

static int inflate_all(const char *data, size_t size, struct uni_strbuf *out, struct uni_err *err)
{
	size_t most = uni_min(INFLATED_MAX, INFLATED_SMALL + size * INFLATED_EACH);
	z_stream z = { 0 };
	bool ok;

	if (size > UINT32_MAX || inflateInit2(&z, 15 + 16) != Z_OK)
		return uni_err_nomem(err);
	z.next_in = (const uint8_t *)data;
	z.avail_in = (uInt)size;
	ok = inflate_bytes(&z, most, out);
	(void)inflateEnd(&z);
	if (uni_strbuf_failed(out))
		return uni_err_nomem(err);
	if (!ok && out->len >= most)
		return uni_err_set(err, UNI_ERANGE,
			"its gzip unpacks to more than %zu MB, which no profile of its size does; "
			"if "
			"that is right, gunzip it first",
			most >> 20);
	if (!ok)
		return uni_err_set(err, UNI_EFORMAT, "its gzip is damaged or cut short");
	return 0;
}

static bool is_gzip(const char *data, size_t size)
{
	return size > 2 && (uint8_t)data[0] == 0x1f && (uint8_t)data[1] == 0x8b;
}

/* Index of the object with that id among those of its kind, or NOT_THERE. */
static size_t find_id(const struct reader *r, char kind, uint64_t id)
{
	char key[9] = { kind };
	uint32_t at;

	memcpy(key + 1, &id, sizeof(id));
	at = uni_strtab_find(r->ids, key, sizeof(key));
	return at == UNI_STR_NONE || at - 1 >= r->places.nr ? NOT_THERE : r->places.v[at - 1];
}

/* The first of that id counts. */
static int keep_id(struct reader *r, char kind, uint64_t id, size_t place)
{
	char key[9] = { kind };
	uint32_t at, before = uni_strtab_nr(r->ids);

	memcpy(key + 1, &id, sizeof(id));
	at = uni_strtab_add(r->ids, key, sizeof(key));
	if (at == UNI_STR_NONE || (at == before && !uni_vec_push(&r->places, place)))
		return -UNI_ENOMEM;
	return 0;
}

static int add_location(struct reader *r, struct uni_cursor m)
{
	struct location l = { .lines = m };
	struct uni_pb_field f;
	uint64_t id = 0;

	while (uni_pb_next(&m, &f)) {
		if (f.number == 1)
			id = f.v;
		else if (f.number == 2)
			l.mapping = f.v;
		else if (f.number == 3)
			l.address = f.v;
	}
	r->damaged = r->damaged || m.failed;
	return uni_vec_push(&r->locations, l) ? keep_id(r, 'l', id, r->locations.nr - 1)
					      : -UNI_ENOMEM;
}

static int add_function(struct reader *r, struct uni_cursor m)
{
	struct function fn = { 0 };
	struct uni_pb_field f;
	uint64_t id = 0;

	while (uni_pb_next(&m, &f)) {
		if (f.number == 1)
			id = f.v;
		else if (f.number == 2 || (f.number == 3 && fn.name == 0))
			fn.name = f.v;
	}
	r->damaged = r->damaged || m.failed;
	return uni_vec_push(&r->functions, fn) ? keep_id(r, 'f', id, r->functions.nr - 1)
					       : -UNI_ENOMEM;
}

static int add_mapping(struct reader *r, struct uni_cursor m)
{
	struct uni_pb_field f;
	uint64_t id = 0, name = 0;

	while (uni_pb_next(&m, &f)) {
		if (f.number == 1)
			id = f.v;
		else if (f.number == 5)
			name = f.v;
	}
	r->damaged = r->damaged || m.failed;
	return uni_vec_push(&r->mappings, name) ? keep_id(r, 'm', id, r->mappings.nr - 1)
						: -UNI_ENOMEM;
}

static int collect_fields(struct reader *r, struct uni_cursor c)
{
	struct uni_pb_field f;
	int rc = 0;

	while (rc == 0 && uni_pb_next(&c, &f)) {
		if (f.number == 14 && f.wire == UNI_PB_VARINT)
			r->default_type = f.v;
		if (f.number == 12 && f.wire == UNI_PB_VARINT)
			r->period = f.v;
		if (f.wire != UNI_PB_BYTES)
			continue;
		if (f.number == 1)
			rc = uni_vec_push(&r->types, f.sub) ? 0 : -UNI_ENOMEM;
		else if (f.number == 2)
			rc = uni_vec_push(&r->samples, f.sub) ? 0 : -UNI_ENOMEM;
		else if (f.number == 3)
			rc = add_mapping(r, f.sub);
		else if (f.number == 4)
			rc = add_location(r, f.sub);
		else if (f.number == 5)
			rc = add_function(r, f.sub);
		else if (f.number == 11)
			r->period_type = f.sub;
		else if (f.number == 6)
			rc = uni_vec_push(&r->strings, f.sub) ? 0 : -UNI_ENOMEM;
	}
	r->damaged = r->damaged || c.failed;
	return rc;
}

static struct uni_line string_at(const struct reader *r, uint64_t i)
{
	if (i >= r->strings.nr)
		return (struct uni_line){ "", 0 };
	return (struct uni_line){ (const char *)r->strings.v[i].data, r->strings.v[i].size };
}

static bool line_is(struct uni_line l, const char *s)
{
	return l.len == strlen(s) && memcmp(l.s, s, l.len) == 0;
}

static void read_type(struct uni_cursor c, uint64_t *type_ret, uint64_t *unit_ret)
{
	struct uni_pb_field f;

	*type_ret = *unit_ret = 0;
	while (uni_pb_next(&c, &f)) {
		*type_ret = f.number == 1 ? f.v : *type_ret;
		*unit_ret = f.number == 2 ? f.v : *unit_ret;
	}
}

static void choose_value(struct reader *r)
{
	static const char *const units[][2] = { { "nanoseconds", "ns" }, { "microseconds", "us" },
		{ "milliseconds", "ms" }, { "seconds", "s" } };
	char text[64];
	struct uni_line name;
	bool found = false, is_default;

	r->value = r->types.nr != 0 ? r->types.nr - 1 : 0;
	r->nr_samples = SIZE_MAX;
	for (size_t i = 0; i < r->types.nr; i++) {
		uint64_t t, u;

		read_type(r->types.v[i], &t, &u);
		if (line_is(string_at(r, t), "samples") && line_is(string_at(r, u), "count"))
			r->nr_samples = i;
		is_default = r->default_type != 0 && t == r->default_type && !found;
		if (is_default)
			r->value = i;
		found = found || is_default;
		if (i == r->value) {
			r->type = t;
			r->unit = u;
		}
	}
	name = line_is(string_at(r, r->unit), "count") ? string_at(r, r->type)
						       : string_at(r, r->unit);
	for (size_t i = 0; i < uni_array_len(units); i++) {
		if (line_is(name, units[i][0]))
			name = (struct uni_line){ units[i][1], strlen(units[i][1]) };
	}
	(void)uni_text_clean(text, sizeof(text), name.s, name.len);
	if (text[0] != '\0')
		uni_profile_set_unit(r->stack.p, text);
}

static void push_address(struct reader *r, const struct location *l)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "0x%" PRIx64, l->address);
	struct uni_frame f = { .addr = l->address, .kind = UNI_FK_UNKNOWN };

	f.name = uni_strtab_add(uni_profile_strings(r->stack.p), text, (size_t)n);
	uni_stack_push(&r->stack,
		f.name != UNI_STR_NONE ? uni_profile_frame(r->stack.p, &f) : UNI_NODE_NONE);
}

/* Innermost first: all but the last line are inlined in it. */
static void push_line(struct reader *r, struct uni_cursor line, struct uni_line image, bool inlined)
{
	struct uni_line name = { "?", 1 };
	struct uni_pb_field f;
	size_t at;

	while (uni_pb_next(&line, &f)) {
		if (f.number != 1)
			continue;
		at = find_id(r, 'f', f.v);
		if (at != NOT_THERE)
			name = string_at(r, r->functions.v[at].name);
	}
	uni_stack_push(&r->stack, uni_stack_frame(&r->stack, name.s, name.len, image.s, image.len,
					  inlined ? UNI_FK_INLINED : UNI_FK_GUEST));
}

static void push_location(struct reader *r, uint64_t id)
{
	size_t at = find_id(r, 'l', id), mapping, left = 0;
	struct uni_line image = { "", 0 };
	struct uni_cursor c;
	struct uni_pb_field f;
	const char *slash;

	if (at == NOT_THERE) {
		r->damaged = true;
		return;
	}
	mapping = find_id(r, 'm', r->locations.v[at].mapping);
	if (mapping != NOT_THERE)
		image = string_at(r, r->mappings.v[mapping]);
	slash = memrchr(image.s, '/', image.len);
	if (slash != NULL) {
		image.len -= (size_t)(slash + 1 - image.s);
		image.s = slash + 1;
	}
	for (c = r->locations.v[at].lines; uni_pb_next(&c, &f);)
		left += f.number == 4 && f.wire == UNI_PB_BYTES;
	if (left == 0)
		push_address(r, &r->locations.v[at]);
	for (c = r->locations.v[at].lines; uni_pb_next(&c, &f);) {
		if (f.number == 4 && f.wire == UNI_PB_BYTES)
			push_line(r, f.sub, image, --left != 0);
	}
}

static void push_locations(struct reader *r, struct uni_pb_field *f)
{
	uint64_t v;

	if (f->wire == UNI_PB_VARINT && r->stack.frames.nr <= UNI_IMPORT_DEPTH)
		push_location(r, f->v);
	while (f->wire == UNI_PB_BYTES && r->stack.frames.nr <= UNI_IMPORT_DEPTH && !r->stack.oom &&
		uni_pb_next_varint(&f->sub, &v))
		push_location(r, v);
}

static void take_value(
	const struct reader *r, size_t nr, uint64_t v, int64_t *value, int64_t *samples)
{
	if (nr == r->value)
		*value = (int64_t)v;
	if (nr == r->nr_samples)
		*samples = (int64_t)v;
}

static int add_sample(struct reader *r, struct uni_cursor m)
{
	struct uni_pb_field f;
	int64_t value = 0, samples = 0;
	uint64_t v;
	size_t nr = 0;

	while (uni_pb_next(&m, &f)) {
		if (f.number == 1)
			push_locations(r, &f);
		if (f.number != 2)
			continue;
		if (f.wire == UNI_PB_VARINT)
			take_value(r, nr++, f.v, &value, &samples);
		while (f.wire == UNI_PB_BYTES && uni_pb_next_varint(&f.sub, &v))
			take_value(r, nr++, v, &value, &samples);
	}
	r->damaged = r->damaged || m.failed;
	if (value <= 0) {
		r->stack.frames.nr = 0;
		r->stats.left_out += value < 0;
		return r->stack.oom ? -UNI_ENOMEM : 0;
	}
	r->sum += (double)value;
	r->stats.samples += samples > 0 ? (double)samples : 0;
	uni_stack_reverse(&r->stack);
	return uni_stack_flush(&r->stack, false, (double)value, 0.0, &r->stats);
}

/* Without a number of samples, the period of the value tells it. */
static void count_by_period(struct reader *r)
{
	uint64_t type, unit;

	read_type(r->period_type, &type, &unit);
	if (r->stats.samples == 0 && r->period != 0 && type == r->type && unit == r->unit)
		r->stats.samples = round(r->sum / (double)r->period);
}

static int read_all(struct reader *r, struct uni_cursor c, struct uni_err *err)
{
	int rc = r->ids != NULL ? collect_fields(r, c) : -UNI_ENOMEM;

	if (rc == 0)
		choose_value(r);
	for (size_t i = 0; rc == 0 && i < r->samples.nr; i++)
		rc = add_sample(r, r->samples.v[i]);
	if (rc != 0)
		return uni_stack_error(rc, err);
	if (r->damaged)
		return uni_err_set(err, UNI_EFORMAT,
			"its protobuf is damaged or cut short, after %" PRIu64 " samples",
			r->stats.stacks);
	if (r->stats.stacks == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"it holds no sample of a pprof profile (a Perfetto trace begins like one, "
			"and "
			"cannot be read)");
	count_by_period(r);
	if (r->stats.left_out != 0)
		r->stats.left_why = "with negative values (a difference of two profiles?)";
	return 0;
}

static int read_pprof(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf plain;
	struct reader r = { .ids = uni_strtab_create() };
	int rc = 0;

	uni_strbuf_init(&plain);
	if (!uni_stack_init(&r.stack, p))
		rc = uni_err_nomem(err);
	if (rc == 0 && is_gzip(data, size))
		rc = inflate_all(data, size, &plain, err);
	uni_stack_allow(&r.stack, is_gzip(data, size) ? plain.len : size);
	if (rc == 0)
		rc = read_all(&r,
			is_gzip(data, size) ? uni_cursor_make(plain.s, plain.len)
					    : uni_cursor_make(data, size),
			err);
	uni_stack_deinit(&r.stack);
	uni_strtab_destroy(r.ids);
	uni_vec_free(&r.strings);
	uni_vec_free(&r.samples);
	uni_vec_free(&r.functions);
	uni_vec_free(&r.locations);
	uni_vec_free(&r.mappings);
	uni_vec_free(&r.places);
	uni_vec_free(&r.types);
	if (rc == 0)
		*stats_ret = r.stats;
	return rc;
}

/* Begins with a value type and is fields to the end, as far as one looks. */
static int sniff_pprof(const char *data, size_t size)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	struct uni_pb_field f;
	size_t nr = 0;

	if (is_gzip(data, size))
		return 60;
	while (nr < 64 && uni_pb_next(&c, &f)) {
		if (f.number > 15 || (nr == 0 && (f.number > 6 || f.wire != UNI_PB_BYTES)))
			return 0;
		nr++;
	}
	return nr > 2 && !c.failed ? 50 : 0;
}

const struct uni_importer uni_importer_pprof = {
	.name = "pprof",
	.summary = "pprof's profile.proto, gzipped or not",
	.sniff = sniff_pprof,
	.read = read_pprof,
};
