/* SPDX-License-Identifier: BSD-2-Clause */
#include "syscalls/value.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "syscalls/flags.h"

#define ERRORS	   4095 /* results from -this to -1 are errors */
#define STRING_CAP 1024

struct args {
	const struct uni_sysc_def *def;
	const uint64_t *arg;
	unsigned nr;
	const struct uni_trace_copied *copied; /* UNI_TRACE_ARGS of them, or NULL */
	const struct uni_sysc_memory *memory;
	struct uni_strbuf *out;
};

static void put_pointer(struct uni_strbuf *out, uint64_t v)
{
	if (v == 0)
		uni_strbuf_adds(out, "NULL");
	else
		uni_strbuf_addf(out, "0x%" PRIx64, v);
}

/* Shows the copy that the guest made when the call was made; false: there is none. */
static bool put_copied(const struct args *a, unsigned i)
{
	const struct uni_trace_copied *t;
	size_t max;

	if (a->copied == NULL || i >= UNI_TRACE_ARGS)
		return false;
	t = &a->copied[i];
	if (t->text == NULL || (t->flags & UNI_TRACE_TEXT_BAD) != 0)
		return false;
	max = a->memory != NULL ? a->memory->string_max : t->len;
	uni_strbuf_quote(a->out, t->text, t->len, max);
	if ((t->flags & UNI_TRACE_TEXT_CUT) != 0 && t->len <= max)
		uni_strbuf_adds(a->out, "...");
	return true;
}

static void put_string(const struct args *a, unsigned i)
{
	uint8_t text[STRING_CAP];
	const uint64_t v = a->arg[i];
	const uint8_t *nul;
	size_t n = 0, len;

	if (put_copied(a, i))
		return;
	if (v != 0 && a->memory != NULL)
		n = a->memory->read(a->memory->ctx, v, text, sizeof(text));
	nul = n != 0 ? memchr(text, '\0', n) : NULL;
	len = nul != NULL ? (size_t)(nul - text) : n;
	/* Without an end it is no text, or a longer one than anybody wants to see. */
	if (n == 0 || (nul == NULL && n < sizeof(text)))
		put_pointer(a->out, v);
	else
		uni_strbuf_quote(a->out, text, len, a->memory->string_max);
}

/* A buffer to write, with the length in the next argument. */
static void put_buffer(const struct args *a, unsigned i)
{
	uint8_t text[STRING_CAP];
	uint64_t len = i + 1 < a->nr ? a->arg[i + 1] : 0;
	size_t n = 0, want;

	if (put_copied(a, i))
		return;
	want = a->memory != NULL ? uni_min(a->memory->string_max, sizeof(text)) : 0;
	want = (size_t)uni_min((uint64_t)want, len);
	if (a->arg[i] != 0 && want != 0)
		n = a->memory->read(a->memory->ctx, a->arg[i], text, want);
	if (n == 0 || n < want) {
		put_pointer(a->out, a->arg[i]);
		return;
	}
	uni_strbuf_quote(a->out, text, n, n);
	if (n < len)
		uni_strbuf_adds(a->out, "...");
}

static void put_dirfd(struct uni_strbuf *out, int32_t fd)
{
	if (fd == -100)
		uni_strbuf_adds(out, "AT_FDCWD");
	else
		uni_strbuf_addf(out, "%" PRId32, fd);
}

/* fcntl's third argument depends on the second. False: there is none. */
static bool put_fcntl(const struct args *a)
{
	enum { GETFD = 1, SETFD = 2, GETFL = 3, SETFL = 4, GETOWN = 9 };
	int32_t cmd = (int32_t)a->arg[1];

	if (cmd == GETFD || cmd == GETFL || cmd == GETOWN)
		return false;
	uni_strbuf_adds(a->out, ", ");
	if (cmd == SETFL)
		uni_sysc_put_flags('O', a->arg[2], a->out);
	else if (cmd == SETFD)
		uni_strbuf_adds(a->out, a->arg[2] & 1 ? "FD_CLOEXEC" : "0");
	else if (cmd == 0)
		uni_strbuf_addf(a->out, "%" PRId32, (int32_t)a->arg[2]);
	else
		put_pointer(a->out, a->arg[2]);
	return true;
}

bool uni_sysc_no_mode(char kind, uint64_t flags)
{
	const uint64_t creates = 0100 | 020000000; /* O_CREAT, __O_TMPFILE */

	return kind == 'O' && (flags & creates) == 0;
}

static bool is_absent(const struct args *a, unsigned i)
{
	return a->def->kinds[i] == 'o' && i != 0 &&
	       uni_sysc_no_mode(a->def->kinds[i - 1], a->arg[i - 1]);
}

static void put_one(const struct args *a, unsigned i)
{
	const uint64_t v = a->arg[i];

	switch (a->def->kinds[i]) {
	case 's':
		put_string(a, i);
		break;
	case 'i':
		put_buffer(a, i);
		break;
	case 'b':
	case 'p':
		put_pointer(a->out, v);
		break;
	case 'f':
	case 'd':
		uni_strbuf_addf(a->out, "%" PRId32, (int32_t)v);
		break;
	case 'F':
		put_dirfd(a->out, (int32_t)v);
		break;
	case 'u':
		uni_strbuf_addf(a->out, "%" PRIu32, (uint32_t)v);
		break;
	case 'z':
		uni_strbuf_addf(a->out, "%" PRIu64, v);
		break;
	case 'l':
		uni_strbuf_addf(a->out, "%" PRId64, (int64_t)v);
		break;
	case 'o':
		uni_strbuf_addf(a->out, "%#" PRIo32, (uint32_t)v);
		break;
	case 'x':
		uni_strbuf_addf(a->out, "%#" PRIx64, v);
		break;
	default:
		uni_sysc_put_flags(a->def->kinds[i], v, a->out);
		break;
	}
}

void uni_sysc_args(const struct uni_sysc_def *def, const uint64_t *arg, unsigned nr,
	const struct uni_trace_copied *copied, const struct uni_sysc_memory *memory,
	struct uni_strbuf *out)
{
	const struct args a = { def, arg, nr, copied, memory, out };
	unsigned want = def != NULL ? uni_min(uni_sysc_nr_args(def), nr) : nr;

	for (unsigned i = 0; i < want; i++) {
		if (def != NULL && is_absent(&a, i))
			break;
		if (def != NULL && i == 2 && def->kinds[1] == 'c') {
			(void)put_fcntl(&a);
			break;
		}
		uni_strbuf_adds(out, i != 0 ? ", " : "");
		if (def != NULL)
			put_one(&a, i);
		else
			uni_strbuf_addf(out, "%#" PRIx64, arg[i]);
	}
}

int64_t uni_sysc_result(const struct uni_sysc_def *def, uint64_t reg)
{
	if (def == NULL || strchr("plz", uni_sysc_result_kind(def)) != NULL)
		return (int64_t)reg;
	return (int32_t)reg;
}

bool uni_sysc_is_error(int64_t result, int *errno_ret)
{
	if (result >= 0 || result < -ERRORS)
		return false;
	*errno_ret = (int)-result;
	return true;
}

const char *uni_sysc_error_name(int error)
{
	return strerrorname_np(error);
}

int uni_sysc_error_of(const char *name, size_t len)
{
	for (int e = 1; e <= ERRORS; e++) {
		const char *s = strerrorname_np(e);

		if (s != NULL && strncmp(s, name, len) == 0 && s[len] == '\0')
			return e;
		if (s == NULL && e > 200)
			break;
	}
	return -1;
}
