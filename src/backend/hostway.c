/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/hostway.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void uni_host_fact_add(struct uni_host_way *way, const char *name, bool ok, const char *fmt, ...)
{
	struct uni_host_fact *f = &way->fact[way->nr];
	char text[sizeof(f->text)];
	va_list ap;

	if (way->nr == UNI_HOST_FACTS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)uni_text_clean(f->text, sizeof(f->text), text, strlen(text));
	f->name = name;
	f->ok = ok;
	way->nr++;
}

void uni_host_way_judge(struct uni_host_way *way)
{
	size_t len = 0;

	way->ok = true;
	way->advice[0] = '\0';
	for (uint32_t i = 0; i < way->nr; i++) {
		const struct uni_host_fact *f = &way->fact[i];
		int n;

		if (f->ok)
			continue;
		way->ok = false;
		n = snprintf(way->advice + len, sizeof(way->advice) - len, "%s%s",
			len != 0 ? "; " : "", f->text);
		if (n < 0 || (size_t)n >= sizeof(way->advice) - len)
			return; /* the first ones are the most important */
		len += (size_t)n;
	}
}
