/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/svg/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct line {
	size_t at; /* in the text of all */
	uint32_t node;
};

/* Two neighbours, each in order; of alike lines the first one's stay first. */
static void merge_runs(
	const char *text, struct line *v, size_t nr_first, size_t nr, struct line *tmp)
{
	size_t a = 0, b = nr_first, to = 0;

	memcpy(tmp, v, nr_first * sizeof(*v));
	while (a < nr_first && b < nr) {
		if (strcmp(text + tmp[a].at, text + v[b].at) <= 0)
			v[to++] = tmp[a++];
		else
			v[to++] = v[b++];
	}
	memcpy(v + to, tmp + a, (nr_first - a) * sizeof(*v));
}

static size_t run_length(const char *text, const struct line *v, size_t nr)
{
	size_t n = nr == 0 ? 0 : 1;

	while (n < nr && strcmp(text + v[n - 1].at, text + v[n].at) <= 0)
		n++;
	return n;
}

/* Merge sort by runs. A tree's lines are almost in the order of names, except for names that begin
 * other names: runs that are in order are only compared. */
static void sort_lines(const char *text, struct line *v, size_t nr, struct line *tmp)
{
	bool merged = true;

	while (merged) {
		merged = false;
		for (size_t i = 0; i < nr;) {
			size_t first = run_length(text, v + i, nr - i);
			size_t second = run_length(text, v + i + first, nr - i - first);

			if (second != 0) {
				merge_runs(text, v + i, first, first + second, tmp);
				merged = true;
			}
			i += first + second;
		}
	}
}

static struct uni_profile_entry entry_of(const struct uni_profile *p, uint32_t node)
{
	return (struct uni_profile_entry){ node, uni_profile_node(p, node)->self,
		uni_profile_self2(p, node) };
}

/* Position of a walk through the tree: the names from the root on, and the offset of each. */
struct walk {
	const struct uni_profile *p;
	struct uni_strbuf path;
	UNI_VEC(size_t) at;
};

static bool enter_path(struct walk *w, uint32_t node)
{
	if (!uni_vec_push(&w->at, w->path.len))
		return false;
	if (w->at.nr > 1)
		uni_strbuf_addc(&w->path, ';');
	uni_strbuf_adds(&w->path, uni_profile_node_name(w->p, node));
	return !uni_strbuf_failed(&w->path);
}

static void leave_path(struct walk *w)
{
	w->path.len = w->at.v[--w->at.nr];
}

/* Depth first; UNI_NODE_NONE after the last one, or (and *oom) without memory. */
static uint32_t next_of(struct walk *w, uint32_t node, bool *oom)
{
	const struct uni_node *n = uni_profile_node(w->p, node);
	uint32_t next = n->child;

	while (next == UNI_NODE_NONE && n->parent != UNI_NODE_NONE) {
		leave_path(w);
		next = n->next;
		n = uni_profile_node(w->p, n->parent);
	}
	if (next == UNI_NODE_NONE || enter_path(w, next))
		return next;
	*oom = true;
	return UNI_NODE_NONE;
}

static void put_line(struct uni_strbuf *b, const struct walk *w, const struct uni_profile_entry *e)
{
	uni_strbuf_add(b, w->path.s, w->path.len);
	if (w->at.nr != 0)
		uni_strbuf_addc(b, ' ');
	uni_strbuf_addf(b, "%.15g", e->value);
	if (uni_profile_has_second(w->p))
		uni_strbuf_addf(b, " %.15g", e->value2);
	uni_strbuf_add(b, "", 1);
}

/* Stacks of a finished tree, which is all there is without a log, as they come in it. */
static int collect_stacks(const struct uni_profile *p, struct line *line, struct uni_strbuf *text)
{
	struct walk w = { .p = p };
	bool oom = false;
	size_t n = 0;

	uni_strbuf_init(&w.path);
	for (uint32_t node = UNI_NODE_ROOT; node != UNI_NODE_NONE; node = next_of(&w, node, &oom)) {
		struct uni_profile_entry e = entry_of(p, node);

		if (e.value == 0.0 && e.value2 == 0.0)
			continue;
		line[n++] = (struct line){ text->len, node };
		put_line(text, &w, &e);
	}
	uni_strbuf_deinit(&w.path);
	uni_vec_free(&w.at);
	return oom || uni_strbuf_failed(text) ? -UNI_ENOMEM : 0;
}

static int sorted_entries(const struct uni_profile *p, struct uni_profile_entry **ret, size_t nr)
{
	_cleanup_free_ struct line *line = calloc(nr + 1, sizeof(*line));
	_cleanup_free_ struct line *tmp = calloc(nr + 1, sizeof(*tmp));
	struct uni_profile_entry *entry = calloc(nr + 1, sizeof(*entry));
	_cleanup_strbuf_ struct uni_strbuf text;
	int rc = line != NULL && tmp != NULL && entry != NULL ? 0 : -UNI_ENOMEM;

	uni_strbuf_init(&text);
	if (rc == 0)
		rc = collect_stacks(p, line, &text);
	if (rc != 0) {
		free(entry);
		return rc;
	}
	sort_lines(text.s, line, nr, tmp);
	for (size_t i = 0; i < nr; i++)
		entry[i] = entry_of(p, line[i].node);
	*ret = entry;
	return 0;
}

static int by_lines(const struct uni_profile *p, struct uni_profile **ret)
{
	_cleanup_free_ struct uni_profile_entry *entry = NULL;
	size_t nr = 0;
	int rc;

	for (size_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		struct uni_profile_entry e = entry_of(p, (uint32_t)i);

		nr += e.value != 0.0 || e.value2 != 0.0;
	}
	rc = sorted_entries(p, &entry, nr);
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
