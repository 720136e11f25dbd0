/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flame graph as one SVG file. It works from a disk in a browser and, without its script, as a
 * plain picture. Geometry, colours and titles are flamegraph.pl's, so that users can compare graphs
 * of both; fg:x and fg:w hold exact values, as inferno's do. The script gets everything it needs
 * from attributes: it never contains text of a guest.
 */
#include "format/svg/svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/err.h"
#include "base/text.h"
#include "format/opts.h"
#include "format/svg/order.h"
#include "format/xml.h"
#include "recording/recording.h"

extern const char uni_svg_js[], uni_svg_css[];

#define PALETTE_MAP "palette.map"

#define OPT(member, type_, value_, help_)                                             \
	{                                                                             \
		.name = #member, .value = (value_), .help = (help_), .type = (type_), \
		.offset = offsetof(struct uni_svg, member)                            \
	}

static const struct uni_export_optdef options[] = {
	OPT(title, UNI_OPT_STR, "TEXT",
		"title above the graph (default Flame Graph or Icicle Graph)"),
	OPT(subtitle, UNI_OPT_STR, "TEXT", "second line of the title (default none)"),
	OPT(width, UNI_OPT_POSITIVE, "PIXELS",
		"width before a browser stretches it (default 1200)"),
	OPT(height, UNI_OPT_POSITIVE, "PIXELS", "height of one row (default 16)"),
	OPT(minwidth, UNI_OPT_STR, "PIXELS or N%", "narrower frames are left out (default 0.1)"),
	OPT(fonttype, UNI_OPT_STR, "FONT", "font family (default Verdana)"),
	OPT(fontsize, UNI_OPT_POSITIVE, "PIXELS", "size of text (default 12)"),
	OPT(fontwidth, UNI_OPT_POSITIVE, "RATIO",
		"width of a character to its size (default 0.59)"),
	OPT(countname, UNI_OPT_STR, "TEXT", "what is counted (default the profile's unit)"),
	OPT(nametype, UNI_OPT_STR, "TEXT",
		"in front of a name below the graph (default Function:)"),
	OPT(colors, UNI_OPT_STR, "PALETTE",
		"hot mem io wakeup chain java js perl red green blue aqua yellow purple orange"),
	OPT(bgcolors, UNI_OPT_STR, "COLOR",
		"yellow, blue, green, grey or #rrggbb (default the palette's)"),
	OPT(hash, UNI_OPT_BOOL, NULL, "alike names in alike colours (default off)"),
	OPT(random, UNI_OPT_BOOL, NULL, "colours that do not depend on the name (default off)"),
	OPT(seed, UNI_OPT_U64, "NUMBER", "other colours for random (default 0)"),
	OPT(inverted, UNI_OPT_BOOL, NULL, "icicle graph: the root at the top (default off)"),
	OPT(reverse, UNI_OPT_BOOL, NULL,
		"merge from the leaves: who calls a function (default off)"),
	OPT(negate, UNI_OPT_BOOL, NULL, "swap red and blue of a differential (default off)"),
	OPT(diffcolors, UNI_OPT_STR, "redblue or orangeblue",
		"of a differential; orangeblue is safe for the colour-blind (default redblue)"),
	{ .name = "flamechart",
		.help = "stacks in the order in which they came, not sorted and merged (default "
			"off)",
		.type = UNI_OPT_BOOL,
		.offset = offsetof(struct uni_svg, flamechart),
		.ordered = true },
	{ .name = "cp",
		.value = "FILE",
		.help = "keep the colours of functions in FILE (without one: palette.map) from "
			"graph to graph",
		.type = UNI_OPT_MAYBE,
		.offset = offsetof(struct uni_svg, cp),
		.output = PALETTE_MAP },
	OPT(nameattr, UNI_OPT_STR, "FILE",
		"lines of FUNCTION and, behind tabs, title=, href=, target=, id=, class=, g_extra= "
		"and a_extra="),
	OPT(compat, UNI_OPT_BOOL, NULL,
		"order, percentages and search as flamegraph.pl has them, quirks and all (default "
		"off)"),
	OPT(total, UNI_OPT_POSITIVE, "NUMBER",
		"value of the whole width (default the profile's total)"),
	OPT(factor, UNI_OPT_POSITIVE, "NUMBER", "shown values are multiplied by it (default 1)"),
	OPT(notes, UNI_OPT_STR, "TEXT", "description that is not shown (default none)"),
	OPT(encoding, UNI_OPT_STR, "NAME",
		"of the XML (default utf-8, else all but ASCII is escaped)"),
	{ 0 },
};

static int write_svg(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_svg = {
	.name = "svg",
	.ext = "svg",
	.mime = "image/svg+xml",
	.summary = "flame graph: zoom, search and tooltips in any browser",
	.needs = UNI_NEEDS_PROFILE | UNI_WALKS_TREE,
	.options = options,
	.write = write_svg,
};

static int bad_option(struct uni_err *err, const char *name, const char *value, const char *wants)
{
	return uni_err_set(
		err, UNI_EUSAGE, "format svg: option %s wants %s, not \"%s\"", name, wants, value);
}

/* Allows plain ASCII words only, because the XML declaration does not escape them. The file is
 * ASCII or UTF-8. It is no valid text in encodings with wider units or other letters. */
static bool encoding_ok(const char *s)
{
	static const char *const others[] = { "utf-16", "utf16", "utf-32", "utf32", "utf-7", "ucs-",
		"ucs2", "ucs4", "iso-10646", "ebcdic", "ibm037", "ibm500", "cp037", "cp500" };

	for (size_t i = 0; i < uni_array_len(others); i++) {
		if (strncasecmp(s, others[i], strlen(others[i])) == 0)
			return false;
	}
	return s[0] != '\0' && strlen(s) < 40 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       strlen(s);
}

static int check_options(struct uni_svg *g, struct uni_err *err)
{
	const char *from, *to;

	g->colours.palette = uni_palette_by_name(g->colors);
	if (g->colours.palette == NULL)
		return bad_option(err, "colors", g->colors, uni_palette_names());
	/* Colours from options stay; flamegraph.pl has one look. */
	g->dark = g->bgcolors == NULL && !g->compat;
	if (g->bgcolors == NULL)
		g->bgcolors = uni_palette_background(g->colours.palette);
	if (!uni_background(g->bgcolors, &from, &to))
		return bad_option(
			err, "bgcolors", g->bgcolors, "yellow, blue, green, grey or #rrggbb");
	if (!encoding_ok(g->encoding))
		return bad_option(err, "encoding", g->encoding,
			"a name such as utf-8, or another that holds ASCII as it is");
	if (g->width < 100.0 || g->width > 100000.0)
		return uni_err_set(err, UNI_EUSAGE, "format svg: width must be 100 to 100000");
	if (g->height > 1000.0 || g->fontsize > 1000.0)
		return uni_err_set(
			err, UNI_EUSAGE, "format svg: height and fontsize must be 1000 at most");
	g->colours.hash = g->random ? UNI_COLOUR_RANDOM
			  : g->hash ? UNI_COLOUR_PREFIX
				    : UNI_COLOUR_SUM;
	g->colours.rand = uni_rand48_seed((uint32_t)g->seed);
	g->safe = strcmp(g->diffcolors, "orangeblue") == 0;
	if (!g->safe && strcmp(g->diffcolors, "redblue") != 0)
		return bad_option(err, "diffcolors", g->diffcolors, "redblue or orangeblue");
	if (g->cp != NULL && g->cp[0] == '\0')
		g->cp = PALETTE_MAP;
	if (g->flamechart && (g->reverse || g->compat))
		return uni_err_set(err, UNI_EUSAGE,
			"format svg: flamechart is in the order of time: neither reverse nor "
			"compat");
	g->ascii = strcasecmp(g->encoding, "utf-8") != 0;
	return 0;
}

/* "0.1" pixels or "2%" of the whole. */
static int parse_minwidth(struct uni_svg *g, struct uni_err *err)
{
	char number[32];
	size_t n = strlen(g->minwidth);
	bool percent = n != 0 && g->minwidth[n - 1] == '%';
	double v;

	n -= percent;
	if (n == 0 || n >= sizeof(number))
		return bad_option(err, "minwidth", g->minwidth, "pixels or a percentage");
	memcpy(number, g->minwidth, n);
	number[n] = '\0';
	if (!uni_parse_double(number, &v))
		return bad_option(err, "minwidth", g->minwidth, "pixels or a percentage");
	g->min_value =
		percent ? g->max * v / 100.0 : v / ((g->width - 2.0 * UNI_SVG_XPAD) / g->max);
	return 0;
}

static int scale_graph(struct uni_svg *g, struct uni_err *err)
{
	double sum = g->diff ? uni_profile_total2(g->p, UNI_NODE_ROOT) : uni_profile_total(g->p);
	int rc;

	if (sum <= 0.0)
		return uni_err_set(err, UNI_EINVAL, "there is nothing to draw: %s",
			g->diff ? "the second column is 0 throughout" : "no samples");
	if (g->total > 0.0 && g->total < sum)
		return uni_err_set(err, UNI_EUSAGE,
			"format svg: total %.0f is less than the profile's, which is %.0f",
			g->total, sum);
	g->max = g->total > 0.0 ? g->total : sum;
	rc = parse_minwidth(g, err);
	if (rc == 0 && uni_svg_measure(g) != 0)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory drawing the flame graph");
	if (rc != 0)
		return rc;
	g->top_pad = g->fontsize * 3.0 + (g->subtitle != NULL ? g->fontsize * 2.0 : 0.0);
	g->bottom_pad = g->fontsize * 2.0 + 10.0;
	g->image_height = ((double)g->max_depth + 1.0) * g->height + g->top_pad + g->bottom_pad;
	return 0;
}

static void put_attr(struct uni_svg *g, const char *name, const char *value)
{
	uni_sink_printf(g->out, " %s=\"", name);
	uni_xml_text(g->out, value, strlen(value), g->ascii);
	uni_sink_putc(g->out, '"');
}

/* For readers who prefer a dark page. Frames keep their colours. */
static const char dark_css[] =
	"@media (prefers-color-scheme:dark){svg:root{background:#14171c}\n"
	"#background stop{stop-color:#14171c}text{fill:#e6e9ee}\n"
	"#subtitle,#unzoom,#search,#ignorecase{fill:#9aa5b3}\n"
	"#unzoom:hover,#search:hover,#ignorecase:hover{fill:#fff}\n"
	"#ignorecase.on,#search.on{fill:#ff8af0}\n"
	"#frames text{fill:#000}#frames g:hover rect{stroke:#fff}\n"
	"#frames:focus-visible .cur rect,#frames .cur.key rect{stroke:#62a8ff}}\n";

static void put_header(struct uni_svg *g)
{
	const char *from = NULL, *to = NULL;

	(void)uni_background(g->bgcolors, &from, &to);
	uni_sink_printf(g->out, "<?xml version=\"1.0\" encoding=\"%s\"?>\n", g->encoding);
	uni_sink_printf(g->out,
		"<svg version=\"1.1\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
		"xmlns=\"http://www.w3.org/2000/svg\" "
		"xmlns:fg=\"http://github.com/jonhoo/inferno\" font-size=\"%g\"",
		g->width, g->image_height, g->width, g->image_height, g->fontsize);
	put_attr(g, "font-family", g->fonttype);
	uni_sink_puts(g->out, ">\n");
	if (g->notes != NULL) {
		uni_sink_puts(g->out, "<desc>");
		uni_xml_text(g->out, g->notes, strlen(g->notes), g->ascii);
		uni_sink_puts(g->out, "</desc>\n");
	}
	uni_sink_printf(g->out,
		"<defs><linearGradient id=\"background\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"1\">"
		"<stop stop-color=\"%s\" offset=\"5%%\"/><stop stop-color=\"%s\" "
		"offset=\"95%%\"/></linearGradient></defs>\n",
		from, to);
	/* A browser window that is taller than the graph goes on in the same colour. */
	uni_sink_printf(g->out, "<style>\nsvg:root{background:%s}\n", to);
	uni_sink_puts(g->out, uni_svg_css);
	if (g->dark)
		uni_sink_puts(g->out, dark_css);
	uni_sink_puts(g->out, "</style>\n<rect width=\"100%\" height=\"100%\" "
			      "fill=\"url(#background)\"/>\n");
}

static void put_line(struct uni_svg *g, const char *id, const char *where, double y, double size,
	const char *text)
{
	uni_sink_printf(g->out, "<text id=\"%s\" %s y=\"%g\"", id, where, y);
	if (size > 0.0)
		uni_sink_printf(g->out, " font-size=\"%g\"", size);
	uni_sink_putc(g->out, '>');
	uni_xml_text(g->out, text, strlen(text), g->ascii);
	uni_sink_puts(g->out, "</text>\n");
}

#define LINE_SIZE_MIN 6.0

/* A long line, such as the names of two sides, is made smaller: its ends would lie outside. */
static void put_heading(struct uni_svg *g, const char *id, double y, double size, const char *text)
{
	double wide = (double)strlen(text) * uni_max(size, g->fontsize) * g->fontwidth;
	double room = g->width - 2.0 * UNI_SVG_XPAD;

	if (!g->compat && wide > room)
		size = uni_max(uni_max(size, g->fontsize) * room / wide, LINE_SIZE_MIN);
	put_line(g, id, "x=\"50%\"", y, size, text);
}

/* Controls stay hidden until the script, if it runs at all, shows them. */
static void put_chrome(struct uni_svg *g)
{
	double foot = g->image_height - g->bottom_pad / 2.0;

	put_heading(g, "title", g->fontsize * 2.0, g->fontsize + 5.0, g->title);
	if (g->subtitle != NULL)
		put_heading(g, "subtitle", g->fontsize * 4.0, 0.0, g->subtitle);
	put_line(g, "details", "x=\"10\"", foot, 0.0, " ");
	put_line(g, "matched", "x=\"100%\" dx=\"-10\"", foot, 0.0, " ");
	put_line(g, "unzoom", "x=\"10\" class=\"hide\"", g->fontsize * 2.0, 0.0, "Reset Zoom");
	put_line(g, "search", "x=\"100%\" dx=\"-8em\" class=\"hide\"", g->fontsize * 2.0, 0.0,
		"Search");
	put_line(g, "ignorecase", "x=\"100%\" dx=\"-10\" class=\"hide\"", g->fontsize * 2.0, 0.0,
		"Ignore case");
}

static int put_document(struct uni_svg *g)
{
	int rc;

	put_header(g);
	put_chrome(g);
	uni_sink_printf(g->out, "<svg id=\"frames\" x=\"%g\" width=\"%g\" fg:row=\"%g\"",
		UNI_SVG_XPAD, g->width - 2.0 * UNI_SVG_XPAD, g->height);
	put_attr(g, "fg:nametype", g->nametype);
	if (g->compat)
		uni_sink_puts(g->out, " fg:compat=\"1\"");
	uni_sink_puts(g->out, ">\n");
	rc = uni_svg_draw_frames(g);
	uni_sink_puts(g->out, "</svg>\n<script><![CDATA[\n");
	uni_sink_puts(g->out, uni_svg_js);
	uni_sink_puts(g->out, "]]></script>\n</svg>\n");
	return rc;
}

/* The tree as it is drawn: turned over, or in another order; *ret is owned, NULL: v's own. */
static int shape_tree(const struct uni_svg *g, const struct uni_view *v, struct uni_profile **ret,
	struct uni_err *err)
{
	struct uni_profile *reversed = NULL;
	int rc = g->reverse ? uni_profile_reversed(v->profile, &reversed) : 0;

	*ret = reversed;
	if (rc == 0 && (g->flamechart || g->compat)) {
		rc = uni_svg_ordered(reversed != NULL ? reversed : v->profile, g->compat, ret);
		uni_profile_destroy(reversed);
	}
	if (rc == -UNI_ENOTSUP)
		return uni_err_set(err, UNI_ENOTSUP,
			"format svg: flamechart needs the order in which stacks came, which a "
			"trace "
			"or a comparison has not");
	return rc == 0 ? 0 : uni_err_set(err, UNI_ENOMEM, "out of memory shaping the graph");
}

/* Samples of a session: what their shares are shares of. */
static void say_whole(struct uni_svg *g, const struct uni_view *v)
{
	if (g->subtitle == NULL && !g->compat && v->samples != NULL && v->filter != NULL &&
		!uni_recording_meta(v->samples)->aggregate &&
		strcmp(uni_profile_unit(v->profile), "samples") == 0)
		g->subtitle = uni_filter_whole(v->filter);
}

static int draw_graph(struct uni_svg *g, const struct uni_view *v, struct uni_err *err)
{
	int rc = 0;

	g->diff = uni_profile_has_second(g->p);
	if (g->title == NULL)
		g->title = v->title != NULL ? v->title
			   : g->flamechart  ? "Flame Chart"
			   : g->inverted    ? "Icicle Graph"
					    : "Flame Graph";
	g->sure = g->diff && g->p == v->profile ? v->sure : NULL;
	if (g->subtitle == NULL)
		g->subtitle = v->subtitle;
	say_whole(g, v);
	if (g->countname == NULL)
		g->countname = uni_profile_unit(g->p);
	if (g->cp != NULL)
		rc = uni_palette_map_open(g->cp, &g->map, err);
	if (rc == 0 && g->nameattr != NULL)
		rc = uni_name_attrs_open(g->nameattr, &g->attrs, err);
	if (rc == 0 && g->attrs != NULL && uni_name_attrs_refused(g->attrs) != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost,
			"%" PRIu64 " links and extras of %s would run a script and are left out\n",
			uni_name_attrs_refused(g->attrs), g->nameattr);
	if (rc == 0)
		rc = scale_graph(g, err);
	if (rc == 0 && put_document(g) != 0)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory drawing the flame graph");
	if (rc == 0 && g->map != NULL)
		rc = uni_palette_map_save(g->map, g->cp, err);
	return rc;
}

static int write_svg(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_svg g = { .fonttype = "Verdana, sans-serif",
		.nametype = "Function:",
		.colors = "hot",
		.diffcolors = "redblue",
		.minwidth = "0.1",
		.encoding = "utf-8",
		.width = 1200.0,
		.height = 16.0,
		.fontsize = 12.0,
		.fontwidth = 0.59,
		.factor = 1.0,
		.out = out };
	struct uni_profile *shaped = NULL;
	int rc = uni_export_opts_parse(&uni_exporter_svg, opts, nr_opts, &g, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_svg, v, err);
	if (rc == 0)
		rc = check_options(&g, err);
	if (rc == 0)
		rc = shape_tree(&g, v, &shaped, err);
	if (rc != 0)
		return rc;
	g.p = shaped != NULL ? shaped : v->profile;
	rc = draw_graph(&g, v, err);
	uni_palette_map_close(g.map);
	uni_name_attrs_close(g.attrs);
	uni_profile_destroy(shaped);
	return rc;
}
