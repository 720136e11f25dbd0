/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of `perf script`: a line with the thread's name, numbers, time, period and event, then
 * the frames, then a blank line. Each frame is a line ("ADDRESS SYMBOL+0xOFFSET (IMAGE)"), leaf
 * first. As in FlameGraph's script, the thread's name is the root, and only samples of the first
 * event count. A sample weighs its period, if it has one. Without chains, the frame stands in the
 * line of its sample.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "format/stack.h"

#define SNIFF_LINES   64
#define EVENT_MAX     64
#define COMM_MAX      256
#define SECOND_DIGITS 10
#define NO_TIME	      UINT64_MAX
#define SPLIT_TRIES   16 /* colons of a line behind which its frame may begin */

struct header {
	struct uni_line comm, event;
	uint64_t t_ns; /* NO_TIME: it has none */
	double period;
	bool has_period;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* The last word of the line is taken off it. */
static struct uni_line take_word(struct uni_line *l)
{
	struct uni_line word;
	size_t end = l->len, start;

	while (end != 0 && is_blank(l->s[end - 1]))
		end--;
	start = end;
	while (start != 0 && !is_blank(l->s[start - 1]))
		start--;
	word = (struct uni_line){ l->s + start, end - start };
	l->len = start;
	return word;
}

static size_t count_digits(struct uni_line l, size_t at)
{
	size_t n = 0;

	while (at + n < l.len && is_digit(l.s[at + n]))
		n++;
	return n;
}

/* A thread's number; perf has -1 if it does not know it. */
static size_t thread_number_len(struct uni_line l, size_t at)
{
	if (at + 1 < l.len && l.s[at] == '-' && l.s[at + 1] == '1')
		return 2;
	return count_digits(l, at);
}

/* "1000/1000" or "1000", the name before it, which may have blanks. */
static bool find_comm(struct uni_line l, struct uni_line *ret)
{
	for (size_t i = 1; i < l.len; i++) {
		size_t n, end;

		if (!is_blank(l.s[i - 1]) || (n = thread_number_len(l, i)) == 0)
			continue;
		end = i + n;
		if (end < l.len && l.s[end] == '/')
			end += 1 + thread_number_len(l, end + 1);
		if (end < l.len && !is_blank(l.s[end]))
			continue;
		*ret = (struct uni_line){ l.s, i };
		while (ret->len != 0 && is_blank(ret->s[ret->len - 1]))
			ret->len--;
		return ret->len != 0;
	}
	return false;
}

static bool is_time(struct uni_line l)
{
	size_t n = count_digits(l, 0);

	return n != 0 && n < l.len && l.s[n] == '.' && n + 1 + count_digits(l, n + 1) == l.len;
}

/* "12345.678901:", with or without the colon: seconds, with as many digits as perf printed. */
static uint64_t take_time(struct uni_line l)
{
	uint64_t s = 0, ns = 0, scale = UNI_NSEC_PER_SEC;
	size_t n = count_digits(l, 0);

	if (l.len != 0 && l.s[l.len - 1] == ':')
		l.len--;
	if (!is_time(l) || n > SECOND_DIGITS)
		return NO_TIME;
	for (size_t i = 0; i < n; i++)
		s = s * 10 + (uint64_t)(l.s[i] - '0');
	for (size_t i = n + 1; i < l.len && scale > 1; i++) {
		scale /= 10;
		ns += (uint64_t)(l.s[i] - '0') * scale;
	}
	return s * UNI_NSEC_PER_SEC + ns;
}

static bool ends_in_colon(struct uni_line l)
{
	return l.len != 0 && l.s[l.len - 1] == ':';
}

/* "NAME PID/TID [CPU] TIME: PERIOD EVENT:", the last two as perf was asked for them */
static bool parse_header(struct uni_line l, struct header *ret)
{
	struct header h = { .period = 1.0, .t_ns = NO_TIME };
	struct uni_line word, rest = l;

	if (l.len == 0 || is_blank(l.s[0]) || l.s[0] == '#' || !find_comm(l, &h.comm))
		return false;
	h.event = take_word(&rest);
	if (h.event.len < 2 || h.event.s[h.event.len - 1] != ':')
		return false;
	h.event.len--;
	word = take_word(&rest);
	if (is_time(h.event) && !ends_in_colon(word)) { /* -F without an event */
		h.t_ns = take_time(h.event);
		h.event.len = 0;
		*ret = h;
		return true;
	}
	if (word.len != 0 && !ends_in_colon(word)) {
		h.has_period = uni_parse_count(word.s, word.len, &h.period);
		if (!h.has_period)
			return false;
		word = take_word(&rest);
	}
	if (word.len < 2 || word.s[word.len - 1] != ':' || !is_digit(word.s[0])) {
		/* Without an event the last word is the time. */
		if (h.has_period || !is_digit(h.event.s[0]))
			return false;
		word = h.event;
		h.event.len = 0;
	}
	h.t_ns = take_time(word);
	*ret = h;
	return true;
}

struct frame {
	struct uni_line symbol, image;
};

/* Position of the '(' at which the image at the end of the line begins; 0: there is none. The image
 * may itself end in " (deleted)". A function may have "(int)", without a blank before it. */
static size_t find_image(struct uni_line l, size_t from)
{
	size_t depth = 0;

	for (size_t i = l.len; l.s[l.len - 1] == ')' && i-- > from;) {
		depth += l.s[i] == ')';
		if (l.s[i] == '(' && --depth == 0)
			return is_blank(l.s[i - 1]) ? i : 0;
	}
	/* An unclosed one is part of the name. */
	for (size_t i = l.len; l.s[l.len - 1] == ')' && i-- > from;) {
		if (l.s[i] == '(' && is_blank(l.s[i - 1]))
			return i;
	}
	return 0;
}

static void cut_deleted(struct uni_line *image)
{
	static const char deleted[] = " (deleted)";
	const size_t n = sizeof(deleted) - 1;

	if (image->len > n && memcmp(image->s + image->len - n, deleted, n) == 0)
		image->len -= n;
}

/* "  ffffffff8106d200 cons_blk+0x49 (/boot/app)", without the part before the symbol; perf script
 * without -F dso has no image. */
static bool parse_frame(struct uni_line l, struct frame *ret)
{
	size_t at = 0, end, open, blank;

	while (at < l.len && is_blank(l.s[at]))
		at++;
	end = at;
	while (end < l.len && is_hex(l.s[end]))
		end++;
	if (at == 0 || end == at || end == l.len || !is_blank(l.s[end]))
		return false;
	blank = end + 1;
	while (end < l.len && is_blank(l.s[end]))
		end++;
	while (l.len > end && is_blank(l.s[l.len - 1]))
		l.len--;
	if (end == l.len)
		return false;
	open = find_image(l, blank);
	if (open == 0) {
		*ret = (struct frame){ .symbol = { l.s + end, l.len - end } };
		ret->image = (struct uni_line){ l.s + l.len, 0 };
		return true;
	}
	if (open <= blank + 1)
		return false;
	if (open <= end) /* a name of nothing but blanks: one is not its */
		end = blank;
	ret->symbol = (struct uni_line){ l.s + end, open - 1 - end };
	ret->image = (struct uni_line){ l.s + open + 1, l.len - open - 2 };
	cut_deleted(&ret->image);
	return true;
}

static void cut_offset(struct uni_line *symbol)
{
	size_t n = symbol->len;

	while (n != 0 && is_hex(symbol->s[n - 1]))
		n--;
	if (n != symbol->len && n > 3 && memcmp(symbol->s + n - 3, "+0x", 3) == 0)
		symbol->len = n - 3;
}

/* perf script without chains: the frame stands behind the header. The two, or false. */
static bool split_line(struct uni_line l, struct header *head_ret, struct uni_line *frame_ret)
{
	unsigned tries = 0;
	struct frame f;

	while (l.len != 0 && is_blank(l.s[0]))
		l = (struct uni_line){ l.s + 1, l.len - 1 };
	for (size_t i = l.len; i-- > 1 && tries < SPLIT_TRIES;) {
		if (l.s[i - 1] != ':' || !is_blank(l.s[i]))
			continue;
		tries++;
		*frame_ret = (struct uni_line){ l.s + i, l.len - i };
		if (parse_frame(*frame_ret, &f) &&
			parse_header((struct uni_line){ l.s, i }, head_ret))
			return true;
	}
	return false;
}

static int sniff_perf(const char *data, size_t size)
{
	size_t pos = 0, lines = 0;
	bool header = false;
	struct header h;
	struct frame f;
	struct uni_line l;

	while (lines++ < SNIFF_LINES && uni_line_next(data, size, &pos, &l)) {
		struct uni_line behind;

		if ((header && parse_frame(l, &f)) || split_line(l, &h, &behind))
			return 90;
		header = parse_header(l, &h) || (header && l.len != 0 && is_blank(l.s[0]));
	}
	return 0;
}

struct reader {
	struct uni_stack stack;
	struct uni_import_stats stats;
	char event[EVENT_MAX]; /* the first one */
	const struct uni_build_watch *watch;
	uint64_t line, t_ns;
	double period;
	uint32_t comm;
	bool any, open, skip, cut, periods;
};

/* "[kernel.kallsyms]", a module ("[ext4]"), or the kernel's own file: perf knows them so. */
static bool is_kernel(struct uni_line image)
{
	static const char *const others[] = { "[unknown]", "[guest]", "[uniscope]", "[vdso]",
		"[vsyscall]", "[heap]", "[stack]", "[anon]" };

	if (image.len == strlen("vmlinux") && memcmp(image.s, "vmlinux", image.len) == 0)
		return true;
	for (size_t i = 0; i < uni_array_len(others); i++) {
		if (image.len == strlen(others[i]) && memcmp(image.s, others[i], image.len) == 0)
			return false;
	}
	return image.len > 2 && image.s[0] == '[' && image.s[image.len - 1] == ']';
}

static uint32_t new_frame(struct reader *r, struct frame f)
{
	const char *slash = memrchr(f.image.s, '/', f.image.len);
	enum uni_frame_kind kind = UNI_FK_GUEST;
	char unknown[UNI_TEXT_MAX];
	int n;

	cut_offset(&f.symbol);
	if (slash != NULL) {
		f.image.len -= (size_t)(slash + 1 - f.image.s);
		f.image.s = slash + 1;
	}
	if (f.image.len == strlen("inlined") && memcmp(f.image.s, "inlined", f.image.len) == 0) {
		kind = UNI_FK_INLINED;
		f.image.len = 0;
	} else if (f.symbol.len == strlen("[unknown]") &&
		   memcmp(f.symbol.s, "[unknown]", f.symbol.len) == 0 && f.image.len != 0 &&
		   f.image.s[0] != '[') {
		n = snprintf(unknown, sizeof(unknown), "[%.*s]", (int)uni_min(f.image.len, 255),
			f.image.s);
		return uni_stack_frame(&r->stack, unknown, (size_t)n, "", 0, UNI_FK_GUEST);
	}
	if (kind == UNI_FK_GUEST && is_kernel(f.image))
		kind = UNI_FK_KERNEL;
	else if (f.image.len != 0 && f.image.s[0] == '[') /* one of ours */
		f.image.len = 0;
	return uni_stack_frame(&r->stack, f.symbol.s, f.symbol.len, f.image.s, f.image.len, kind);
}

static void read_frame(struct reader *r, struct uni_line l)
{
	uint32_t *known;
	struct frame f;

	if (r->stack.frames.nr + 2 > UNI_IMPORT_DEPTH) {
		r->cut = true;
		return;
	}
	/* Lines come again and again: each is understood once. */
	known = uni_stack_known(&r->stack, l.s, l.len);
	if (known == NULL)
		return;
	if (*known == UNI_NODE_NONE) {
		uint32_t frame;

		if (!parse_frame(l, &f)) {
			uni_stats_bad_line(&r->stats, r->line);
			return;
		}
		frame = new_frame(r, f);
		known = uni_stack_known(&r->stack, l.s, l.len);
		if (known == NULL)
			return;
		*known = frame;
	}
	uni_stack_push(&r->stack, *known);
}

/* As the threads of a session, it is no function. A function may have the same name. */
static uint32_t comm_frame(struct reader *r, struct uni_line comm)
{
	char key[COMM_MAX + 1] = "\n", clean[UNI_TEXT_MAX + 1];
	size_t n = uni_min(comm.len, (size_t)COMM_MAX);
	uint32_t *known;

	for (size_t i = 0; i < n; i++)
		key[i + 1] = is_blank(comm.s[i]) ? '_' : comm.s[i];
	known = uni_stack_known(&r->stack, key, n + 1);
	if (known == NULL)
		return UNI_NODE_NONE;
	if (*known == UNI_NODE_NONE) {
		n = uni_text_clean(clean, sizeof(clean), key + 1, n);
		*known = uni_stack_synthetic(&r->stack, n != 0 ? clean : "-");
	}
	return *known;
}

static void set_unit(struct reader *r, const struct header *h)
{
	char unit[EVENT_MAX];
	size_t n = uni_text_clean(unit, sizeof(unit), h->event.s, h->event.len);
	const char *colon = memchr(unit, ':', n);

	(void)snprintf(r->event, sizeof(r->event), "%.*s",
		(int)uni_min(h->event.len, sizeof(r->event) - 1), h->event.s);
	r->periods = h->has_period;
	if (!h->has_period)
		return;
	if (strstr(unit, "-clock") != NULL)
		(void)snprintf(unit, sizeof(unit), "ns");
	else if (colon != NULL && colon != unit)
		unit[colon - unit] = '\0';
	uni_profile_set_unit(r->stack.p, unit);
}

static void begin_sample(struct reader *r, const struct header *h)
{
	size_t len = uni_min(h->event.len, sizeof(r->event) - 1);

	if (!r->any)
		set_unit(r, h);
	r->any = true;
	r->open = true;
	r->skip = strlen(r->event) != len || memcmp(r->event, h->event.s, len) != 0;
	r->period = r->periods ? h->period : 1.0;
	r->t_ns = h->t_ns;
	r->comm = comm_frame(r, h->comm);
	r->stats.left_out += r->skip;
}

static int end_sample(struct reader *r)
{
	bool skip = r->skip || !r->open;
	int rc;

	r->open = false;
	if (skip) {
		r->stack.frames.nr = 0;
		return r->stack.oom ? -UNI_ENOMEM : 0;
	}
	uni_stack_push(&r->stack, r->comm);
	uni_stack_reverse(&r->stack);
	skip = r->cut;
	r->cut = false;
	if (skip)
		uni_stats_cut(&r->stats, r->stats.stacks);
	rc = uni_stack_flush(&r->stack, skip, r->period, 0.0, &r->stats);
	if (rc != 0 || r->watch == NULL || r->watch->imported == NULL || r->t_ns == NO_TIME)
		return rc;
	return r->watch->imported(r->watch->ctx, uni_profile_last(r->stack.p), r->period, r->t_ns);
}

static int read_whole(struct reader *r, struct uni_line l)
{
	struct uni_line frame;
	struct header h;

	if (!split_line(l, &h, &frame)) {
		uni_stats_bad_line(&r->stats, r->line);
		return 0;
	}
	begin_sample(r, &h);
	if (!r->skip)
		read_frame(r, frame);
	return end_sample(r);
}

static int read_line(struct reader *r, struct uni_line l)
{
	struct header h;

	if (l.len == 0)
		return r->open ? end_sample(r) : 0;
	if (is_blank(l.s[0])) {
		if (!r->open)
			return read_whole(r, l);
		if (!r->skip)
			read_frame(r, l);
		return r->stack.oom ? -UNI_ENOMEM : 0;
	}
	if (l.s[0] == '#')
		return 0;
	if (r->open && end_sample(r) != 0)
		return -UNI_ENOMEM;
	if (!parse_header(l, &h))
		return read_whole(r, l);
	begin_sample(r, &h);
	return r->stack.oom ? -UNI_ENOMEM : 0;
}

static int read_perf(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct reader r = { .watch = opts->watch };
	struct uni_line l;
	size_t pos = 0;
	int rc = uni_stack_init(&r.stack, p) ? 0 : -UNI_ENOMEM;

	while (rc == 0 && uni_line_next(data, size, &pos, &l)) {
		r.line++;
		rc = read_line(&r, l);
	}
	if (rc == 0 && r.open)
		rc = end_sample(&r);
	uni_stack_deinit(&r.stack);
	if (rc != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "out of memory after %" PRIu64 " samples", r.stats.stacks);
	if (r.stats.stacks == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"not one sample as perf script prints it: \"NAME PID TIME: EVENT:\" and "
			"frames");
	if (r.stats.left_out != 0)
		r.stats.left_why = "of other events than the first";
	*stats_ret = r.stats;
	return 0;
}

const struct uni_importer uni_importer_perf = {
	.name = "perf",
	.summary = "what perf script prints",
	.sniff = sniff_perf,
	.read = read_perf,
};
