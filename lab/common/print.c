/* SPDX-License-Identifier: BSD-2-Clause */
/* A small printf. */
#include <stdarg.h>

#include "lab.h"

struct out {
	char *buf;
	size_t size, used; /* used may exceed size: what does not fit is dropped */
};

static void out_char(struct out *o, char c)
{
	if (o->used + 1 < o->size)
		o->buf[o->used] = c;
	o->used++;
}

static void out_number(struct out *o, uint64_t value, unsigned base, int width, char pad, bool neg)
{
	char digits[24];
	int nr = 0;

	do {
		digits[nr++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	if (neg)
		digits[nr++] = '-';
	for (int i = nr; i < width; i++)
		out_char(o, pad);
	while (nr)
		out_char(o, digits[--nr]);
}

static void out_string(struct out *o, const char *s, int width)
{
	int len = (int)lab_strlen(s);

	while (*s)
		out_char(o, *s++);
	for (; len < width; len++)
		out_char(o, ' ');
}

/* One conversion; fmt points behind the '%'. Returns what follows it. */
static const char *out_conversion(struct out *o, const char *fmt, va_list *ap)
{
	char pad = *fmt == '0' ? '0' : ' ';
	bool is_long = false;
	int width = 0;
	int64_t v;

	for (; *fmt >= '0' && *fmt <= '9'; fmt++)
		width = width * 10 + (*fmt - '0');
	for (; *fmt == 'l' || *fmt == 'z'; fmt++)
		is_long = true;
	switch (*fmt) {
	case 's':
		out_string(o, va_arg(*ap, const char *), width);
		break;
	case 'c':
		out_char(o, (char)va_arg(*ap, int));
		break;
	case 'd':
		v = is_long ? va_arg(*ap, long) : va_arg(*ap, int);
		out_number(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10, width, pad, v < 0);
		break;
	case 'p':
		out_number(o, (uint64_t)va_arg(*ap, void *), 16, 16, '0', false);
		break;
	case 'u':
	case 'x':
		out_number(o, is_long ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned),
			*fmt == 'u' ? 10 : 16, width, pad, false);
		break;
	default:
		out_char(o, *fmt);
	}
	return *fmt ? fmt + 1 : fmt;
}

static int format(char *buf, size_t size, const char *fmt, va_list *ap)
{
	struct out o = { .buf = buf, .size = size };

	while (*fmt) {
		if (*fmt == '%')
			fmt = out_conversion(&o, fmt + 1, ap);
		else
			out_char(&o, *fmt++);
	}
	if (size)
		buf[o.used < size ? o.used : size - 1] = '\0';
	return (int)o.used;
}

LAB_FUNC int lab_snprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int used;

	va_start(ap, fmt);
	used = format(buf, size, fmt, &ap);
	va_end(ap);
	return used;
}

LAB_FUNC void lab_puts(const char *s)
{
	while (*s)
		lab_putc(*s++);
}

LAB_FUNC void lab_printf(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	format(line, sizeof(line), fmt, &ap);
	va_end(ap);
	lab_puts(line);
}
