/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unikraft's strace option (CONFIG_LIBSYSCALL_SHIM_STRACE) prints a line when a call returns. The
 * application prints to the same console, and a newline is not always in front of the line. The
 * name is empty for a number that Unikraft does not know. A line has at most 253 bytes: "..." is at
 * the end of a longer one. Source: pr_syscall() of lib/syscall_shim/uk_prsyscall.c, 0.17.
 */
#include <string.h>

#include "base/text.h"
#include "syscalls/console.h"
#include "syscalls/result.h"
#include "syscalls/table.h"

#define BRACKETS 64  /* of a line that are looked at */
#define CUT_MIN	 200 /* the longest line has this without its colours */

#define LETTERS	 "abcdefghijklmnopqrstuvwxyz_"
#define DIGITS	 "0123456789"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* The length of "0x1f" at s; 0: there is none. */
static size_t hex_length(const char *s)
{
	size_t digits = strncmp(s, "0x", 2) == 0 ? strspn(s + 2, DIGITS "abcdef") : 0;

	return digits != 0 ? 2 + digits : 0;
}

/* "(0x1, 0x2, ...) = " */
static bool is_nameless(const char *s)
{
	size_t first = hex_length(s + 1), second;

	if (first == 0 || strncmp(s + 1 + first, ", ", 2) != 0)
		return false;
	s += 1 + first + 2;
	second = hex_length(s);
	return second != 0 && strncmp(s + second, ", ...) = ", sizeof(", ...) = ") - 1) == 0;
}

/* "OK", "0x1f", "-1", "fd:5", or "No such file or directory (-2)". */
bool uni_sysc_unikraft_result(const char *s)
{
	size_t len = strlen(s), type = strspn(s, LETTERS);
	int64_t v;

	if (strcmp(s, "OK") == 0 || strcmp(s, "NULL") == 0)
		return true;
	if (len > 3 && s[len - 1] == ')') {
		const char *open = strrchr(s, '(');

		return open != NULL && open[1] == '-' &&
		       uni_sysc_parse_int(open + 1, (size_t)(s + len - 2 - open), &v);
	}
	if (type != 0 && s[type] == ':')
		s += type + 1;
	len = strlen(s);
	return (len != 0 && hex_length(s) == len) || uni_sysc_parse_int(s, len, &v);
}

/* Does an argument begin so: "text", 0x1, -1, O_RDONLY, <out>"text", fd:3, or timespec:{}? */
static bool begins_argument(const char *s)
{
	size_t type = strspn(s, LETTERS);

	return type != 0 ? s[type] == ':'
			 : *s != '\0' && strchr("\"<-" DIGITS CAPITALS, *s) != NULL;
}

static bool is_cut(const char *s)
{
	static const char dots[] = "...";
	size_t len = strlen(s);

	return len >= CUT_MIN && strcmp(s + len - (sizeof(dots) - 1), dots) == 0;
}

/* Are the first two there? Unikraft shows at least these, but in a line that it cuts. A text may
 * hold any byte, also ", ". */
static bool has_arguments(const char *s, const struct uni_sysc_def *def)
{
	unsigned nr = uni_sysc_nr_args(def);
	const char *comma = strstr(s, ", ");

	if (nr == 0)
		return *s == ')';
	return begins_argument(s) &&
	       (nr == 1 || is_cut(s) || (comma != NULL && begins_argument(comma + 2)));
}

/* The call's name, of at - name bytes, and what is behind it. */
static bool is_call(const char *name, const char *at)
{
	const struct uni_sysc_def *def =
		name != at ? uni_sysc_by_name(name, (size_t)(at - name)) : NULL;

	return def != NULL ? has_arguments(at + 1, def) : name == at && is_nameless(at);
}

char *uni_sysc_unikraft_behind_text(struct uni_sysc_console *c)
{
	char *close, *result = uni_sysc_find_result(c->line, &close);
	unsigned left = BRACKETS;

	if ((result == NULL || !uni_sysc_unikraft_result(result)) && !is_cut(c->line))
		return NULL;
	for (char *at = c->line; left-- != 0 && (at = strchr(at, '(')) != NULL; at++) {
		char *name = at;

		while (name > c->line && (strchr(LETTERS DIGITS, name[-1]) != NULL))
			name--;
		/* Digits in front of a name are the text's end. */
		name += strspn(name, DIGITS);
		if (is_call(name, at))
			return name;
	}
	return NULL;
}

static int add_cut(struct uni_sysc_console *c, const char *s, size_t name, bool *was_ret)
{
	struct uni_sysc_entry e = { .end = UNI_SYSC_NO_RESULT, .shown = 'd' };
	const struct uni_sysc_def *def;

	if (!uni_sysc_find_call(c, s, name, &def, &e.name) || def == NULL ||
		!has_arguments(s + name + 1, def))
		return 0;
	*was_ret = true;
	e.args = uni_sysc_clean_text(c->log, s + name + 1, strlen(s + name + 1));
	return uni_sysc_log_add(c->log, &e);
}

int uni_sysc_unikraft_line(struct uni_sysc_console *c, const char *s, bool *was_ret)
{
	struct uni_sysc_entry e = { .end = UNI_SYSC_OPEN, .shown = 'd' };

	if (is_cut(s))
		return add_cut(c, s, strcspn(s, "("), was_ret);
	if (s[0] != '(' || !is_nameless(s) || !uni_sysc_unikraft_result(strchr(s, '=') + 2))
		return 0;
	*was_ret = true;
	e.name = uni_sysc_clean_text(c->log, "?", 1);
	e.args = uni_sysc_clean_text(c->log, s + 1, (size_t)(strchr(s, ')') - s) - 1);
	uni_sysc_parse_result(c->log, strchr(s, '=') + 2, &e);
	return uni_sysc_log_add(c->log, &e);
}
