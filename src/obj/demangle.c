/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define CALLS_MAX 65536u

/* Collects the result that libiberty makes piece by piece. */
struct collect {
	char text[UNI_TEXT_MAX];
	size_t len;
	unsigned calls;
	jmp_buf enough;
};

/*
 * A name of a hundred bytes can stand for a name of 2^30 bytes, as it can refer to its own parts
 * again and again. libiberty can be stopped in no other way; it has allocated no memory at this
 * point.
 */
static void on_piece(const char *s, size_t len, void *ctx)
{
	struct collect *c = ctx;

	if (len >= sizeof(c->text) - c->len || ++c->calls > CALLS_MAX)
		longjmp(c->enough, 1);
	memcpy(c->text + c->len, s, len);
	c->len += len;
}

static bool by_libiberty(const char *name, int options, struct collect *c)
{
	int ok;

	if (setjmp(c->enough) != 0)
		return false;
	ok = rust_demangle_callback(name, DMGL_NO_OPTS, on_piece, c);
	if (ok == 0 && name[0] == '_' && name[1] == 'Z') {
		c->len = 0;
		ok = cplus_demangle_v3_callback(name, options, on_piece, c);
	}
	return ok != 0 && c->len != 0;
}

/* "$2b" is '+': operators, and other characters that an assembler's symbol cannot have. */
static bool ocaml_escape(const char *s, char *ret)
{
	int hi = s[0] == '$' ? uni_hex_digit(s[1]) : -1, lo = hi >= 0 ? uni_hex_digit(s[2]) : -1;

	if (lo < 0 || !isprint(hi * 16 + lo))
		return false;
	*ret = (char)(hi * 16 + lo);
	return true;
}

/*
 * The start of the compiler's own number ("_123"). A function without a name keeps its number,
 * which is all that distinguishes it from others.
 */
static size_t ocaml_end(const char *s)
{
	size_t len = strlen(s), end = len;

	while (end != 0 && isdigit((unsigned char)s[end - 1]))
		end--;
	if (end == len || end < 2 || s[end - 1] != '_')
		return len;
	end--;
	if (end >= 5 &&
		(strncmp(s + end - 5, "__fun", 5) == 0 || strncmp(s + end - 4, ".fun", 4) == 0))
		return len;
	return s[end - 1] == '_' || s[end - 1] == '.' ? len : end;
}

static bool is_ocaml(const char *name)
{
	return strncmp(name, "caml", 4) == 0 && isupper((unsigned char)name[4]) &&
	       (strstr(name, "__") != NULL || strchr(name, '.') != NULL);
}

bool uni_demangle_is_anonymous(const char *name)
{
	size_t len = strlen(name), end = len;

	while (end != 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	return is_ocaml(name) && end != len && end > 6 &&
	       (strncmp(name + end - 6, "__fun_", 6) == 0 ||
		       strncmp(name + end - 5, ".fun_", 5) == 0);
}

/*
 * camlModule__Sub__function_123; since OCaml 5.1: camlModule.Sub.function_123. dune puts the
 * modules of a program into one of its own, of which the source has no word.
 */
static bool by_ocaml(const char *name, struct collect *c)
{
	static const char dune[] = "Dune__exe__";
	const char *s = name + 4;
	size_t end;

	if (!is_ocaml(name))
		return false;
	if (strncmp(s, dune, sizeof(dune) - 1) == 0 && isupper((unsigned char)s[sizeof(dune) - 1]))
		s += sizeof(dune) - 1;
	end = ocaml_end(s);
	for (size_t i = 0; i < end && c->len < sizeof(c->text) - 1; c->len++) {
		if (s[i] == '_' && s[i + 1] == '_' && i + 2 < end) {
			c->text[c->len] = '.';
			i += 2;
		} else if (i + 2 < end && ocaml_escape(s + i, &c->text[c->len])) {
			i += 3;
		} else {
			c->text[c->len] = s[i++];
		}
	}
	return true;
}

static bool demangle_with(const char *name, int options, char *ret, size_t cap)
{
	struct collect c;

	c.len = 0;
	c.calls = 0;
	if (name[0] == '_' ? !by_libiberty(name, options, &c) : !by_ocaml(name, &c))
		return false;
	if (c.len >= cap)
		return false;
	(void)uni_text_clean(ret, cap, c.text, c.len);
	return true;
}

bool uni_demangle(const char *name, char *ret, size_t cap)
{
	return demangle_with(name, DMGL_NO_OPTS, ret, cap);
}

bool uni_demangle_scope(const char *name, char *ret, size_t cap)
{
	return demangle_with(name, DMGL_PARAMS, ret, cap);
}

size_t uni_demangle_source_len(const char *name, size_t len)
{
	static const char *const suffix[] = { ".part.", ".isra.", ".constprop.", ".cold",
		".lto_priv.", ".llvm." };

	for (size_t i = 0; i < uni_array_len(suffix); i++) {
		const char *at = memmem(name, len, suffix[i], strlen(suffix[i]));

		if (at != NULL && at != name)
			len = (size_t)(at - name);
	}
	return len;
}
