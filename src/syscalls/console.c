/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "syscalls/console.h"
#include "syscalls/result.h"
#include "syscalls/source.h"

#define PENDING_MAX 1024

static bool is_in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The index behind a colour ("ESC[34m") at i. Unikraft cuts one off if a name is empty. */
static size_t skip_colour(const char *s, size_t len, size_t i)
{
	for (i += 2; i < len && s[i] != '\x1b'; i++) {
		if (s[i] >= '@' && s[i] <= '~')
			return i + 1;
	}
	return i;
}

/* Removes carriage returns and colours; cuts a line that is longer than any valid one. A name that
 * begins with its colour is kept apart from text in front of it. */
static void take_line(struct uni_sysc_console *c, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < sizeof(c->line); i++) {
		if (s[i] == '\x1b' && i + 1 < len && s[i + 1] == '[') {
			i = skip_colour(s, len, i);
			if (n != 0 && is_in_name(c->line[n - 1]) && i < len && is_in_name(s[i]))
				c->line[n++] = ' ';
			i--;
		} else if (s[i] != '\r' && s[i] != '\0') {
			c->line[n++] = s[i];
		}
	}
	c->blank = n != 0 && c->line[n - 1] == ' ';
	while (n != 0 && c->line[n - 1] == ' ')
		n--;
	c->line[n] = '\0';
}

/* The rest of the line behind "[name] ". */
static const char *skip_name(const char *s)
{
	const char *end = *s == '[' ? strchr(s, ']') : NULL;

	return end != NULL && end[1] == ' ' ? end + 2 : s;
}

/*
 * "[label] " in front, or strace's "123 ". Nanos before its klib indents the number by four blanks
 * for each lower one, and a thread with a name has "[name] " behind it.
 */
static const char *skip_thread(struct uni_sysc_console *c, const char *s, uint32_t *ret)
{
	const char *end = *s == '[' ? strchr(s, ']') : NULL, *number = s + strspn(s, " ");
	size_t digits = strspn(number, "0123456789");
	char pid[40];

	*ret = 0;
	if (end != NULL && end[1] == ' ' && end > s + 1) {
		digits = strspn(s + 1, "0123456789");
		if (s + 1 + digits == end && digits < 20) {
			(void)snprintf(pid, sizeof(pid), "pid %.*s", (int)digits, s + 1);
			*ret = uni_sysc_clean_text(c->log, pid, strlen(pid));
		} else {
			*ret = uni_sysc_clean_text(c->log, s + 1, (size_t)(end - s - 1));
		}
		return end + 2;
	}
	if (digits != 0 && digits < 20 && number[digits] == ' ') {
		(void)snprintf(pid, sizeof(pid), "pid %.*s", (int)digits, number);
		*ret = uni_sysc_clean_text(c->log, pid, strlen(pid));
		number += digits;
		return skip_name(number + strspn(number, " "));
	}
	return s;
}

/* strace's stamps: "12:34:56 ", "12:34:56.123456 ", "1700000000.123456 ", " 0.000012 ", of which
 * only the third is an absolute time; and " (+     0.000012) " behind one. */
static const char *skip_stamp(const char *s, uint64_t *ns_ret)
{
	const char *begin = s + strspn(s, " "), *relative;
	size_t len = strspn(begin, "0123456789:.");
	char number[32] = "";
	double v;

	*ns_ret = 0;
	if (len < 7 || len >= sizeof(number) || begin[len] != ' ' || strcspn(begin, ":.") == len)
		return s;
	memcpy(number, begin, len);
	if (memchr(number, ':', len) == NULL) {
		if (!uni_parse_double(number, &v) || v < 0 || v > 1e10)
			return s;
		*ns_ret = v >= 1e8 ? (uint64_t)(v * 1e6 + 0.5) * 1000 : 0;
	}
	begin += len + strspn(begin + len, " ");
	relative = strncmp(begin, "(+", 2) == 0 ? strstr(begin, ") ") : NULL;
	return relative != NULL ? relative + 2 : begin;
}

bool uni_sysc_find_call(struct uni_sysc_console *c, const char *s, size_t len,
	const struct uni_sysc_def **def_ret, uint32_t *name_ret)
{
	const struct uni_sysc_def *def = len != 0 ? uni_sysc_by_name(s, len) : NULL;
	char number[24] = "";
	uint64_t nr;

	if (def == NULL && len > 8 && len < 8 + sizeof(number) && strncmp(s, "syscall_", 8) == 0) {
		memcpy(number, s + 8, len - 8);
		if (!uni_parse_u64(number, &nr))
			return false;
		def = uni_sysc_by_number(c->machine, nr);
		*name_ret = def != NULL ? uni_sysc_clean_text(c->log, def->name, strlen(def->name))
					: uni_sysc_clean_text(c->log, s, len);
		*def_ret = def;
		return true;
	}
	*def_ret = def;
	if (def != NULL)
		*name_ret = uni_sysc_clean_text(c->log, def->name, strlen(def->name));
	return def != NULL;
}

/* " <0.000123>" at the end, of strace -T; NULL: there is none. */
static char *cut_duration(char *s, uint64_t *ns_ret)
{
	size_t len = strlen(s);
	char *at = strrchr(s, '<');
	double v;

	if (at == NULL || at == s || at[-1] != ' ' || s[len - 1] != '>')
		return NULL;
	s[len - 1] = '\0';
	if (!uni_parse_double(at + 1, &v) || v > 1e9) {
		s[len - 1] = '>';
		return NULL;
	}
	*ns_ret = (uint64_t)(v * 1e9 + 0.5);
	return at - 1;
}

char *uni_sysc_find_result(char *s, char **close_ret)
{
	for (char *at = s + strlen(s); at-- > s;) {
		char *b = at;

		if (strncmp(at, "= ", 2) != 0)
			continue;
		while (b > s && b[-1] == ' ')
			b--;
		if (b != at && b > s && b[-1] == ')') {
			*close_ret = b - 1;
			return at + 2;
		}
	}
	return NULL;
}

/* Nanos prints output arguments at the end of a call; strace prints all remaining arguments
 * there. */
static int more_args(
	struct uni_sysc_console *c, struct uni_sysc_entry *e, const char *from, const char *close)
{
	const char *begin = uni_strtab_get(c->log->text, e->args);
	size_t len = strlen(begin);
	_cleanup_strbuf_ struct uni_strbuf all;

	uni_strbuf_init(&all);
	from += strspn(from, " ");
	if (from >= close)
		return 0;
	while (len != 0 && begin[len - 1] == ' ')
		len--;
	uni_strbuf_addf(&all, "%.*s", (int)len, begin);
	if (len != 0 && *from != ',')
		uni_strbuf_adds(&all, begin[len - 1] == ',' || *from == '=' ? " " : ", ");
	uni_strbuf_addf(&all, "%.*s", (int)(close - from), from);
	if (uni_strbuf_failed(&all))
		return -UNI_ENOMEM;
	e->args = uni_sysc_clean_text(c->log, all.s, all.len);
	return e->args == UNI_STR_NONE ? -UNI_ENOMEM : 0;
}

struct uni_sysc_pending *uni_sysc_pending(struct uni_sysc_console *c, uint32_t thread)
{
	for (size_t i = c->pending.nr; i != 0; i--) {
		if (c->pending.v[i - 1].thread == thread)
			return &c->pending.v[i - 1];
	}
	return NULL;
}

static void remove_pending(struct uni_sysc_console *c, struct uni_sysc_pending *p)
{
	c->pending.nr--;
	memmove(p, p + 1, (size_t)(c->pending.v + c->pending.nr - p) * sizeof(*p));
}

int uni_sysc_end_pending(struct uni_sysc_console *c, uint32_t thread, const char *result,
	struct uni_sysc_entry **e_ret)
{
	struct uni_sysc_pending *p = uni_sysc_pending(c, thread);
	uint32_t entry;

	*e_ret = NULL;
	if (p == NULL || result == NULL) {
		c->log->unknown++;
		return 0;
	}
	entry = p->entry;
	remove_pending(c, p);
	if (entry == UINT32_MAX)
		return 0;
	*e_ret = &c->log->all.v[entry];
	uni_sysc_parse_result(c->log, result, *e_ret);
	return (*e_ret)->result == UNI_STR_NONE ? -UNI_ENOMEM : 0;
}

/* duration: as of cut_duration(). Without it, the line's own time says when the call ended. */
static void set_end(const struct uni_sysc_console *c, struct uni_sysc_entry *e,
	const char *duration, uint64_t ns)
{
	e->has_duration = duration != NULL;
	if (duration != NULL)
		e->end_ns = e->begin_ns + ns;
	else if (e->timed)
		e->end_ns = uni_max(e->begin_ns, c->ns);
}

static int take_resumed(struct uni_sysc_console *c, uint32_t thread, char *s, bool *was_ret)
{
	const char *end = strstr(s, " resumed>");
	struct uni_sysc_entry *e;
	char *close, *result, *cut;
	uint64_t ns = 0;
	int rc;

	if (strncmp(s, "<... ", 5) != 0 || end == NULL)
		return 0;
	*was_ret = true;
	cut = cut_duration(s, &ns);
	if (cut != NULL)
		*cut = '\0';
	result = uni_sysc_find_result(s, &close);
	rc = uni_sysc_end_pending(c, thread, result, &e);
	if (rc != 0 || e == NULL)
		return rc;
	set_end(c, e, cut, ns);
	end += sizeof(" resumed>") - 1;
	return more_args(c, e, end, close);
}

int uni_sysc_add_unfinished(struct uni_sysc_console *c, const struct uni_sysc_entry *e)
{
	struct uni_sysc_pending *last = uni_sysc_pending(c, e->thread);
	uint32_t entry;
	int rc = uni_sysc_log_put(c->log, e, &entry);

	if (rc != 0)
		return rc;
	if (last == NULL && c->pending.nr == PENDING_MAX)
		last = c->pending.v;
	if (last != NULL)
		remove_pending(c, last);
	return uni_vec_push(&c->pending, ((struct uni_sysc_pending){ e->thread, entry, true }))
		       ? 0
		       : -UNI_ENOMEM;
}

/* Is the first argument words that somebody wrote, as in "read(the manual) = 5"? A call's may begin
 * with a word too: fd:3, child_stack=NULL, addr 0x10, makedev(8, 1). */
static bool begins_prose(const char *s)
{
	static const char small[] = "abcdefghijklmnopqrstuvwxyz";
	size_t word = strspn(s, small), digits = strspn(s, "0123456789");

	if (isupper((unsigned char)s[0]) && islower((unsigned char)s[1]))
		return true;
	if (digits != 0 && s[digits] == ' ' && islower((unsigned char)s[digits + 1]))
		return true;

	return word != 0 && (s[word] == '\0' || strchr("=:(_", s[word]) == NULL) &&
	       strcspn(s, "0123456789") >= strcspn(s, ",)");
}

/* "name(args) = result", or the first part of one. */
static int take_strace_call(struct uni_sysc_console *c, uint32_t thread, char *s, bool *was_ret)
{
	static const char tail[] = " <unfinished ...>";
	struct uni_sysc_entry e = { .begin_ns = c->ns,
		.end_ns = c->ns,
		.thread = thread,
		.end = UNI_SYSC_OPEN,
		.shown = 'd',
		.timed = c->ns != 0 };
	size_t name = strcspn(s, "("), len = strlen(s);
	const struct uni_sysc_def *def;
	char *close, *result, *cut;
	uint64_t ns = 0;

	if (s[name] != '(' || begins_prose(s + name + 1) ||
		!uni_sysc_find_call(c, s, name, &def, &e.name))
		return 0;
	if (len > name + sizeof(tail) - 1 && strcmp(s + len - (sizeof(tail) - 1), tail) == 0) {
		*was_ret = true;
		e.args = uni_sysc_clean_text(
			c->log, s + name + 1, len - (sizeof(tail) - 1) - name - 1);
		return uni_sysc_add_unfinished(c, &e);
	}
	cut = cut_duration(s, &ns);
	if (cut != NULL)
		*cut = '\0';
	result = uni_sysc_find_result(s + name, &close);
	/* strace: "-1 ENOENT (...)", "3<socket:[1]>", "? ERESTARTSYS". Unikraft: "OK", "fd:3". */
	if (result == NULL ||
		(strchr("?-0123456789", *result) == NULL && !uni_sysc_unikraft_result(result)))
		return 0;
	*was_ret = true;
	e.args = uni_sysc_clean_text(c->log, s + name + 1, (size_t)(close - s) - name - 1);
	uni_sysc_parse_result(c->log, result, &e);
	set_end(c, &e, cut, ns);
	return uni_sysc_log_add(c->log, &e);
}

/* "99.01 0.012345 12 1000 3 read": five or six words. */
static int take_table_row(struct uni_sysc_console *c, const char *s, bool *was_ret)
{
	const char *word[6] = { NULL };
	size_t len[6] = { 0 }, nr = 0;
	struct uni_sysc_sum sum = { 0 };
	const struct uni_sysc_def *def;
	char seconds[32] = "";
	int64_t calls, errors = 0;
	double v;

	while (*(s += strspn(s, " ")) != '\0' && nr < 6) {
		word[nr] = s;
		len[nr] = strcspn(s, " ");
		s += len[nr++];
	}
	if (*s != '\0' || nr < 5 || len[1] >= sizeof(seconds))
		return 0;
	memcpy(seconds, word[1], len[1]);
	if (!uni_parse_double(seconds, &v) || v > 1e9 ||
		!uni_sysc_parse_int(word[3], len[3], &calls) ||
		(nr == 6 && !uni_sysc_parse_int(word[4], len[4], &errors)) ||
		!uni_sysc_find_call(c, word[nr - 1], len[nr - 1], &def, &sum.name))
		return 0;
	*was_ret = true;
	sum.calls = (uint64_t)calls;
	sum.errors = (uint64_t)errors;
	sum.ns = (uint64_t)(v * 1e9 + 0.5);
	if (sum.name == UNI_STR_NONE)
		return -UNI_ENOMEM;
	if (!uni_sysc_filter_name(c->log->filter, uni_strtab_get(c->log->text, sum.name)))
		return 0;
	return uni_vec_push(&c->log->sums, sum) ? 0 : -UNI_ENOMEM;
}

/* Is the line part of a table's frame? */
static bool take_table_frame(struct uni_sysc_console *c, const char *s)
{
	s += strspn(s, " ");
	if (strncmp(s, "% time", 6) == 0 && strstr(s, "syscall") != NULL) {
		c->in_table = true;
		c->rows = false;
		return true;
	}
	if (!c->in_table)
		return false;
	if (strncmp(s, "------", 6) == 0) {
		c->in_table = !c->rows;
		c->rows = true;
		return true;
	}
	return false;
}

static bool begins_call(const char *s)
{
	size_t len = strcspn(s, "( ");

	return strncmp(s, "<... ", 5) == 0 || (s[len] == '(' && uni_sysc_by_name(s, len) != NULL);
}

/* A call after text that was printed without a newline: "prompt> [2] write(1". Looks for a thread's
 * number or name in brackets, followed by a known call. NULL: there is none. */
static char *behind_text(struct uni_sysc_console *c)
{
	char *at;

	for (at = c->line; (at = strchr(at + 1, '[')) != NULL;) {
		const char *end = strchr(at, ']');

		if (end == NULL)
			break;
		if (end > at + 1 && end[1] == ' ' && begins_call(end + 2))
			return at;
	}
	at = uni_sysc_unikraft_behind_text(c);
	return at != NULL ? at : uni_sysc_old_behind_text(c);
}

/* strace's number of the call (-n) and its address (-i): "[  60] [00007f4228648226] exit". */
static const char *skip_marks(const char *s)
{
	while (*s == '[') {
		size_t len = strcspn(s, "]"), address = strspn(s + 1, "0123456789abcdef?");
		size_t blanks = strspn(s + 1, " "), digits = strspn(s + 1 + blanks, "0123456789");
		bool number = blanks != 0 && digits != 0 && 1 + blanks + digits == len;

		if ((!number && (address != 16 || len != 17)) || strncmp(s + len, "] ", 2) != 0)
			return s;
		s += len + 2;
	}
	return s;
}

static int one_call(struct uni_sysc_console *c, char *s, bool *was_ret)
{
	uint32_t thread;
	int rc;

	s = (char *)(uintptr_t)skip_thread(c, skip_marks(s), &thread);
	s = (char *)(uintptr_t)skip_marks(skip_stamp(s, &c->ns));
	rc = take_resumed(c, thread, s, was_ret);
	if (rc == 0 && !*was_ret)
		rc = take_strace_call(c, thread, s, was_ret);
	if (rc == 0 && !*was_ret && thread == 0)
		rc = uni_sysc_unikraft_line(c, s, was_ret);
	if (rc == 0 && !*was_ret)
		rc = uni_sysc_old_style(c, thread, s, was_ret);
	return rc;
}

static int take_console_line(struct uni_sysc_console *c)
{
	bool was = take_table_frame(c, c->line);
	char *behind;
	int rc = 0;

	if (was || c->line[0] == '\0')
		return 0;
	if (c->in_table && c->rows) {
		rc = take_table_row(c, c->line, &was);
		if (was || rc != 0)
			return rc;
	}
	rc = one_call(c, c->line, &was);
	behind = rc == 0 && !was ? behind_text(c) : NULL;
	if (behind != NULL)
		rc = one_call(c, behind, &was);
	c->log->other_lines += rc == 0 && !was;
	return rc;
}

int uni_sysc_from_console(const char *data, size_t size, unsigned machine, struct uni_sysc_log *log)
{
	struct uni_sysc_console *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (c == NULL)
		return -UNI_ENOMEM;
	c->log = log;
	c->machine = machine;
	while (size != 0 && rc == 0) {
		const char *nl = memchr(data, '\n', size);
		size_t len = nl != NULL ? (size_t)(nl - data) : size;

		take_line(c, data, len);
		rc = take_console_line(c);
		len += nl != NULL;
		data += len;
		size -= len;
	}
	uni_vec_free(&c->pending);
	free(c);
	return rc;
}
