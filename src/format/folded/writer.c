/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks, "root;caller;leaf 42" a line, in the order of the tree. Other readers split at ';'
 * and take one or two numbers off the end. So ';' in a name becomes ':', and '_' replaces the blank
 * before a number that ends a leaf. (Otherwise a reader would take "lambda 3" as a differential.)
 * Inlined functions end in "_[i]", as other writers of folded stacks mark them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "format/opts.h"
#include "profile/pile.h"

#define AHEAD 8 /* stacks whose names are fetched before they are needed */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Position of the blank before a number at the end of the name, or len if there is none. */
static size_t number_blank(const char *s, size_t len)
{
	size_t i = len;

	while (i != 0 && (is_digit(s[i - 1]) || s[i - 1] == '.'))
		i--;
	if (i != len && i != 0 && is_digit(s[i]) && (s[i - 1] == ' ' || s[i - 1] == '\t'))
		return i - 1;
	return len;
}

static bool is_odd(const char *s, size_t len)
{
	return len == 0 || memchr(s, ';', len) != NULL || memchr(s, '\n', len) != NULL ||
	       memchr(s, '\r', len) != NULL;
}

/* Replaces the characters at which other readers would split. */
static void put_odd(struct uni_strbuf *b, const char *s, size_t len)
{
	size_t at = b->len;

	if (len == 0)
		uni_strbuf_addc(b, '-');
	uni_strbuf_add(b, s, len);
	for (; at < b->len; at++) {
		if (b->s[at] == ';')
			b->s[at] = ':';
		else if (b->s[at] == '\n' || b->s[at] == '\r')
			b->s[at] = ' ';
	}
}

static void put_whole(struct uni_sink *out, uint64_t v)
{
	char buf[24];
	size_t at = sizeof(buf);

	do
		buf[--at] = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	buf[--at] = ' ';
	uni_sink_write(out, buf + at, sizeof(buf) - at);
}

static void put_value(struct uni_sink *out, double v)
{
	char buf[64];
	int n;

	if (v == floor(v) && v >= 0.0 && v < 9007199254740992.0) {
		put_whole(out, (uint64_t)v);
		return;
	}
	n = snprintf(buf, sizeof(buf), "%.6f", v);
	while (n > 1 && n < (int)sizeof(buf) && buf[n - 1] == '0')
		buf[--n] = '\0';
	uni_sink_printf(out, " %s", buf);
}

struct step {
	uint32_t node;
	size_t len; /* of the text before its name */
};

/* Frame data for writing, in one place because cache misses take most of the time. */
struct name {
	const char *s; /* borrowed */
	uint32_t len;
	bool odd, inlined;
};

struct folder {
	const struct uni_profile *p;
	struct uni_sink *out;
	struct uni_strbuf text; /* names of the path, each with what separates it from the next */
	struct name *names;	/* by frame */
	bool two;		/* numbers a line */
	UNI_VEC(struct step) path; /* nodes below the root, down to the current one */
};

static int name_frames(struct folder *f)
{
	size_t nr = uni_profile_nr_frames(f->p);

	f->names = calloc(nr + 1, sizeof(*f->names));
	if (f->names == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *frame = uni_profile_get_frame(f->p, (uint32_t)i);
		size_t len;
		const char *s = uni_profile_str_len(f->p, frame->name, &len);

		f->names[i] = (struct name){ .s = s,
			.len = (uint32_t)len,
			.odd = is_odd(s, len),
			.inlined = frame->kind == UNI_FK_INLINED };
	}
	return 0;
}

/* One frame more on the path. */
static int enter_frame(struct folder *f, uint32_t node, uint32_t frame)
{
	const struct name *name = &f->names[frame];
	struct step step = { node, f->text.len };

	if (!name->odd && !name->inlined && uni_strbuf_reserve(&f->text, name->len + 1)) {
		memcpy(f->text.s + f->text.len, name->s, name->len);
		f->text.len += name->len + 1;
		f->text.s[f->text.len - 1] = ';';
		f->text.s[f->text.len] = '\0';
	} else {
		put_odd(&f->text, name->s, name->len);
		uni_strbuf_adds(&f->text, name->inlined ? "_[i];" : ";");
	}
	return uni_vec_push(&f->path, step) && !uni_strbuf_failed(&f->text) ? 0 : -UNI_ENOMEM;
}

static void leave_to(struct folder *f, size_t depth)
{
	if (depth >= f->path.nr)
		return;
	f->path.nr = depth;
	f->text.len = f->path.v[depth].len;
}

/* Writes the stack that ended at the end of the path. */
static void put_stack(struct folder *f, double self, double self2)
{
	size_t leaf, tie;

	if (self == 0.0 && self2 == 0.0)
		return;
	if (f->path.nr == 0) {
		uni_sink_puts(f->out, "[empty]");
	} else {
		/* Without the last ';', and with the number that may end the leaf tied on. */
		leaf = f->path.v[f->path.nr - 1].len;
		tie = number_blank(f->text.s + leaf, f->text.len - 1 - leaf);
		uni_sink_write(f->out, f->text.s, leaf + tie);
		if (leaf + tie < f->text.len - 1) {
			uni_sink_putc(f->out, '_');
			uni_sink_write(
				f->out, f->text.s + leaf + tie + 1, f->text.len - 2 - leaf - tie);
		}
	}
	put_value(f->out, self);
	if (f->two)
		put_value(f->out, self2);
	uni_sink_putc(f->out, '\n');
}

static int visit_node(struct folder *f, uint32_t node)
{
	const struct uni_node *n = uni_profile_node(f->p, node);

	/* In a large tree the sibling is far away in memory. It is needed after all nodes below
	 * this one. */
	if (n->next != UNI_NODE_NONE)
		__builtin_prefetch(uni_profile_node(f->p, n->next));
	if (node != UNI_NODE_ROOT && enter_frame(f, node, n->frame) != 0)
		return -UNI_ENOMEM;
	put_stack(f, n->self, f->two ? uni_profile_self2(f->p, node) : 0.0);
	return 0;
}

static int write_tree(struct folder *f)
{
	uint32_t next = UNI_NODE_ROOT;

	for (;;) {
		if (visit_node(f, next) != 0)
			return -UNI_ENOMEM;
		next = uni_profile_node(f->p, next)->child;
		/* Up until there is a sibling; the root's end is the end. */
		while (next == UNI_NODE_NONE) {
			if (f->path.nr == 0)
				return 0;
			next = uni_profile_node(f->p, f->path.v[f->path.nr - 1].node)->next;
			leave_to(f, f->path.nr - 1);
		}
	}
}

/* Leaves' names are rarely used, and far away in memory; the entry that points to one comes
 * first. */
static void prefetch_leaf(const struct folder *f, const struct uni_pile *pile, size_t i)
{
	const struct uni_pile_stack *s = pile->stacks.v + i, *t = s + AHEAD;

	if (i + 2 * AHEAD >= pile->stacks.nr)
		return;
	if (t->nr > t->same)
		__builtin_prefetch(&f->names[pile->frames.v[t->at + t->nr - t->same - 1]]);
	t = s + AHEAD / 2;
	if (t->nr > t->same)
		__builtin_prefetch(f->names[pile->frames.v[t->at + t->nr - t->same - 1]].s);
}

static int write_pile(struct folder *f, const struct uni_pile *pile)
{
	for (size_t i = 0; i < pile->stacks.nr;) {
		const struct uni_pile_stack *s = &pile->stacks.v[i];
		const uint32_t *frame = pile->frames.v + s->at;
		double self = s->value, self2 = s->value2;

		/* All that are the same. */
		for (i++; i < pile->stacks.nr && pile->stacks.v[i].nr == s->nr &&
			  pile->stacks.v[i].same == s->nr;
			i++) {
			self += pile->stacks.v[i].value;
			self2 += pile->stacks.v[i].value2;
		}
		prefetch_leaf(f, pile, i);
		leave_to(f, s->same);
		for (uint32_t d = s->same; d < s->nr; d++) {
			if (enter_frame(f, UNI_NODE_NONE, *frame++) != 0)
				return -UNI_ENOMEM;
		}
		put_stack(f, self, self2);
	}
	return 0;
}

static int write_folded(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_folded = {
	.name = "folded",
	.ext = "folded",
	.mime = "text/plain",
	.summary = "folded stacks: one \"root;caller;leaf COUNT\" a line",
	.lost = "times, vCPUs, threads",
	.needs = UNI_NEEDS_PROFILE | UNI_WALKS_TREE | UNI_TAKES_PILE,
	.write = write_folded,
};

static int write_folded(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct folder f = {
		.p = v->profile, .out = out, .two = uni_profile_has_second(v->profile)
	};
	const struct uni_pile *pile;
	int rc = uni_export_opts_parse(&uni_exporter_folded, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_folded, v, err);
	if (rc != 0)
		return rc;
	uni_strbuf_init(&f.text);
	pile = uni_profile_pile(f.p);
	rc = name_frames(&f);
	if (rc == 0)
		rc = pile != NULL ? write_pile(&f, pile) : write_tree(&f);
	free(f.names);
	uni_strbuf_deinit(&f.text);
	uni_vec_free(&f.path);
	return rc == 0 ? 0 : uni_err_set(err, UNI_ENOMEM, "out of memory writing folded stacks");
}
