/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses rules (rules.h). */
#include "trace/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

/* The bytes up to `end`, without blanks around them. False: none, or too many. */
static bool take_word(const char **at, const char *end, char *ret, size_t size)
{
	const char *from = *at + strspn(*at, " ");
	size_t len = strcspn(from, end);

	*at = from + len;
	while (len != 0 && from[len - 1] == ' ')
		len--;
	if (len == 0 || len >= size)
		return false;
	memcpy(ret, from, len);
	ret[len] = '\0';
	return true;
}

/* "len", "2" */
static bool take_name(const char **at, struct uni_call_condition *ret)
{
	char name[UNI_VARIABLE_NAME];
	uint64_t number;

	if (!take_word(at, "=!<>~,)", name, sizeof(name)))
		return false;
	if (!isdigit((unsigned char)name[0])) {
		memcpy(ret->param, name, sizeof(name));
		return true;
	}
	if (!uni_parse_u64(name, &number) || number == 0 || number > UNI_TRACE_ARGS)
		return false;
	ret->arg = (uint8_t)(number - 1);
	return true;
}

static bool take_operator(const char **at, uint8_t *ret)
{
	/* The longer ones come first. */
	static const struct {
		char text[3];
		uint8_t op;
	} ops[] = {
		{ "!=", UNI_CALL_OP_NE },
		{ "!~", UNI_CALL_OP_UNLIKE },
		{ "<=", UNI_CALL_OP_LE },
		{ ">=", UNI_CALL_OP_GE },
		{ "==", UNI_CALL_OP_EQ },
		{ "=", UNI_CALL_OP_EQ },
		{ "<", UNI_CALL_OP_LT },
		{ ">", UNI_CALL_OP_GT },
		{ "~", UNI_CALL_OP_LIKE },
	};

	for (size_t i = 0; i < uni_array_len(ops); i++) {
		size_t len = strlen(ops[i].text);

		if (strncmp(*at, ops[i].text, len) == 0) {
			*at += len;
			*ret = ops[i].op;
			return true;
		}
	}
	return false;
}

bool uni_call_condition_take(const char **at, struct uni_call_condition *ret)
{
	uint64_t number;
	bool minus;

	*ret = (struct uni_call_condition){ 0 };
	if (!take_name(at, ret) || !take_operator(at, &ret->op) ||
		!take_word(at, ",)", ret->text, sizeof(ret->text)))
		return false;
	if (ret->op >= UNI_CALL_OP_LIKE)
		return true;
	minus = ret->text[0] == '-';
	if (!uni_parse_u64(ret->text + minus, &number))
		return false;
	ret->value = minus ? -(__int128)number : (__int128)number;
	return true;
}

static bool take_conditions(const char **at, struct uni_call_rule *ret)
{
	do {
		(*at)++;
		if (ret->nr == UNI_TRACE_ARGS ||
			!uni_call_condition_take(at, &ret->condition[ret->nr]))
			return false;
		ret->nr++;
	} while (**at == ',');
	return *(*at)++ == ')';
}

static bool take_option(const char **at, struct uni_call_rule *ret)
{
	char name[16], value[256];
	uint64_t n;

	if (!take_word(at, "=,", name, sizeof(name)))
		return false;
	if (strcmp(name, "skip") == 0 && **at != '=') {
		ret->skip = true;
		return true;
	}
	if (**at != '=')
		return false;
	(*at)++;
	if (!take_word(at, ",", value, sizeof(value)))
		return false;
	if (strcmp(name, "below") == 0) {
		memcpy(ret->below, value, sizeof(value));
		return true;
	}
	if (strcmp(name, "min") == 0)
		return uni_parse_time(value, 0, &ret->min_ns);
	if (strcmp(name, "depth") != 0 || !uni_parse_u64(value, &n) || n == 0 || n > UINT32_MAX)
		return false;
	ret->depth = (uint32_t)n;
	return true;
}

int uni_call_rule_parse(const char *text, struct uni_call_rule *ret, struct uni_err *err)
{
	const char *at = text;
	bool ok;

	*ret = (struct uni_call_rule){ 0 };
	ok = take_word(&at, "(:", ret->function, sizeof(ret->function)) && *at != '\0';
	if (ok && *at == '(')
		ok = take_conditions(&at, ret);
	if (ok && *at == ':') {
		do {
			at++;
			ok = take_option(&at, ret);
		} while (ok && *at == ',');
	}
	if (ok && *at == '\0')
		return 0;
	return uni_err_set(err, UNI_EUSAGE,
		"--rule %s: write FUNCTION(ARGUMENT>NUMBER), FUNCTION(ARGUMENT~TEXT), or "
		"FUNCTION:OPTION with skip, depth=N, min=10us or below=FUNCTION (? stands for a "
		"parenthesis or colon in a name)",
		text);
}
