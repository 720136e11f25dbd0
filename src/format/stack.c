/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/stack.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define FRAMES_MIN	 (4u << 20)
#define FRAMES_PER_BYTE	 8u
#define COUNT_DIGITS_MAX 15 /* 10^15 < 2^53: sums of a few thousand stay exact enough */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool uni_parse_count(const char *s, size_t len, double *ret)
{
	double v = 0.0, scale = 1.0;
	size_t i = 0;

	while (i < len && is_digit(s[i]))
		v = v * 10.0 + (s[i++] - '0');
	if (i == 0 || i > COUNT_DIGITS_MAX)
		return false;
	if (i < len && s[i] == '.') {
		for (i++; i < len && is_digit(s[i]); i++) {
			scale /= 10.0;
			v += scale * (s[i] - '0');
		}
	}
	if (i != len)
		return false;
	*ret = v;
	return true;
}

bool uni_line_take_count(struct uni_line *l, double *ret)
{
	size_t end = l->len, start;

	while (end != 0 && is_blank(l->s[end - 1]))
		end--;
	start = end;
	while (start != 0 && (is_digit(l->s[start - 1]) || l->s[start - 1] == '.'))
		start--;
	if (start == 0 || !is_blank(l->s[start - 1]) ||
		!uni_parse_count(l->s + start, end - start, ret))
		return false;
	while (start != 0 && is_blank(l->s[start - 1]))
		start--;
	l->len = start;
	return true;
}

bool uni_line_too_large(struct uni_line l)
{
	size_t n = 0, at = l.len;

	while (at != 0 && is_blank(l.s[at - 1]))
		at--;
	while (at != 0 && is_digit(l.s[at - 1]))
		at--;
	/* A fraction was that, or there was none. */
	if (at != 0 && l.s[at - 1] == '.')
		at--;
	else
		while (at < l.len && is_digit(l.s[at]))
			at++;
	while (at != 0 && is_digit(l.s[at - 1])) {
		at--;
		n++;
	}
	return n > COUNT_DIGITS_MAX && at != 0 && is_blank(l.s[at - 1]);
}

bool uni_stack_init(struct uni_stack *s, struct uni_profile *p)
{
	memset(s, 0, sizeof(*s));
	s->p = p;
	s->raw = uni_strtab_create();
	return s->raw != NULL;
}

void uni_stack_deinit(struct uni_stack *s)
{
	uni_strtab_destroy(s->raw);
	uni_vec_free(&s->raw_frames);
	uni_vec_free(&s->frames);
}

void uni_stack_allow(struct uni_stack *s, size_t bytes)
{
	s->frames_left += (s->limited ? 0 : FRAMES_MIN) + FRAMES_PER_BYTE * (uint64_t)bytes;
	s->limited = true;
}

int uni_stack_error(int rc, struct uni_err *err)
{
	if (rc != -UNI_ERANGE)
		return uni_err_nomem(err);
	return uni_err_set(err, UNI_ERANGE,
		"its stacks have more frames than 4 million and %u for each of its bytes: it is "
		"refused, as it would take very long",
		FRAMES_PER_BYTE);
}

static uint32_t new_name(struct uni_stack *s, const char *name, size_t len)
{
	char clean[UNI_TEXT_MAX + 1];
	size_t n = uni_text_clean(clean, sizeof(clean), name, len);

	if (n == 0)
		return uni_profile_frame_named(s->p, "-", 1, UNI_FK_GUEST);
	return uni_profile_frame_named(s->p, clean, n, uni_frame_kind_of(clean));
}

static uint32_t *frame_of(struct uni_stack *s, uint32_t id)
{
	if (id == UNI_STR_NONE) {
		s->oom = true;
		return NULL;
	}
	while (s->raw_frames.nr <= id) {
		if (!uni_vec_push(&s->raw_frames, UNI_NODE_NONE)) {
			s->oom = true;
			return NULL;
		}
	}
	return &s->raw_frames.v[id];
}

uint32_t *uni_stack_known(struct uni_stack *s, const char *raw, size_t len)
{
	return frame_of(s, uni_strtab_add(s->raw, raw, len));
}

uint32_t uni_stack_name(struct uni_stack *s, const char *name, size_t len)
{
	uint32_t *known = uni_stack_known(s, name, len);

	if (known == NULL)
		return UNI_NODE_NONE;
	if (*known == UNI_NODE_NONE)
		*known = new_name(s, name, len);
	s->oom = s->oom || *known == UNI_NODE_NONE;
	return *known;
}

uint32_t uni_stack_frame(struct uni_stack *s, const char *name, size_t len, const char *image,
	size_t image_len, enum uni_frame_kind kind)
{
	struct uni_strtab *strings = uni_profile_strings(s->p);
	char clean[UNI_TEXT_MAX + 1];
	struct uni_frame f = { .kind = (uint8_t)kind };
	uint32_t frame = UNI_NODE_NONE;
	size_t n = uni_text_clean(clean, sizeof(clean), name, len);

	if (kind == UNI_FK_KERNEL && n != 0) {
		n = uni_min(n, UNI_TEXT_MAX - sizeof(UNI_KERNEL_MARK));
		f.plain = uni_strtab_add(strings, clean, n);
		f.plain = f.plain != UNI_STR_NONE ? f.plain : 0;
		memcpy(clean + n, UNI_KERNEL_MARK, sizeof(UNI_KERNEL_MARK));
		n += strlen(UNI_KERNEL_MARK);
	}
	f.name = n != 0 ? uni_strtab_add(strings, clean, n) : uni_strtab_add(strings, "-", 1);
	if (kind == UNI_FK_GUEST)
		f.kind = (uint8_t)uni_frame_kind_of(n != 0 ? clean : "-");
	n = uni_text_clean(clean, sizeof(clean), image, image_len);
	f.image = f.kind == UNI_FK_SYNTHETIC ? 0 : uni_strtab_add(strings, clean, n);
	if (f.name != UNI_STR_NONE && f.image != UNI_STR_NONE)
		frame = uni_profile_frame(s->p, &f);
	s->oom = s->oom || frame == UNI_NODE_NONE;
	return frame;
}

uint32_t uni_stack_synthetic(struct uni_stack *s, const char *name)
{
	uint32_t frame = uni_profile_frame_named(s->p, name, strlen(name), UNI_FK_SYNTHETIC);

	s->oom = s->oom || frame == UNI_NODE_NONE;
	return frame;
}

void uni_stack_push(struct uni_stack *s, uint32_t frame)
{
	if (s->oom || frame == UNI_NODE_NONE || !uni_vec_push(&s->frames, frame))
		s->oom = true;
}

static bool is_plain(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] < ' ' || s[i] > '~')
			return false;
	}
	return len != 0 && len <= UNI_TEXT_MAX;
}

/* Clean names are kept as the profile's strings. So the next import finds them, too. */
static uint32_t new_key(struct uni_stack *s, struct uni_memo_key key)
{
	bool ours = key.len > 2 && key.s[0] == '[' && key.s[key.len - 1] == ']';
	uint32_t frame;

	if (!is_plain(key.s, key.len))
		return uni_stack_name(s, key.s, key.len);
	frame = uni_profile_frame_named(
		s->p, key.s, key.len, ours ? UNI_FK_SYNTHETIC : UNI_FK_GUEST);
	if (frame == UNI_NODE_NONE)
		return frame;
	key.s = uni_profile_str(s->p, uni_profile_get_frame(s->p, frame)->name);
	return uni_memo_put(uni_profile_names(s->p), key, frame) ? frame : UNI_NODE_NONE;
}

void uni_stack_push_names(struct uni_stack *s, const struct uni_memo_key *names, size_t nr)
{
	if (s->oom || !uni_vec_grow(&s->frames, nr)) {
		s->oom = true;
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		uint32_t frame = uni_memo_find(uni_profile_names(s->p), names[i]);

		if (frame == UNI_MEMO_NONE)
			frame = new_key(s, names[i]);
		if (frame == UNI_NODE_NONE) {
			s->oom = true;
			return;
		}
		s->frames.v[s->frames.nr++] = frame;
	}
}

void uni_stack_reverse(struct uni_stack *s)
{
	for (size_t i = 0, j = s->frames.nr; i + 1 < j; i++) {
		uint32_t f = s->frames.v[i];

		s->frames.v[i] = s->frames.v[--j];
		s->frames.v[j] = f;
	}
}

static void mark_truncated(struct uni_stack *s)
{
	uni_stack_push(s, uni_stack_synthetic(s, "[truncated]"));
	if (s->oom)
		return;
	memmove(s->frames.v + 1, s->frames.v, (s->frames.nr - 1) * sizeof(*s->frames.v));
	s->frames.v[0] = uni_stack_synthetic(s, "[truncated]");
}

int uni_stack_flush(struct uni_stack *s, bool truncated, double value, double value2,
	struct uni_import_stats *stats)
{
	int rc;

	stats->stacks++;
	stats->truncated += truncated;
	if (s->frames.nr == 0) {
		stats->empty++;
		uni_stack_push(s, uni_stack_synthetic(s, "[empty]"));
	}
	if (truncated)
		mark_truncated(s);
	if (s->frames.nr > UNI_IMPORT_DEPTH) {
		uni_stats_cut(stats, stats->stacks - 1);
		s->frames.nr = UNI_IMPORT_DEPTH - 1;
		uni_stack_push(s, uni_stack_synthetic(s, "[deeper]"));
	}
	if (s->limited && s->frames.nr > s->frames_left)
		return -UNI_ERANGE;
	s->frames_left -= s->limited ? s->frames.nr : 0;
	rc = s->oom ? -UNI_ENOMEM : uni_profile_add(s->p, s->frames.v, s->frames.nr, value, value2);
	s->frames.nr = 0;
	return rc;
}
