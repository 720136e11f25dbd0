/* SPDX-License-Identifier: BSD-2-Clause */
/* Nanos' listing before its strace klib: a call, its arguments and its result in lines of their
 * own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "syscalls/console.h"
#include "syscalls/result.h"
#include "syscalls/table.h"

/* The length of the call's name there; 0: it is not there. symlinkat's line has symlink. */
static size_t own_name(const char *s, const char *own)
{
	size_t len = strcspn(s, " "), own_len = strlen(own);

	if (s[len] != ' ' || strncmp(s, own, len) != 0)
		return 0;
	return len == own_len || strcmp(own + len, "at") == 0 ? len : 0;
}

/*
 * The arguments in a line behind that of the call. It begins with a handler's name and a colon
 * (openat's is "open"), or with the call's own name: rename "/a" "/b". Directly behind the call,
 * newfstatat has: fd 1, stat 0x0. openat has: "/nothere" - not found. NULL: it is a remark.
 */
static const char *old_args(
	struct uni_sysc_console *c, const char *s, const char *own, bool fresh, size_t *len_ret)
{
	size_t len = strcspn(s, ":");
	const struct uni_sysc_def *def;
	uint32_t name;

	if (strncmp(s + len, ": ", 2) == 0 && uni_sysc_find_call(c, s, len, &def, &name))
		s += len + 2;
	else if (own_name(s, own) != 0)
		s += own_name(s, own) + 1;
	else if (!fresh || (*s != '"' && strncmp(s, "fd ", 3) != 0))
		return NULL;
	*len_ret = *s == '"' ? (size_t)(strrchr(s, '"') - s) + 1 : strlen(s);
	/* Not only the first of several: ""/a", flags 0". */
	if (s[*len_ret] != '\0' && strncmp(s + *len_ret, " - ", 3) != 0)
		*len_ret = strlen(s);
	return s;
}

static int take_old_args(
	struct uni_sysc_console *c, struct uni_sysc_pending *p, const char *s, bool *was_ret)
{
	struct uni_sysc_entry *e;
	size_t len;
	bool fresh;

	if (p == NULL || p->entry == UINT32_MAX)
		return 0;
	fresh = p->fresh;
	p->fresh = false;
	/* Behind more blanks: what came of it, as "   read count 100". */
	if (s[-2] == ' ')
		return 0;
	e = &c->log->all.v[p->entry];
	s = old_args(c, s, uni_strtab_get(c->log->text, e->name), fresh, &len);
	if (s == NULL)
		return 0;
	*was_ret = true;
	if (strcmp(uni_strtab_get(c->log->text, e->args), "...") != 0)
		return 0;
	e->args = uni_sysc_clean_text(c->log, s, len);
	return e->args == UNI_STR_NONE ? -UNI_ENOMEM : 0;
}

/* "mmap", or "syscall 334" of one that Nanos has no name for. */
static bool find_old_call(struct uni_sysc_console *c, const char *s, struct uni_sysc_entry *e)
{
	const struct uni_sysc_def *def;
	char number[40];

	if (strncmp(s, "syscall ", 8) == 0) {
		(void)snprintf(number, sizeof(number), "syscall_%.20s", s + 8);
		s = number;
	}
	return uni_sysc_find_call(c, s, strlen(s), &def, &e->name);
}

#define IS(s, text) (strncmp((s), (text), sizeof(text) - 1) == 0)
#define NO_CALL	    "-38" /* ENOSYS */

/* Is it no call, but "unlink " and an empty path, below the call's "unlink"? */
static bool is_empty_path(struct uni_sysc_console *c, uint32_t thread, uint32_t name)
{
	struct uni_sysc_pending *p = c->blank ? uni_sysc_pending(c, thread) : NULL;

	if (p == NULL || !p->fresh || p->entry == UINT32_MAX ||
		c->log->all.v[p->entry].name != name)
		return false;
	p->fresh = false;
	c->log->all.v[p->entry].args = 0;
	return true;
}

/* Nanos before its klib: "1 mmap", and "1 direct return: 0, rsp 0x7f..". */
int uni_sysc_old_style(struct uni_sysc_console *c, uint32_t thread, const char *s, bool *was_ret)
{
	static const char ret[] = "direct return: ", none[] = "invalid ";
	struct uni_sysc_entry e = { .thread = thread, .end = UNI_SYSC_OPEN, .shown = 'd' };
	struct uni_sysc_entry *done;
	char value[32];

	if (thread == 0)
		return 0;
	*was_ret = true;
	if (IS(s, ret)) {
		(void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(s + sizeof(ret) - 1, ","),
			s + sizeof(ret) - 1);
		return uni_sysc_end_pending(c, thread, value, &done);
	}
	if (IS(s, "nosyscall "))
		return uni_sysc_end_pending(c, thread, NO_CALL, &done);
	if (find_old_call(c, IS(s, none) ? s + sizeof(none) - 1 : s, &e)) {
		c->old = true;
		if (is_empty_path(c, thread, e.name))
			return 0;
		e.args = uni_sysc_clean_text(c->log, "...", 3);
		if (!IS(s, none))
			return uni_sysc_add_unfinished(c, &e);
		uni_sysc_parse_result(c->log, NO_CALL, &e);
		return uni_sysc_log_add(c->log, &e);
	}
	*was_ret = false;
	return take_old_args(c, uni_sysc_pending(c, thread), s, was_ret);
}

/* A result behind text: "prompt>     2 direct return: 8", "prompt> 3 [worker] direct". */
static char *return_behind_text(struct uni_sysc_console *c)
{
	char *at = strstr(c->line, " direct return: "), *begin = at;

	if (begin != NULL && begin > c->line && begin[-1] == ']') {
		while (begin > c->line && *begin != '[')
			begin--;
		begin -= begin > c->line && begin[-1] == ' ';
		at = begin;
	}
	while (begin != NULL && begin > c->line && begin[-1] >= '0' && begin[-1] <= '9')
		begin--;
	return begin != at ? begin : NULL;
}

/*
 * A line of an older listing behind another CPU's text: "prompt>     2 write". Its thread has four
 * blanks for each lower one. Only in such a listing: other texts may end so. NULL: there is none.
 */
static char *line_behind_text(struct uni_sysc_console *c)
{
	for (char *at = c->line; c->old && (at = strstr(at + 1, "    ")) != NULL;) {
		size_t blanks = strspn(at, " ");
		unsigned long thread = strtoul(at + blanks, NULL, 10);

		if (thread >= 2 && thread <= 1 + blanks / 4)
			return at;
		at += blanks - 1;
	}
	return NULL;
}

char *uni_sysc_old_behind_text(struct uni_sysc_console *c)
{
	char *at = return_behind_text(c);

	return at != NULL ? at : line_behind_text(c);
}
