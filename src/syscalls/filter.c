/* SPDX-License-Identifier: BSD-2-Clause */
#include "syscalls/filter.h"

#include <string.h>

#include "base/checked.h"
#include "syscalls/log.h"

static int add_regex(struct uni_sysc_term *t, const char *s, size_t len, struct uni_err *err)
{
	char text[256], why[128];
	int r;

	if (len >= sizeof(text))
		return uni_err_set(err, UNI_EUSAGE, "--expr: a regular expression is too long");
	memcpy(text, s, len);
	text[len] = '\0';
	r = regcomp(&t->regex, text, REG_EXTENDED | REG_NOSUB);
	if (r != 0) {
		(void)regerror(r, &t->regex, why, sizeof(why));
		return uni_err_set(err, UNI_EUSAGE, "--expr: /%s: %s", text, why);
	}
	t->is_regex = true;
	return 0;
}

static int add_term(struct uni_sysc_filter *f, const char *s, size_t len, struct uni_err *err)
{
	struct uni_sysc_term *t = &f->term[f->nr];
	bool may_lack = len != 0 && s[0] == '?', is_class;
	int rc = 0;

	if (f->nr == UNI_SYSC_TERMS_MAX)
		return uni_err_set(
			err, UNI_EUSAGE, "--expr: at most %d system calls", UNI_SYSC_TERMS_MAX);
	s += may_lack;
	len -= may_lack;
	*t = (struct uni_sysc_term){ 0 };
	if (len != 0 && s[0] == '/') {
		rc = add_regex(t, s + 1, len - 1, err);
	} else {
		is_class = len != 0 && s[0] == '%';
		t->classes = uni_sysc_class_of(s + is_class, len - is_class);
		/* "stat" alone is the call */
		if (!is_class && uni_sysc_by_name(s, len) != NULL)
			t->classes = 0;
		if (t->classes == 0 && !may_lack && (is_class || uni_sysc_by_name(s, len) == NULL))
			return uni_err_set(err, UNI_EUSAGE,
				"--expr: there is no system call or class '%.*s' (?%.*s is no "
				"error)",
				(int)len, s, (int)len, s);
		if (t->classes == 0) {
			t->name = s;
			t->len = len;
		}
	}
	f->nr += rc == 0;
	return rc;
}

static void drop_terms(struct uni_sysc_filter *f)
{
	for (size_t i = 0; i < f->nr; i++) {
		if (f->term[i].is_regex)
			regfree(&f->term[i].regex);
	}
	f->nr = 0;
}

static int add_names(struct uni_sysc_filter *f, const char *s, struct uni_err *err)
{
	drop_terms(f);
	f->chosen = true;
	f->inverted = *s == '!';
	s += f->inverted;
	if (strcmp(s, "all") == 0 || strcmp(s, "none") == 0) {
		f->inverted ^= strcmp(s, "all") == 0;
		return 0;
	}
	while (true) {
		size_t len = strcspn(s, ",");
		int rc = add_term(f, s, len, err);

		if (rc != 0 || s[len] == '\0')
			return rc;
		s += len + 1;
	}
}

static int add_ends(struct uni_sysc_filter *f, const char *s, struct uni_err *err)
{
	static const struct {
		const char *name;
		unsigned ends;
	} all[] = {
		{ "successful", 1 << UNI_SYSC_OK },
		{ "failed", 1 << UNI_SYSC_FAILED },
		{ "unfinished", 1 << UNI_SYSC_OPEN | 1 << UNI_SYSC_NO_RESULT },
		{ "all", 0xf },
	};

	f->ends = 0;
	while (true) {
		size_t len = strcspn(s, ","), i = 0;

		while (i < uni_array_len(all) &&
			(strncmp(all[i].name, s, len) != 0 || all[i].name[len] != '\0'))
			i++;
		if (i == uni_array_len(all))
			return uni_err_set(err, UNI_EUSAGE,
				"-e status= is successful, failed, unfinished or all, not %.*s",
				(int)len, s);
		f->ends |= all[i].ends;
		if (s[len] == '\0')
			return 0;
		s += len + 1;
	}
}

int uni_sysc_filter_add(struct uni_sysc_filter *f, const char *expression, struct uni_err *err)
{
	static const char *const traces[] = { "trace=", "t=" };
	const char *eq = strchr(expression, '=');

	if (strncmp(expression, "status=", 7) == 0)
		return add_ends(f, expression + 7, err);
	for (size_t i = 0; i < uni_array_len(traces); i++) {
		size_t len = strlen(traces[i]);

		if (strncmp(expression, traces[i], len) == 0)
			return add_names(f, expression + len, err);
	}
	if (eq != NULL && expression[0] != '/')
		return uni_err_set(err, UNI_EUSAGE, "-e takes trace= and status=, not %.*s",
			(int)(eq - expression + 1), expression);
	return add_names(f, expression, err);
}

void uni_sysc_filter_deinit(struct uni_sysc_filter *f)
{
	drop_terms(f);
	*f = (struct uni_sysc_filter){ 0 };
}

static bool term_matches(const struct uni_sysc_term *t, const char *name)
{
	const struct uni_sysc_def *def;

	if (t->is_regex)
		return regexec(&t->regex, name, 0, NULL, 0) == 0;
	if (t->classes == 0)
		return strncmp(name, t->name, t->len) == 0 && name[t->len] == '\0';
	def = uni_sysc_by_name(name, strlen(name));
	return def != NULL && (def->classes & t->classes) != 0;
}

bool uni_sysc_filter_name(const struct uni_sysc_filter *f, const char *name)
{
	if (f == NULL || !f->chosen)
		return true;
	for (size_t i = 0; i < f->nr; i++) {
		if (term_matches(&f->term[i], name))
			return !f->inverted;
	}
	return f->inverted;
}

bool uni_sysc_filter_end(const struct uni_sysc_filter *f, unsigned end)
{
	return f == NULL || f->ends == 0 || (f->ends >> end & 1) != 0;
}
