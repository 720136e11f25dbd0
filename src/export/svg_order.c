/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/svg_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct line {
	size_t at; /* in the text of all */
	const char *text;
	struct uni_profile_entry entry;
};

static int line_order(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static bool put_line(struct uni_strbuf *b, const struct uni_profile *p,
	const struct uni_profile_entry *e, uint32_t *path)
{
	size_t depth = uni_profile_depth(p, e->node);
	uint32_t node = e->node;

	for (size_t i = depth; i-- != 0; node = uni_profile_node(p, node)->parent)
		path[i] = node;
	for (size_t i = 0; i < depth; i++) {
		uni_strbuf_adds(b, uni_profile_node_name(p, path[i]));
		uni_strbuf_addc(b, i + 1 < depth ? ';' : ' ');
	}
	uni_strbuf_addf(b, "%.15g", e->value);
	if (uni_profile_has_second(p))
		uni_strbuf_addf(b, " %.15g", e->value2);
	uni_strbuf_add(b, "", 1);
	return !uni_strbuf_failed(b);
}

/* Stacks of a finished tree, which is all there is without a log. */
static int collect(
	const struct uni_profile *p, struct line *line, size_t *nr_ret, struct uni_strbuf *text)
{
	size_t nr = uni_profile_nr_nodes(p), n = 0;
	_cleanup_free_ uint32_t *path = calloc(nr, sizeof(*path));

	if (path == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct uni_profile_entry e = { (uint32_t)i, uni_profile_node(p, (uint32_t)i)->self,
			uni_profile_self2(p, (uint32_t)i) };

		if (e.value == 0.0 && e.value2 == 0.0)
			continue;
		line[n].at = text->len;
		line[n++].entry = e;
		if (!put_line(text, p, &e, path))
			return -UNI_ENOMEM;
	}
	*nr_ret = n;
	return 0;
}

static int by_lines(const struct uni_profile *p, struct uni_profile **ret)
{
	size_t nr = uni_profile_nr_nodes(p);
	_cleanup_free_ struct line *line = calloc(nr, sizeof(*line));
	_cleanup_free_ struct uni_profile_entry *entry = calloc(nr, sizeof(*entry));
	_cleanup_strbuf_ struct uni_strbuf text;
	int rc = line != NULL && entry != NULL ? 0 : -UNI_ENOMEM;

	uni_strbuf_init(&text);
	if (rc == 0)
		rc = collect(p, line, &nr, &text);
	for (size_t i = 0; rc == 0 && i < nr; i++)
		line[i].text = text.s + line[i].at;
	if (rc == 0 && nr != 0)
		qsort(line, nr, sizeof(*line), line_order);
	for (size_t i = 0; rc == 0 && i < nr; i++)
		entry[i] = line[i].entry;
	return rc == 0 ? uni_profile_chart(p, entry, nr, ret) : rc;
}

int uni_svg_ordered(const struct uni_profile *p, bool lines, struct uni_profile **ret)
{
	const struct uni_profile_entry *log;
	size_t nr;

	if (lines)
		return by_lines(p, ret);
	log = uni_profile_log(p, &nr);
	return nr != 0 ? uni_profile_chart(p, log, nr, ret) : -UNI_ENOTSUP;
}
