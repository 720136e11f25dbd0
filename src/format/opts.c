/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/opts.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

static int refuse_option(const struct uni_exporter *e, const char *name, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf known;

	uni_strbuf_init(&known);
	for (const struct uni_export_optdef *d = e->options; d != NULL && d->name != NULL; d++)
		uni_strbuf_addf(&known, "%s%s", known.len == 0 ? "" : ", ", d->name);
	return uni_err_set(err, UNI_EUSAGE, "format %s has no option %s (%s%s)", e->name, name,
		known.len == 0 ? "it has none" : "it has: ", known.s);
}

/* Exact, or the only one that starts so. */
static const struct uni_export_optdef *find_option(const struct uni_exporter *e, const char *name)
{
	const struct uni_export_optdef *hit = NULL;
	size_t len = strlen(name), nr = 0;

	for (const struct uni_export_optdef *d = e->options; d != NULL && d->name != NULL; d++) {
		if (strcmp(d->name, name) == 0)
			return d;
		if (len != 0 && strncmp(d->name, name, len) == 0) {
			hit = d;
			nr++;
		}
	}
	return nr == 1 ? hit : NULL;
}

static bool parse_bool(const char *v, bool *ret)
{
	static const char *const words[] = { "0", "no", "false", "off", "", "1", "yes", "true",
		"on" };

	for (size_t i = 0; i < uni_array_len(words); i++) {
		if (v == NULL || strcmp(words[i], v) == 0) {
			*ret = v == NULL || i >= 4;
			return true;
		}
	}
	return false;
}

static bool store_value(const struct uni_export_optdef *d, const char *value, void *base)
{
	void *member = (char *)base + d->offset;
	double number;

	if (d->type == UNI_OPT_BOOL)
		return parse_bool(value, member);
	if (d->type == UNI_OPT_MAYBE)
		*(const char **)member = value != NULL ? value : "";
	if (value == NULL || d->type == UNI_OPT_MAYBE)
		return d->type == UNI_OPT_MAYBE;
	switch (d->type) {
	case UNI_OPT_STR:
		*(const char **)member = value;
		return true;
	case UNI_OPT_U64:
		return uni_parse_u64(value, member);
	default:
		if (!uni_parse_double(value, &number) || !isfinite(number))
			return false;
		if (d->type == UNI_OPT_POSITIVE && number <= 0.0)
			return false;
		*(double *)member = number;
		return true;
	}
}

int uni_export_opts_parse(const struct uni_exporter *e, const struct uni_export_opt *opts,
	size_t nr_opts, void *base, struct uni_err *err)
{
	for (size_t i = 0; i < nr_opts; i++) {
		const struct uni_export_optdef *d = find_option(e, opts[i].name);

		if (d == NULL)
			return refuse_option(e, opts[i].name, err);
		if (!store_value(d, opts[i].value, base))
			return uni_err_set(err, UNI_EUSAGE,
				"format %s: option %s wants %s, not \"%s\" (%s)", e->name, d->name,
				d->value != NULL ? d->value : "yes or no",
				opts[i].value != NULL ? opts[i].value : "", d->help);
	}
	return 0;
}

int uni_export_check_view(
	const struct uni_exporter *e, const struct uni_view *v, struct uni_err *err)
{
	if ((e->needs & UNI_NEEDS_PROFILE) != 0 && v->profile == NULL)
		return uni_err_set(err, UNI_EUSAGE, "format %s needs a profile", e->name);
	if ((e->needs & UNI_NEEDS_SAMPLES) != 0 && v->samples == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"format %s needs single samples: export it from a recorded session, "
			"not from an imported profile",
			e->name);
	if ((e->needs & UNI_NEEDS_TIMELINE) != 0 && v->timeline == NULL &&
		((e->needs & UNI_OR_PROFILE) == 0 || v->profile == NULL))
		return uni_err_set(err, UNI_EUSAGE, "format %s needs a trace", e->name);
	if ((e->needs & UNI_TAKES_ALL) != 0 && v->timeline == NULL && v->profile == NULL)
		return uni_err_set(
			err, UNI_EUSAGE, "format %s needs a trace or a profile", e->name);
	return 0;
}

bool uni_export_opts_ordered(
	const struct uni_exporter *e, const struct uni_export_opt *opts, size_t nr_opts)
{
	for (size_t i = 0; i < nr_opts; i++) {
		const struct uni_export_optdef *d = find_option(e, opts[i].name);

		if (d != NULL && d->ordered)
			return true;
	}
	return false;
}

const char *uni_export_opts_output(
	const struct uni_exporter *e, const struct uni_export_opt *opts, size_t nr_opts)
{
	const char *ret = NULL;

	for (size_t i = 0; i < nr_opts; i++) {
		const struct uni_export_optdef *d = find_option(e, opts[i].name);

		if (d == NULL || d->output == NULL)
			continue;
		ret = opts[i].value != NULL && opts[i].value[0] != '\0' ? opts[i].value : d->output;
	}
	return ret;
}
