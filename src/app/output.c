/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct output {
	const struct uni_opt *opt;
	const char *name;
	struct stat st;
};

/* -UNI_EUSAGE if `name`, another name of the output or a folder above it, is the input. */
static int compare_with_input(const struct output *o, const char *name, const char *input,
	const struct stat *in, struct uni_err *err)
{
	struct stat st;

	if (stat(name, &st) != 0 || st.st_dev != in->st_dev || st.st_ino != in->st_ino)
		return 0;
	if (st.st_dev == o->st.st_dev && st.st_ino == o->st.st_ino)
		return uni_err_set(err, UNI_EUSAGE,
			"--%s %s is %s itself, which is read: give it another name",
			o->opt->long_name, o->name, input);
	return uni_err_set(err, UNI_EUSAGE,
		"--%s %s is a file of %s, which is read: give it another name", o->opt->long_name,
		o->name, input);
}

static int check_input(const struct output *o, const char *input, struct uni_err *err)
{
	_cleanup_free_ char *path = NULL;
	struct stat in;
	char *slash;
	int rc;

	if (strcmp(input, "-") == 0 || stat(input, &in) != 0 ||
		!(S_ISREG(in.st_mode) || S_ISDIR(in.st_mode)))
		return 0;
	rc = compare_with_input(o, o->name, input, &in, err);
	if (rc != 0 || !S_ISDIR(in.st_mode) || (path = realpath(o->name, NULL)) == NULL)
		return rc;
	while (rc == 0 && (slash = strrchr(path, '/')) != NULL && slash != path) {
		*slash = '\0';
		rc = compare_with_input(o, path, input, &in, err);
	}
	return rc;
}

/* Checks the files that one option names, if these are inputs. */
static int check_option(const struct output *o, const struct uni_opt *in, struct uni_err *err)
{
	const struct uni_opt_list *l = in->value;
	int rc = 0;

	if (in->words == NULL || strcmp(in->words, "FILE") != 0)
		return 0;
	if (in->type == UNI_OPT_STR && *(const char **)in->value != NULL)
		return check_input(o, *(const char **)in->value, err);
	for (size_t i = 0; rc == 0 && in->type == UNI_OPT_LIST && i < l->items.nr; i++)
		rc = check_input(o, l->items.v[i], err);
	return rc;
}

int uni_output_check(const struct uni_opt *opts, const char *const *operands, size_t nr_operands,
	struct uni_err *err)
{
	int rc = 0;

	for (const struct uni_opt *p = opts; rc == 0 && p->long_name != NULL; p++) {
		struct output o = { .opt = p };

		if (p->type != UNI_OPT_OUTPUT || *(const char **)p->value == NULL)
			continue;
		o.name = *(const char **)p->value;
		if (strcmp(o.name, "-") == 0 || stat(o.name, &o.st) != 0)
			continue;
		for (size_t i = 0; rc == 0 && i < nr_operands; i++)
			rc = check_input(&o, operands[i], err);
		for (const struct uni_opt *in = opts; rc == 0 && in->long_name != NULL; in++)
			rc = check_option(&o, in, err);
	}
	return rc;
}
