/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "format/uktrace/buffer.h"

#define WIDTH_MAX 256 /* of a field; a format may ask for any */

/* One conversion of a printf() format. */
struct conversion {
	bool minus, plus, space, alternate, zero;
	bool width_arg, precision_arg; /* '*': an argument of its own */
	int width, precision;	       /* -1: none */
	char what;		       /* 0: the text ends in the middle of it */
};

static int parse_width(const char **s)
{
	int n = 0;

	for (; **s >= '0' && **s <= '9'; (*s)++)
		n = uni_min(n * 10 + (**s - '0'), WIDTH_MAX);
	return n;
}

static bool parse_flag(char c, struct conversion *v)
{
	bool *const of[] = { &v->minus, &v->plus, &v->space, &v->alternate, &v->zero };
	const char *at = c != '\0' ? strchr("-+ #0", c) : NULL;

	if (at != NULL)
		*of[at - "-+ #0"] = true;
	return at != NULL;
}

/* s is after the '%'; returns the position after the conversion. */
static const char *scan_conversion(const char *s, struct conversion *v)
{
	*v = (struct conversion){ .width = -1, .precision = -1 };
	while (parse_flag(*s, v))
		s++;
	if (*s == '*') {
		v->width_arg = true;
		s++;
	} else if (*s >= '1' && *s <= '9') {
		v->width = parse_width(&s);
	}
	if (*s == '.') {
		s++;
		if (*s == '*') {
			v->precision_arg = true;
			s++;
		} else {
			v->precision = parse_width(&s);
		}
	}
	while (*s != '\0' && strchr("hlLqjzt", *s) != NULL)
		s++;
	v->what = *s;
	return *s != '\0' ? s + 1 : s;
}

int64_t uni_ukt_signed(const struct uni_ukt_def *def, unsigned i, uint64_t v)
{
	unsigned bits = uni_min(def->arg[i].size, 8u) * 8;

	if (bits == 0 || bits == 64)
		return (int64_t)v;
	/* From the sign bit: xor and subtract extend it without a shift of a negative number. */
	return (int64_t)((v ^ UINT64_C(1) << (bits - 1)) - (UINT64_C(1) << (bits - 1)));
}

struct uni_ukt_shape uni_ukt_shape(const struct uni_ukt_def *def, unsigned i)
{
	const char *s = def->format;
	struct conversion v;
	unsigned arg = 0;

	while ((s = strchr(s, '%')) != NULL) {
		s = scan_conversion(s + 1, &v);
		if (v.what == '%' || v.what == '\0')
			continue;
		for (int star = v.width_arg + v.precision_arg; star > 0; star--) {
			if (arg++ == i)
				return (struct uni_ukt_shape){ .is_signed = true, .base = 10 };
		}
		if (arg++ != i)
			continue;
		switch (v.what) {
		case 'd':
		case 'i':
			return (struct uni_ukt_shape){ .is_signed = true, .base = 10 };
		case 'o':
			return (struct uni_ukt_shape){ .base = 8 };
		case 'x':
		case 'X':
			return (struct uni_ukt_shape){ .base = 16 };
		case 'p':
			return (struct uni_ukt_shape){ .base = 16, .pointer = true };
		default:
			return (struct uni_ukt_shape){ .base = 10 };
		}
	}
	return (struct uni_ukt_shape){ .base = 16 };
}

static void add_spaces(struct uni_strbuf *out, int n)
{
	while (n-- > 0)
		uni_strbuf_addc(out, ' ');
}

/* Characters, not bytes, as far as columns go. */
static int utf8_columns(const char *s)
{
	int n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void put_text(struct uni_strbuf *out, const struct conversion *v, const void *s, size_t len)
{
	char clean[256 * 3];
	int pad;

	if (v->precision >= 0 && len > (size_t)v->precision)
		len = (size_t)v->precision;
	(void)uni_text_clean(clean, sizeof(clean), s, len);
	pad = v->width - utf8_columns(clean);
	if (!v->minus)
		add_spaces(out, pad);
	uni_strbuf_adds(out, clean);
	if (v->minus)
		add_spaces(out, pad);
}

/* The digits of an integer: sign or prefix, zeros, digits. */
static void put_int(
	struct uni_strbuf *out, const struct conversion *v, const char *prefix, const char *digits)
{
	int nr = (int)strlen(digits), zeros = uni_max(v->precision - nr, 0), pad;

	if (v->precision == 0 && strcmp(digits, "0") == 0)
		nr = 0;
	pad = v->width - nr - zeros - (int)strlen(prefix);
	if (v->zero && !v->minus && v->precision < 0) {
		zeros += uni_max(pad, 0);
		pad = 0;
	}
	if (!v->minus)
		add_spaces(out, pad);
	uni_strbuf_adds(out, prefix);
	while (zeros-- > 0)
		uni_strbuf_addc(out, '0');
	uni_strbuf_add(out, digits, (size_t)nr);
	if (v->minus)
		add_spaces(out, pad);
}

static void put_signed(struct uni_strbuf *out, const struct conversion *v, int64_t n)
{
	char digits[32];
	uint64_t abs = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

	(void)snprintf(digits, sizeof(digits), "%" PRIu64, abs);
	put_int(out, v, n < 0 ? "-" : v->plus ? "+" : v->space ? " " : "", digits);
}

static void put_unsigned(struct uni_strbuf *out, const struct conversion *v, uint64_t n)
{
	char digits[32];
	const char *prefix = "";

	switch (v->what) {
	case 'x':
		(void)snprintf(digits, sizeof(digits), "%" PRIx64, n);
		prefix = v->alternate && n != 0 ? "0x" : "";
		break;
	case 'X':
		(void)snprintf(digits, sizeof(digits), "%" PRIX64, n);
		prefix = v->alternate && n != 0 ? "0X" : "";
		break;
	case 'o':
		(void)snprintf(digits, sizeof(digits), "%" PRIo64, n);
		prefix = v->alternate && n != 0 ? "0" : "";
		break;
	default:
		(void)snprintf(digits, sizeof(digits), "%" PRIu64, n);
		break;
	}
	put_int(out, v, prefix, digits);
}

/* 0x and all digits that a pointer of this size has, as Unikraft's own scripts show them. */
static void put_pointer(struct uni_strbuf *out, const struct conversion *v, uint64_t n, int size)
{
	struct conversion hex = { .minus = v->minus, .width = v->width, .precision = 2 * size };
	char digits[32];

	(void)snprintf(digits, sizeof(digits), "%" PRIx64, n);
	put_int(out, &hex, "0x", digits);
}

struct message {
	const struct uni_ukt_record *r;
	struct uni_strbuf *out;
	unsigned next; /* argument */
};

/* A width or precision that is an argument. */
static int star_argument(struct message *m)
{
	const struct uni_ukt_def *def = m->r->def;
	int64_t n;

	if (m->next >= def->nr_args)
		return -1;
	n = uni_ukt_signed(def, m->next, m->r->arg[m->next].v);
	m->next++;
	return n > WIDTH_MAX ? WIDTH_MAX : n < -WIDTH_MAX ? -WIDTH_MAX : (int)n;
}

static void put_value(struct message *m, const struct conversion *v)
{
	unsigned i = m->next++;
	const struct uni_ukt_def *def = m->r->def;
	const struct uni_ukt_value *a = &m->r->arg[i];
	const char c = (char)a->v;
	/* For a %s or %f whose argument is an integer. */
	const struct conversion hex = { .alternate = true,
		.width = v->width,
		.what = 'x',
		.precision = -1,
		.minus = v->minus };

	if (def->arg[i].type == UNI_UKT_STRING) {
		put_text(m->out, v, a->s, a->s_len);
		return;
	}
	switch (v->what) {
	case 'd':
	case 'i':
	/* A float that was recorded: it was cut to an integer. */
	case 'e':
	case 'f':
	case 'g':
		put_signed(m->out, v, uni_ukt_signed(def, i, a->v));
		return;
	case 'u':
	case 'o':
	case 'x':
	case 'X':
		put_unsigned(m->out, v, a->v);
		return;
	case 'p':
		put_pointer(m->out, v, a->v, def->arg[i].size);
		return;
	case 'c':
		put_text(m->out, v, &c, 1);
		return;
	default:
		put_unsigned(m->out, &hex, a->v);
	}
}

static void put_conversion(struct message *m, struct conversion *v)
{
	if (v->width_arg) {
		v->width = star_argument(m);
		v->minus |= v->width < 0;
		v->width = v->width < 0 ? -v->width : v->width;
	}
	if (v->precision_arg) {
		v->precision = star_argument(m);
		v->precision = v->precision < 0 ? -1 : v->precision;
	}
	if (m->next < m->r->def->nr_args)
		put_value(m, v);
	else
		uni_strbuf_addc(m->out, '?');
}

void uni_ukt_format(const struct uni_ukt_record *r, struct uni_strbuf *out)
{
	struct message m = { .r = r, .out = out };
	const struct conversion plain = {
		.width = -1, .precision = -1, .alternate = true, .what = 'x'
	};
	const char *s;

	if (r->def == NULL) {
		uni_strbuf_addf(out, "cookie 0x%" PRIx64 ", %u byte%s", r->cookie, r->size,
			uni_plural(r->size));
		return;
	}
	for (s = r->def->format; *s != '\0';) {
		size_t n = strcspn(s, "%");
		struct conversion v;

		uni_strbuf_add(out, s, n);
		s += n;
		if (*s == '\0')
			break;
		s = scan_conversion(s + 1, &v);
		if (v.what == '%')
			uni_strbuf_addc(out, '%');
		else if (v.what != '\0')
			put_conversion(&m, &v);
	}
	while (m.next < r->def->nr_args) {
		uni_strbuf_addc(out, ' ');
		put_value(&m, &plain);
	}
}
