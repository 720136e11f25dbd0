/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "format/svg/svg.h"
#include "format/xml.h"
#include "profile/text.h"

struct place {
	uint32_t node;
	size_t depth;
	double x; /* in values, not pixels */
};

typedef void visit_fn(struct uni_svg *g, const struct place *at);

static double node_self(const struct uni_svg *g, uint32_t node)
{
	return g->diff ? uni_profile_self2(g->p, node) : uni_profile_node(g->p, node)->self;
}

static double node_total(const struct uni_svg *g, uint32_t node)
{
	return g->diff ? uni_profile_total2(g->p, node) : uni_profile_node(g->p, node)->total;
}

/* A flame chart's nameless frames are their callers' own time. */
static bool is_gap(const struct uni_profile *p, uint32_t node)
{
	return uni_profile_node_name(p, node)[0] == '\0';
}

/* Calls visit for every node that is wide enough, callers first, left to right. */
static int visit_all(struct uni_svg *g, visit_fn *visit)
{
	UNI_VEC(struct place) stack = { 0 };
	struct place at = { .node = UNI_NODE_ROOT };
	bool up = false;
	int rc = 0;

	while (at.node != UNI_NODE_NONE || stack.nr != 0) {
		if (up) {
			at = stack.v[--stack.nr];
		} else if (node_total(g, at.node) >= g->min_value || at.node == UNI_NODE_ROOT) {
			struct place child = { .node = uni_profile_node(g->p, at.node)->child,
				.depth = at.depth + 1,
				.x = at.x + node_self(g, at.node) };

			if (!is_gap(g->p, at.node))
				visit(g, &at);
			if (child.node != UNI_NODE_NONE) {
				if (!uni_vec_push(&stack, at)) {
					rc = -UNI_ENOMEM;
					break;
				}
				at = child;
				continue;
			}
		}
		at.x += node_total(g, at.node);
		at.node = uni_profile_node(g->p, at.node)->next;
		up = at.node == UNI_NODE_NONE;
	}
	uni_vec_free(&stack);
	return rc;
}

static void measure_depth(struct uni_svg *g, const struct place *at)
{
	if (at->depth > g->max_depth)
		g->max_depth = at->depth;
}

/* Deltas belong to the nodes where stacks end, drawn or not. */
static double node_delta(const struct uni_svg *g, uint32_t node)
{
	return uni_profile_self2(g->p, node) - uni_profile_node(g->p, node)->self;
}

int uni_svg_measure(struct uni_svg *g)
{
	g->max_depth = 0;
	g->max_delta = 1.0;
	for (size_t i = 0; g->diff && i < uni_profile_nr_nodes(g->p); i++)
		g->max_delta = fmax(g->max_delta, fabs(node_delta(g, (uint32_t)i)));
	return visit_all(g, measure_depth);
}

/* "_[k]" and its kin choose the colour and are not shown. */
static size_t shown_len(const char *name)
{
	size_t n = strlen(name);

	if (n >= 4 && name[n - 4] == '_' && name[n - 3] == '[' && name[n - 1] == ']' &&
		strchr("kwij", name[n - 2]) != NULL)
		return n - 4;
	return n;
}

static int8_t node_sure(const struct uni_svg *g, uint32_t node)
{
	return node == UNI_NODE_ROOT ? 0 : g->sure[uni_profile_node(g->p, node)->frame];
}

/* Black on dark reds is hard to read. Relative luminance roughly as WCAG 2 has it. */
static bool is_dark(struct uni_rgb c)
{
	double r = c.r / 255.0, g = c.g / 255.0, b = c.b / 255.0;

	return 0.2126 * r * r + 0.7152 * g * g + 0.0722 * b * b < 0.18;
}

/* flamegraph.pl rounds a value before it takes the percentage of it. */
static double percent_of_max(const struct uni_svg *g, double value)
{
	if (g->compat)
		return 100.0 * nearbyint(value * g->factor) / (g->max * g->factor);
	return 100.0 * value / g->max;
}

static void put_attr(struct uni_svg *g, const char *name, const char *value)
{
	uni_sink_printf(g->out, " %s=\"", name);
	uni_xml_text(g->out, value, strlen(value), g->ascii);
	uni_sink_putc(g->out, '"');
}

/* Attributes that a user's file has as they are; but markup they are not. */
static void put_extra(struct uni_svg *g, const char *function, const char *name)
{
	const char *extra = uni_name_attr(g->attrs, function, name);

	if (extra == NULL || strpbrk(extra, "<>&") != NULL)
		return;
	uni_sink_putc(g->out, ' ');
	uni_sink_puts(g->out, extra);
}

/* The frame's element; what ends it. */
static const char *open_group(struct uni_svg *g, const char *name, struct uni_rgb fill)
{
	const char *class = uni_name_attr(g->attrs, name, "class");
	const char *id = uni_name_attr(g->attrs, name, "id");
	const char *href = uni_name_attr(g->attrs, name, "href");
	const char *target = uni_name_attr(g->attrs, name, "target");

	uni_sink_puts(g->out, "<g");
	if (class != NULL || is_dark(fill)) {
		uni_sink_printf(g->out, " class=\"%s", is_dark(fill) ? "dark" : "");
		if (class != NULL) {
			uni_sink_puts(g->out, is_dark(fill) ? " " : "");
			uni_xml_text(g->out, class, strlen(class), g->ascii);
		}
		uni_sink_putc(g->out, '"');
	}
	if (id != NULL)
		put_attr(g, "id", id);
	put_extra(g, name, "g_extra");
	uni_sink_putc(g->out, '>');
	if (href == NULL)
		return "</g>\n";
	uni_sink_puts(g->out, "<a");
	put_attr(g, "href", href);
	put_attr(g, "target", target != NULL ? target : "_top");
	put_extra(g, name, "a_extra");
	uni_sink_putc(g->out, '>');
	return "</a></g>\n";
}

static void put_title(struct uni_svg *g, const struct place *at, double value)
{
	const char *name = uni_profile_node_name(g->p, at->node);
	const char *title = uni_name_attr(g->attrs, name, "title");
	char number[UNI_NUMBER_MAX];

	uni_sink_puts(g->out, "<title>");
	if (title != NULL) {
		uni_xml_text(g->out, title, strlen(title), g->ascii);
		uni_sink_puts(g->out, "</title>");
		return;
	}
	uni_text_number(number, value * g->factor);
	uni_xml_text(g->out, name, shown_len(name), g->ascii);
	uni_sink_printf(g->out, " (%s ", number);
	uni_xml_text(g->out, g->countname, strlen(g->countname), g->ascii);
	if (at->node == UNI_NODE_ROOT) {
		uni_sink_puts(g->out, ", 100%");
	} else {
		uni_sink_printf(g->out, ", %.2f%%", percent_of_max(g, value));
		if (g->sure != NULL) {
			double before = uni_profile_node(g->p, at->node)->total;

			uni_sink_printf(g->out, "; before %.2f%%; %s", percent_of_max(g, before),
				node_sure(g, at->node) != 0 ? "the function changed"
							    : "no change is sure");
		} else if (g->diff) {
			double d = node_delta(g, at->node) * (g->negate ? -1.0 : 1.0);

			uni_sink_printf(g->out, "; %s%.2f%%", d > 0.0 ? "+" : "",
				d == 0.0 ? 0.0 : 100.0 * d / g->max);
		}
	}
	uni_sink_puts(g->out, ")");
	if (uni_profile_mark(g->p, uni_profile_node(g->p, at->node)->frame)[0] != '\0')
		uni_sink_puts(g->out, UNI_UNSURE_MARK ": " UNI_UNSURE_MEANS);
	uni_sink_puts(g->out, "</title>");
}

/* Trailing zeros cost a tenth of the file. */
static void put_number(struct uni_sink *out, double v, int digits)
{
	char buf[64];
	int n = snprintf(buf, sizeof(buf), "%.*f", digits, v);

	if (n < 0 || n >= (int)sizeof(buf)) {
		uni_sink_puts(out, "0");
		return;
	}
	if (memchr(buf, '.', (size_t)n) != NULL) {
		while (buf[n - 1] == '0')
			n--;
		if (buf[n - 1] == '.')
			n--;
	}
	uni_sink_write(out, buf, (size_t)n);
}

static bool is_inlined(const struct uni_profile *p, uint32_t node)
{
	uint32_t frame = uni_profile_node(p, node)->frame;

	return frame != UNI_NODE_NONE && uni_profile_get_frame(p, frame)->kind == UNI_FK_INLINED;
}

/* Separators, which have colours of their own. */
static bool is_grey(const char *name)
{
	return strcmp(name, "-") == 0 || strcmp(name, "--") == 0;
}

/* Only functions that are known to have changed, where their node moved in the same direction: the
 * more, the stronger. */
static struct uni_rgb sure_colour(const struct uni_svg *g, uint32_t node)
{
	double d = uni_profile_total2(g->p, node) - uni_profile_node(g->p, node)->total;

	if (d * node_sure(g, node) <= 0)
		d = 0;
	return uni_colour_delta(fmax(-g->max_delta, fmin(d, g->max_delta)), g->max_delta, true);
}

static struct uni_rgb frame_colour(struct uni_svg *g, uint32_t node)
{
	const char *name = node == UNI_NODE_ROOT ? "" : uni_profile_node_name(g->p, node);

	struct uni_rgb c;

	if (g->sure != NULL)
		return sure_colour(g, node);
	if (g->diff && !is_grey(name))
		return uni_colour_delta(
			node_delta(g, node) * (g->negate ? -1.0 : 1.0), g->max_delta, g->safe);
	if (is_inlined(g->p, node))
		c = uni_colour_inlined(&g->colours, name);
	else
		c = uni_colour_name(&g->colours, name);
	if (g->map == NULL || node == UNI_NODE_ROOT || is_grey(name))
		return c;
	return uni_palette_map_colour(g->map, name, c);
}

/* As many characters as fit, the last two of a cut name being dots; nothing below three. */
static void put_label(struct uni_svg *g, const struct place *at, double x, double y, double width)
{
	const char *name = uni_profile_node_name(g->p, at->node), *s = name, *cut = name;
	const char *end = name + shown_len(name);
	double fit = floor(width / (g->fontsize * g->fontwidth));
	size_t chars = fit > 4096.0 ? 4096 : (size_t)fit, n = 0;

	if (chars < 3 || s == end)
		return;
	for (; s < end && n < chars; n++) {
		(void)uni_utf8_next(&s, end);
		if (n + 3 <= chars)
			cut = s;
	}
	uni_sink_puts(g->out, "<text x=\"");
	put_number(g->out, x, 4);
	uni_sink_puts(g->out, "%\" dx=\"3\" y=\"");
	put_number(g->out, y, 1);
	uni_sink_puts(g->out, "\">");
	uni_xml_text(g->out, name, (size_t)((s < end ? cut : end) - name), g->ascii);
	uni_sink_puts(g->out, s < end ? "..</text>" : "</text>");
}

static void draw_node(struct uni_svg *g, const struct place *at)
{
	double value = at->node == UNI_NODE_ROOT ? g->max : node_total(g, at->node);
	double x = 100.0 * at->x / g->max, w = 100.0 * value / g->max, y;
	double row = g->inverted ? (double)at->depth : (double)(g->max_depth - at->depth);
	struct uni_rgb c = frame_colour(g, at->node);
	const char *end = open_group(g, uni_profile_node_name(g->p, at->node), c);

	y = g->top_pad + row * g->height + (g->inverted ? 0.0 : UNI_SVG_FRAMEPAD);
	put_title(g, at, value);
	uni_sink_puts(g->out, "<rect x=\"");
	put_number(g->out, x, 4);
	uni_sink_puts(g->out, "%\" y=\"");
	put_number(g->out, y, 1);
	uni_sink_puts(g->out, "\" width=\"");
	put_number(g->out, w, 4);
	uni_sink_puts(g->out, "%\" height=\"");
	put_number(g->out, g->height - UNI_SVG_FRAMEPAD, 1);
	uni_sink_printf(g->out, "\" fill=\"rgb(%u,%u,%u)\" fg:x=\"", c.r, c.g, c.b);
	put_number(g->out, at->x, 4);
	uni_sink_puts(g->out, "\" fg:w=\"");
	put_number(g->out, value, 4);
	uni_sink_puts(g->out, "\"/>");
	put_label(g, at, x, 3.0 + y + (g->height - UNI_SVG_FRAMEPAD) / 2.0,
		w / 100.0 * (g->width - 2.0 * UNI_SVG_XPAD));
	uni_sink_puts(g->out, end);
}

int uni_svg_draw_frames(struct uni_svg *g)
{
	return visit_all(g, draw_node);
}
