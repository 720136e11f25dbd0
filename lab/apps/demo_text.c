/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, replies and made-up clients of the demo. */
#include "demo.h"

void text_clear(struct text *t)
{
	t->used = 0;
	t->data[0] = '\0';
}

void text_char(struct text *t, char c)
{
	if (t->used + 1 >= TEXT_SIZE)
		return;
	t->data[t->used++] = c;
	t->data[t->used] = '\0';
}

LAB_FUNC void text_append(struct text *t, const char *s)
{
	while (*s)
		text_char(t, *s++);
}

/* A word up to a blank or the end; returns what follows it. */
LAB_FUNC static const char *parse_word(const char *s, char *ret, unsigned size)
{
	unsigned i = 0;

	while (*s == ' ')
		s++;
	for (; *s && *s != ' '; s++) {
		if (i + 1 < size)
			ret[i++] = *s;
	}
	ret[i] = '\0';
	return s;
}

LAB_FUNC static bool parse_check(const struct request *req)
{
	for (const char *s = req->verb; *s; s++) {
		if (*s < 'A' || *s > 'Z')
			return false;
	}
	return req->verb[0];
}

LAB_FUNC bool request_parse(const struct text *text, struct request *ret)
{
	const char *s = text->data;

	s = parse_word(s, ret->verb, sizeof(ret->verb));
	s = parse_word(s, ret->key, sizeof(ret->key));
	parse_word(s, ret->value, sizeof(ret->value));
	return parse_check(ret);
}

LAB_FUNC static void json_escape(struct text *t, char c)
{
	if (c == '"' || c == '\\')
		text_char(t, '\\');
	text_char(t, c);
}

LAB_FUNC void json_string(struct text *t, const char *s)
{
	text_char(t, '"');
	while (*s)
		json_escape(t, *s++);
	text_char(t, '"');
}

LAB_FUNC void json_number(struct text *t, uint64_t n)
{
	char digits[24];

	lab_snprintf(digits, sizeof(digits), "%lu", n);
	text_append(t, digits);
}

LAB_FUNC static void json_field(struct text *t, const char *name, const char *value)
{
	json_string(t, name);
	text_char(t, ':');
	json_string(t, value);
	text_char(t, ',');
}

LAB_FUNC void json_item(struct text *t, const struct item *item)
{
	text_char(t, '{');
	json_field(t, "key", item->key);
	json_field(t, "value", item->value);
	json_string(t, "version");
	text_char(t, ':');
	json_number(t, item->version);
	text_char(t, '}');
}

LAB_FUNC void json_list(struct text *t, const struct item *const *items, unsigned nr)
{
	text_char(t, '[');
	for (unsigned i = 0; i < nr; i++) {
		if (i)
			text_char(t, ',');
		json_item(t, items[i]);
	}
	text_char(t, ']');
}

LAB_FUNC static uint32_t crc_byte(uint32_t crc, unsigned char byte)
{
	crc ^= byte;
	for (unsigned bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (0xedb88320u & (0 - (crc & 1)));
	return crc;
}

LAB_FUNC uint32_t checksum_update(uint32_t sum, const char *data, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		sum = crc_byte(sum, (unsigned char)data[i]);
	return sum;
}

/* xorshift64: the same requests in each run. */
LAB_FUNC static uint64_t rng_next(struct rng *rng)
{
	rng->state ^= rng->state << 13;
	rng->state ^= rng->state >> 7;
	rng->state ^= rng->state << 17;
	return rng->state;
}

LAB_FUNC void client_key(struct rng *rng, struct text *key)
{
	static const char *const kinds[] = { "user", "cart", "page", "item" };
	char number[8];

	text_clear(key);
	text_append(key, kinds[rng_next(rng) % 4]);
	lab_snprintf(number, sizeof(number), ":%03u", (unsigned)(rng_next(rng) % 150));
	text_append(key, number);
}

LAB_FUNC void client_value(struct rng *rng, struct text *value)
{
	uint64_t bits = rng_next(rng);

	text_clear(value);
	for (unsigned i = 0; i < 12 + bits % 40; i++)
		text_char(value, "abcdefghijklmno\""[bits >> (i % 15 * 4) & 15]);
}

LAB_FUNC void client_request(struct rng *rng, struct text *text)
{
	unsigned dice = (unsigned)(rng_next(rng) % 100);
	struct text part;

	text_clear(text);
	if (dice >= 98) {
		text_append(text, "COUNT");
		return;
	}
	text_append(text, dice < 60 ? "GET " : dice < 88 ? "SET " : "RANGE ");
	client_key(rng, &part);
	if (dice >= 88)
		part.data[dice % 2 ? 6 : 4] = '\0'; /* a prefix */
	text_append(text, part.data);
	if (dice < 60 || dice >= 88)
		return;
	client_value(rng, &part);
	text_char(text, ' ');
	text_append(text, part.data);
}
