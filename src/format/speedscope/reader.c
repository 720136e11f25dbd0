/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * speedscope's file format: "sampled" profiles as they are, "evented" ones by the time that passed
 * with a stack open. All profiles of a file that count in the same unit are added up.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/json_load.h"
#include "format/stack.h"

static const char schema[] = "speedscope.app/file-format-schema.json";

static int sniff_speedscope(const char *data, size_t size)
{
	size_t at = 0;

	while (at < size &&
		(data[at] == ' ' || data[at] == '\n' || data[at] == '\r' || data[at] == '\t'))
		at++;
	if (at == size || data[at] != '{')
		return 0;
	return memmem(data, size, schema, strlen(schema)) != NULL ? 95 : 0;
}

struct reader {
	struct uni_stack stack;
	struct uni_import_stats stats;
	const json_t *frames;
	UNI_VEC(uint32_t) open; /* of an evented profile: places in frames, outermost first */
	const char *unit;
};

static bool push_frame(struct reader *r, json_int_t number)
{
	const json_t *f = number >= 0 ? json_array_get(r->frames, (size_t)number) : NULL;
	const json_t *name = json_object_get(f, "name");

	if (!json_is_string(name))
		return false;
	if (r->stack.frames.nr <= UNI_IMPORT_DEPTH)
		uni_stack_push(&r->stack, uni_stack_name(&r->stack, json_string_value(name),
						  json_string_length(name)));
	return true;
}

static int skip_bad_stack(struct reader *r)
{
	r->stack.frames.nr = 0;
	uni_stats_bad_line(&r->stats, r->stats.stacks + r->stats.bad_lines + 1);
	return 0;
}

static int read_sampled(struct reader *r, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples");
	const json_t *weights = json_object_get(profile, "weights");
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < json_array_size(samples); i++) {
		const json_t *sample = json_array_get(samples, i);
		double w = json_number_value(json_array_get(weights, i));
		bool ok = json_is_array(sample) && isfinite(w) && w >= 0.0;

		for (size_t k = 0; ok && k < json_array_size(sample); k++) {
			const json_t *frame = json_array_get(sample, k);

			ok = json_is_integer(frame) && push_frame(r, json_integer_value(frame));
		}
		if (!ok)
			rc = skip_bad_stack(r);
		else if (w > 0.0)
			rc = uni_stack_flush(&r->stack, false, w, 0.0, &r->stats);
		r->stack.frames.nr = 0;
	}
	return rc;
}

static int flush_open(struct reader *r, double value)
{
	if (r->open.nr == 0 || !(value > 0.0))
		return 0;
	for (size_t i = 0; i < r->open.nr; i++) {
		if (!push_frame(r, r->open.v[i]))
			return skip_bad_stack(r);
	}
	return uni_stack_flush(&r->stack, false, value, 0.0, &r->stats);
}

static int read_event(struct reader *r, const json_t *event, double *last)
{
	const char *type = json_string_value(json_object_get(event, "type"));
	const json_t *frame = json_object_get(event, "frame");
	double at = json_number_value(json_object_get(event, "at"));
	json_int_t number = json_integer_value(frame);
	int rc;

	if (type == NULL || !json_is_integer(frame) || number < 0 || number >= UINT32_MAX ||
		!isfinite(at) || at < *last)
		return skip_bad_stack(r);
	rc = flush_open(r, at - *last);
	*last = at;
	if (rc != 0)
		return rc;
	if (strcmp(type, "O") == 0)
		return r->open.nr > UNI_IMPORT_DEPTH || uni_vec_push(&r->open, (uint32_t)number)
			       ? 0
			       : -UNI_ENOMEM;
	if (r->open.nr == 0 || r->open.v[r->open.nr - 1] != number)
		return skip_bad_stack(r);
	r->open.nr--;
	return 0;
}

static int read_evented(struct reader *r, const json_t *profile)
{
	const json_t *events = json_object_get(profile, "events");
	double last = json_number_value(json_object_get(profile, "startValue"));
	int rc = 0;

	r->open.nr = 0;
	for (size_t i = 0; rc == 0 && i < json_array_size(events); i++)
		rc = read_event(r, json_array_get(events, i), &last);
	return rc;
}

static void set_unit(struct reader *r)
{
	static const char *const units[][2] = { { "nanoseconds", "ns" }, { "microseconds", "us" },
		{ "milliseconds", "ms" }, { "seconds", "s" }, { "bytes", "bytes" } };

	for (size_t i = 0; i < uni_array_len(units); i++) {
		if (strcmp(units[i][0], r->unit) == 0)
			uni_profile_set_unit(r->stack.p, units[i][1]);
	}
}

static int read_profiles(struct reader *r, const json_t *profiles)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < json_array_size(profiles); i++) {
		const json_t *p = json_array_get(profiles, i);
		const char *type = json_string_value(json_object_get(p, "type"));
		const char *unit = json_string_value(json_object_get(p, "unit"));

		if (unit == NULL)
			unit = "none";
		if (r->unit == NULL) {
			r->unit = unit;
			set_unit(r);
		}
		if (type == NULL || strcmp(unit, r->unit) != 0) {
			r->stats.left_out += json_array_size(json_object_get(p, "samples"));
			r->stats.left_out += json_array_size(json_object_get(p, "events"));
			r->stats.left_why = "of profiles in another unit than the first";
		} else {
			rc = strcmp(type, "evented") == 0 ? read_evented(r, p) : read_sampled(r, p);
		}
	}
	return rc;
}

static int read_speedscope(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct reader r = { 0 };
	json_t *root = uni_json_load(data, size, 0, UNI_JSON_TIMES_NUMBERS, err);
	int rc;

	if (root == NULL)
		return uni_err_prefix(err, "no JSON");
	r.frames = json_object_get(json_object_get(root, "shared"), "frames");
	rc = uni_stack_init(&r.stack, p) ? 0 : -UNI_ENOMEM;
	uni_stack_allow(&r.stack, size);
	if (rc == 0)
		rc = read_profiles(&r, json_object_get(root, "profiles"));
	uni_stack_deinit(&r.stack);
	uni_vec_free(&r.open);
	json_decref(root);
	if (rc != 0)
		return uni_stack_error(rc, err);
	if (r.stats.stacks == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"not one sample with frames and a weight in its \"profiles\"");
	*stats_ret = r.stats;
	return 0;
}

const struct uni_importer uni_importer_speedscope = {
	.name = "speedscope",
	.summary = "speedscope's file format, sampled and evented",
	.sniff = sniff_speedscope,
	.read = read_speedscope,
};
