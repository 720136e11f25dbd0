/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks, "root;caller;leaf 42" a line, in the order of the tree. Other readers split at
 * ';' and take one or two numbers off the end, so in names ';' becomes ':' and a number that ends
 * a leaf is tied on with '_' ("lambda 3" would read as a differential otherwise). Inlined functions
 * end in "_[i]", as other makers of folded stacks mark them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "export/opts.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Where a blank stands before a number at the end; len if nowhere. */
static size_t number_blank(const char *s, size_t len)
{
	size_t i = len;

	while (i != 0 && (is_digit(s[i - 1]) || s[i - 1] == '.'))
		i--;
	if (i != len && i != 0 && is_digit(s[i]) && (s[i - 1] == ' ' || s[i - 1] == '\t'))
		return i - 1;
	return len;
}

static bool is_inlined(const struct uni_profile *p, uint32_t node)
{
	uint32_t frame = uni_profile_node(p, node)->frame;

	return frame != UNI_NODE_NONE && uni_profile_get_frame(p, frame)->kind == UNI_FK_INLINED;
}

static void put_name(struct uni_sink *out, const char *s, bool leaf)
{
	size_t len = strlen(s), tie = leaf ? number_blank(s, len) : len;

	if (len == 0)
		uni_sink_putc(out, '-');
	for (size_t i = 0; i < len; i++) {
		if (i == tie)
			uni_sink_putc(out, '_');
		else if (s[i] == ';')
			uni_sink_putc(out, ':');
		else if (s[i] == '\n' || s[i] == '\r')
			uni_sink_putc(out, ' ');
		else
			uni_sink_putc(out, s[i]);
	}
}

static void put_value(struct uni_sink *out, double v)
{
	char buf[64];
	int n;

	if (v == floor(v) && v < 9007199254740992.0) {
		uni_sink_printf(out, " %.0f", v);
		return;
	}
	n = snprintf(buf, sizeof(buf), "%.6f", v);
	while (n > 1 && n < (int)sizeof(buf) && buf[n - 1] == '0')
		buf[--n] = '\0';
	uni_sink_printf(out, " %s", buf);
}

struct folder {
	const struct uni_profile *p;
	struct uni_sink *out;
	UNI_VEC(uint32_t) path; /* nodes below the root, down to the current one */
};

static void put_stack(struct folder *f)
{
	uint32_t node = f->path.nr != 0 ? f->path.v[f->path.nr - 1] : UNI_NODE_ROOT;
	double self = uni_profile_node(f->p, node)->self, self2 = uni_profile_self2(f->p, node);

	if (self == 0.0 && self2 == 0.0)
		return;
	if (f->path.nr == 0)
		uni_sink_puts(f->out, "[empty]");
	for (size_t i = 0; i < f->path.nr; i++) {
		if (i != 0)
			uni_sink_putc(f->out, ';');
		put_name(f->out, uni_profile_node_name(f->p, f->path.v[i]), i + 1 == f->path.nr);
		if (is_inlined(f->p, f->path.v[i]))
			uni_sink_puts(f->out, "_[i]");
	}
	put_value(f->out, self);
	if (uni_profile_has_second(f->p))
		put_value(f->out, self2);
	uni_sink_putc(f->out, '\n');
}

static int write_tree(struct folder *f)
{
	const struct uni_node *n = uni_profile_node(f->p, UNI_NODE_ROOT);

	put_stack(f);
	for (;;) {
		uint32_t next = n->child;

		/* Up until there is a sibling; the root's end is the end. */
		while (next == UNI_NODE_NONE) {
			if (f->path.nr == 0)
				return 0;
			next = uni_profile_node(f->p, f->path.v[--f->path.nr])->next;
		}
		if (!uni_vec_push(&f->path, next))
			return -UNI_ENOMEM;
		put_stack(f);
		n = uni_profile_node(f->p, next);
	}
}

static int write_folded(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_folded = {
	.name = "folded",
	.ext = "folded",
	.mime = "text/plain",
	.summary = "folded stacks: one \"root;caller;leaf COUNT\" a line",
	.lost = "times, vCPUs, threads",
	.needs = UNI_NEEDS_PROFILE,
	.write = write_folded,
};

static int write_folded(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct folder f = { .p = v->profile, .out = out };
	int rc = uni_export_opts_parse(&uni_exporter_folded, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_folded, v, err);
	if (rc != 0)
		return rc;
	rc = write_tree(&f);
	uni_vec_free(&f.path);
	return rc == 0 ? 0 : uni_err_set(err, UNI_ENOMEM, "out of memory writing folded stacks");
}
