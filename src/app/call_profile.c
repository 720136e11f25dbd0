/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/call_profile.h"

#include <string.h>

#include "app/term.h"
#include "app/timeline.h"
#include "profile/calls.h"
#include "profile/copy.h"

int uni_call_profile_make(const struct uni_timeline *tl, bool count, bool per_thread,
	const struct uni_profile_calls_watch *watch, struct uni_profile **ret,
	struct uni_profile_calls *added_ret, struct uni_err *err)
{
	struct uni_profile *p = uni_profile_create();
	int rc = p == NULL    ? -UNI_ENOMEM
		 : per_thread ? uni_profile_add_calls_by_thread(p, tl, count, added_ret)
			      : uni_profile_add_calls(p, tl, count, watch, added_ret);

	if (rc == 0)
		rc = uni_profile_finish(p);
	if (rc == 0) {
		*ret = p;
		return 0;
	}
	uni_profile_destroy(p);
	return uni_err_nomem(err);
}

static int make_one_profile(const struct uni_source_args *args, bool count,
	struct uni_profile **ret, struct uni_err *err)
{
	struct uni_profile_calls added = { 0 };
	struct uni_call_source *s = NULL;
	struct uni_profile *p = NULL;
	int rc = uni_call_source_open(args, &s, err);

	if (rc == 0)
		rc = uni_calls_args_check(args, err);
	if (rc == 0)
		rc = uni_call_profile_make(uni_call_source_get(s), count, args->build.per_thread,
			NULL, &p, &added, err);
	if (rc == 0)
		uni_call_source_note(s);
	if (rc == 0 && added.calls == 0)
		rc = uni_err_set(err, UNI_ENOENT,
			"%s has a trace without calls of functions: there is nothing to compare",
			args->path);
	uni_call_source_close(s);
	if (rc == 0)
		*ret = p;
	else
		uni_profile_destroy(p);
	return rc;
}

static bool has_times(const struct uni_profile *p)
{
	return uni_profile_node(p, UNI_NODE_ROOT)->total > 0.0;
}

int uni_call_profile_diff(const struct uni_source_args *before, const struct uni_source_args *after,
	const char *by, bool scale, struct uni_profile **ret, struct uni_err *err)
{
	struct uni_profile *old = NULL, *new = NULL;
	bool count = strcmp(by, "count") == 0;
	int rc = make_one_profile(after, count, &new, err);

	if (rc == 0)
		rc = make_one_profile(before, count, &old, err);
	if (rc == 0 && by[0] == '\0' && !(has_times(old) && has_times(new))) {
		uni_note("%s has no times of its calls: the numbers of calls are compared",
			(has_times(old) ? after : before)->path);
		uni_profile_destroy(old);
		uni_profile_destroy(new);
		return uni_call_profile_diff(before, after, "count", scale, ret, err);
	}
	if (rc == 0 && uni_profile_diff(old, new, scale, ret) != 0)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory comparing two profiles");
	uni_profile_destroy(old);
	uni_profile_destroy(new);
	return rc;
}

int uni_call_profile_check(const struct uni_source *before, const char *before_path,
	const struct uni_source *after, const char *after_path, struct uni_err *err)
{
	bool old = uni_source_is_trace(before), new = uni_source_is_trace(after);

	if (old != new)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s holds a function trace and no samples, and %s is none such: only their "
			"calls could be compared (`uniscope export --calls --before`)",
			old ? before_path : after_path, old ? after_path : before_path);
	uni_note("%s and %s hold no samples: the functions of their traces are compared",
		before_path, after_path);
	return 0;
}
