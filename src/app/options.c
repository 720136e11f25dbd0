/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/nearest.h"
#include "app/term.h"
#include "base/text.h"

static const struct uni_opt *find_long(const struct uni_opt *opts, const char *name, size_t len)
{
	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		if (strlen(o->long_name) == len && memcmp(o->long_name, name, len) == 0)
			return o;
	}
	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		if (o->old_name == NULL || strlen(o->old_name) != len ||
			memcmp(o->old_name, name, len) != 0)
			continue;
		uni_note("--%s is an old name: use --%s", o->old_name, o->long_name);
		return o;
	}
	return NULL;
}

static const struct uni_opt *find_short(const struct uni_opt *opts, char c)
{
	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		if (o->short_name == c && c != '\0')
			return o;
	}
	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		if (o->old_letter != c || c == '\0')
			continue;
		uni_note("-%c is an old letter of --%s, and means something else in other "
			 "commands: use --%s",
			c, o->long_name, o->long_name);
		return o;
	}
	return NULL;
}

static int bad_value(const struct uni_opt *o, const char *v, const char *what, struct uni_err *err)
{
	return uni_err_set(err, UNI_EUSAGE, "--%s takes %s, not '%s'", o->long_name, what, v);
}

/* Also accepts numbers out of range, so that the caller can report its range: "-1", "1e9". */
static bool parse_number(const char *s, double *ret)
{
	char *end;
	double v;

	if (s[0] == '\0' || strspn(s, "0123456789.eE+-") != strlen(s))
		return false;
	v = strtod(s, &end);
	if (*end != '\0' || end == s || !isfinite(v))
		return false;
	*ret = v;
	return true;
}

static int assign_option(const struct uni_opt *o, const char *v, struct uni_err *err)
{
	if (o->given != NULL)
		*o->given = true;
	switch (o->type) {
	case UNI_OPT_FLAG:
		*(bool *)o->value = true;
		return 0;
	case UNI_OPT_OFF:
		*(bool *)o->value = false;
		return 0;
	case UNI_OPT_COUNT:
		++*(unsigned *)o->value;
		return 0;
	case UNI_OPT_ONCE:
		if (*(const char **)o->value != NULL)
			return uni_err_set(err, UNI_EUSAGE,
				"--%s was given twice, and this command uses one alone: %s or %s?",
				o->long_name, *(const char **)o->value, v);
		*(const char **)o->value = v;
		return 0;
	case UNI_OPT_STR:
	case UNI_OPT_OUTPUT:
	case UNI_OPT_MAYBE:
		*(const char **)o->value = v;
		return 0;
	case UNI_OPT_U64:
		return uni_parse_u64(v, o->value) ? 0 : bad_value(o, v, "a whole number", err);
	case UNI_OPT_DOUBLE:
		return parse_number(v, o->value) ? 0 : bad_value(o, v, "a number", err);
	case UNI_OPT_SIZE:
		return uni_parse_size(v, o->value) ? 0 : bad_value(o, v, "a size such as 64M", err);
	case UNI_OPT_LIST: {
		struct uni_opt_list *l = o->value;

		return uni_vec_push(&l->items, v) ? 0 : uni_err_nomem(err);
	}
	}
	return -UNI_EINVAL;
}

static bool is_flag(const struct uni_opt *o)
{
	return o->type == UNI_OPT_FLAG || o->type == UNI_OPT_OFF || o->type == UNI_OPT_COUNT;
}

static int unknown_long(
	const struct uni_opt *opts, const char *name, size_t len, struct uni_err *err)
{
	struct uni_nearest n = uni_nearest_begin(name, len);

	for (const struct uni_opt *o = opts; o->long_name != NULL; o++)
		uni_nearest_try(&n, o->help != NULL ? o->long_name : "");
	return uni_err_set(err, UNI_EUSAGE, "unknown option --%.*s%s%s%s (see --help)", (int)len,
		name, n.name != NULL ? ": did you mean --" : "", n.name != NULL ? n.name : "",
		n.name != NULL ? "?" : "");
}

/* "--name", "--name=value", "--name value"; *i advances over a separate value. */
static int parse_long(
	const struct uni_opt *opts, int argc, char **argv, int *i, struct uni_err *err)
{
	const char *name = argv[*i] + 2, *eq = strchr(name, '=');
	size_t len = eq != NULL ? (size_t)(eq - name) : strlen(name);
	const struct uni_opt *o = find_long(opts, name, len);

	if (o == NULL)
		return unknown_long(opts, name, len, err);
	if (is_flag(o)) {
		if (eq != NULL)
			return uni_err_set(err, UNI_EUSAGE, "--%s takes no value", o->long_name);
		return assign_option(o, NULL, err);
	}
	if (eq != NULL)
		return assign_option(o, eq + 1, err);
	if (o->type == UNI_OPT_MAYBE)
		return assign_option(o, "", err);
	if (*i + 1 >= argc)
		return uni_err_set(
			err, UNI_EUSAGE, "--%s needs a value (%s)", o->long_name, o->arg);
	return assign_option(o, argv[++*i], err);
}

/* "-F99", "-F 99", "-ab" for flags. */
static int parse_short(
	const struct uni_opt *opts, int argc, char **argv, int *i, struct uni_err *err)
{
	for (const char *p = argv[*i] + 1; *p != '\0'; p++) {
		const struct uni_opt *o = find_short(opts, *p);
		int rc;

		if (o == NULL)
			return uni_err_set(err, UNI_EUSAGE, "unknown option -%c (see --help)", *p);
		if (is_flag(o)) {
			rc = assign_option(o, NULL, err);
			if (rc != 0)
				return rc;
			continue;
		}
		if (p[1] != '\0')
			return assign_option(o, p + 1, err);
		if (*i + 1 >= argc)
			return uni_err_set(err, UNI_EUSAGE, "-%c needs a value (%s)", *p, o->arg);
		return assign_option(o, argv[++*i], err);
	}
	return 0;
}

int uni_options_parse(const struct uni_opt *opts, int argc, char **argv, const char **operands,
	size_t *nr_operands, char ***rest_ret, struct uni_err *err)
{
	size_t nr = 0;

	if (rest_ret != NULL)
		*rest_ret = NULL;
	for (int i = 1; i < argc; i++) {
		int rc = 0;

		if (strcmp(argv[i], "--") == 0) {
			if (rest_ret != NULL) {
				*rest_ret = argv + i + 1;
				break;
			}
			for (i++; i < argc; i++)
				operands[nr++] = argv[i];
			break;
		}
		if (argv[i][0] == '-' && argv[i][1] == '-')
			rc = parse_long(opts, argc, argv, &i, err);
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			rc = parse_short(opts, argc, argv, &i, err);
		else
			operands[nr++] = argv[i];
		if (rc != 0)
			return rc;
	}
	*nr_operands = nr;
	return 0;
}

void uni_text_wrap(FILE *out, const char *text, unsigned column, unsigned indent, unsigned width)
{
	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		if (column != indent && column + 1 + n > width) {
			(void)fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column != indent) {
			(void)fputc(' ', out);
			column++;
		}
		(void)fwrite(text, 1, n, out);
		column += (unsigned)n;
		text += n;
		text += strspn(text, " ");
	}
	(void)fputc('\n', out);
}

void uni_options_help(const struct uni_opt *opts, FILE *out, unsigned width)
{
	const unsigned indent = 30;

	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		int n = 0;

		if (o->help == NULL)
			continue;
		n += o->short_name != '\0' ? fprintf(out, "  -%c, ", o->short_name)
					   : fprintf(out, "      ");
		n += fprintf(out, "--%s%s%s", o->long_name,
			o->arg != NULL && o->type != UNI_OPT_MAYBE ? " " : "",
			o->arg != NULL ? o->arg : "");
		if (n < 0)
			return;
		if ((unsigned)n + 2 > indent)
			(void)fprintf(out, "\n%*s", (int)indent, "");
		else
			(void)fprintf(out, "%*s", (int)indent - n, "");
		uni_text_wrap(out, o->help, indent, indent, width);
	}
}

void uni_options_man(const struct uni_opt *opts, FILE *out)
{
	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		if (o->help == NULL)
			continue;
		(void)fputs(".TP\n", out);
		if (o->short_name != '\0')
			(void)fprintf(out, "\\fB\\-%c\\fR, ", o->short_name);
		(void)fputs("\\fB\\-\\-", out);
		for (const char *p = o->long_name; *p != '\0'; p++)
			(void)fputs(*p == '-' ? "\\-" : (char[]){ *p, '\0' }, out);
		(void)fputs("\\fR", out);
		if (o->arg != NULL)
			(void)fprintf(
				out, "%s\\fI%s\\fR", o->type == UNI_OPT_MAYBE ? "" : " ", o->arg);
		(void)fprintf(out, "\n%s.\n", o->help);
	}
}
