/* SPDX-License-Identifier: BSD-2-Clause */
/* export --before: two files as one profile with two columns. */
#include "app/exporting.h"

#include <string.h>

#include "app/call_profile.h"
#include "profile/copy.h"
#include "profile/pile.h"

/* Recordings differ in length and rate. Exact counts are of whole runs: they are compared as they
 * are. */
static bool is_scaled(const struct uni_exporting *x)
{
	return x->normalize ||
	       (!x->raw && (x->s.profile == NULL ||
				   strcmp(uni_profile_unit(x->s.profile), "instructions") != 0));
}

/* Both are in one tree already. */
static int finish_both(struct uni_exporting *x)
{
	const bool scaled = is_scaled(x);

	x->diff = x->s.profile;
	x->s.profile = NULL;
	if (scaled)
		uni_profile_scale_first(x->diff);
	return x->src.piled ? uni_profile_finish_pile(x->diff) : uni_profile_finish(x->diff);
}

static struct uni_source_args args_of_before(const struct uni_exporting *x)
{
	struct uni_source_args args = x->src;

	args.path = x->before;
	args.in = NULL;
	args.build.filter.threads = NULL;
	if (x->src.guest == NULL)
		args.build.filter.guest = (struct uni_only){ 0 };
	return args;
}

/* The calls of two traces, whatever else they hold. */
int uni_exporting_compare_calls(struct uni_exporting *x, const char *by, struct uni_err *err)
{
	struct uni_source_args before = args_of_before(x);

	if (x->diff != NULL)
		return 0;
	return uni_call_profile_diff(&before, &x->src, by, is_scaled(x), &x->diff, err);
}

/* Two traces can be compared only by their calls. */
static int compare_traces(
	struct uni_exporting *x, const struct uni_source *before, struct uni_err *err)
{
	int rc = uni_call_profile_check(before, x->before, &x->s, x->src.path, err);

	return rc == 0 ? uni_exporting_compare_calls(x, "", err) : rc;
}

int uni_exporting_open_before(struct uni_exporting *x, struct uni_err *err)
{
	struct uni_source_args args = args_of_before(x);
	struct uni_source before;
	int rc;

	if (uni_source_is_open(&x->src, &x->s))
		args.into = x->s.profile;
	rc = uni_source_open(&args, &before, err);
	if (rc != 0)
		return rc;
	if (uni_source_is_trace(&before) || uni_source_is_trace(&x->s)) {
		rc = compare_traces(x, &before, err);
		uni_source_close(&before);
		return rc;
	}
	if (before.profile == x->s.profile) {
		before.profile = NULL;
		rc = finish_both(x);
	} else {
		rc = args.into != NULL ? uni_profile_finish(x->s.profile) : 0;
		if (rc == 0 && uni_source_is_open(&args, &before))
			rc = uni_profile_finish(before.profile);
		if (rc == 0)
			rc = uni_profile_diff(before.profile, x->s.profile, is_scaled(x), &x->diff);
	}
	uni_source_close(&before);
	return rc == 0 ? uni_source_compared(x->diff, x->before, x->src.path, err)
		       : uni_err_set(err, UNI_ENOMEM, "out of memory comparing two profiles");
}
