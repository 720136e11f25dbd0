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

#define CUT_MIN 200 /* the longest line has this without its colours */

#define LETTERS "abcdefghijklmnopqrstuvwxyz_"
#define DIGITS	"0123456789"

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
static bool is_result(const char *s)
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

char *uni_sysc_unikraft_behind_text(struct uni_sysc_console *c)
{
	char *close, *result = c->bare ? uni_sysc_find_result(c->line, &close) : NULL;

	if (result == NULL || !is_result(result))
		return NULL;
	for (char *at = c->line; (at = strchr(at, '(')) != NULL; at++) {
		char *name = at;

		while (name > c->line && (strchr(LETTERS DIGITS, name[-1]) != NULL))
			name--;
		/* Digits in front of a name are the text's end. */
		name += strspn(name, DIGITS);
		if (name != at ? uni_sysc_by_name(name, (size_t)(at - name)) != NULL
			       : is_nameless(at))
			return name;
	}
	return NULL;
}

static int add_cut(struct uni_sysc_console *c, const char *s, size_t name, bool *was_ret)
{
	struct uni_sysc_entry e = { .end = UNI_SYSC_NO_RESULT, .shown = 'd' };
	const struct uni_sysc_def *def;

	if (!uni_sysc_find_call(c, s, name, &def, &e.name))
		return 0;
	*was_ret = true;
	e.args = uni_sysc_clean_text(c->log, s + name + 1, strlen(s + name + 1));
	return uni_sysc_log_add(c->log, &e);
}

int uni_sysc_unikraft_line(struct uni_sysc_console *c, const char *s, bool *was_ret)
{
	static const char dots[] = "...";
	struct uni_sysc_entry e = { .end = UNI_SYSC_OPEN, .shown = 'd' };
	size_t len = strlen(s), name = strcspn(s, "(");

	if (c->bare && len >= CUT_MIN && strcmp(s + len - (sizeof(dots) - 1), dots) == 0)
		return add_cut(c, s, name, was_ret);
	if (s[0] != '(' || !is_nameless(s) || !is_result(strchr(s, '=') + 2))
		return 0;
	*was_ret = true;
	e.name = uni_sysc_clean_text(c->log, "?", 1);
	e.args = uni_sysc_clean_text(c->log, s + 1, (size_t)(strchr(s, ')') - s) - 1);
	uni_sysc_parse_result(c->log, strchr(s, '=') + 2, &e);
	return uni_sysc_log_add(c->log, &e);
}
