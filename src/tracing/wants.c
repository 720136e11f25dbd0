/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/wants.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define HOW                                                                            \
	"write FUNCTION, FUNCTION(ARGUMENT:s) for the text behind an argument, or "    \
	"FUNCTION(ARGUMENT>NUMBER) for such calls alone. FUNCTION(@VARIABLE) reads a " \
	"variable with each call, FUNCTION(return) records its value alone"

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " ");
}

/* The digits at *at, which then stands behind them. */
static bool take_number(const char **at, unsigned most, unsigned *ret)
{
	unsigned v = 0;
	const char *s = *at;

	for (; isdigit((unsigned char)*s); s++) {
		v = v * 10 + (unsigned)(*s - '0');
		if (v > most)
			return false;
	}
	if (s == *at)
		return false;
	*at = s;
	*ret = v;
	return true;
}

/* ARGUMENT in front of the colon. */
static bool take_argument(const char **at, struct uni_trace_want_text *ret)
{
	size_t len = strcspn(*at, ":,) ");
	unsigned number;

	if (isdigit((unsigned char)**at)) {
		if (!take_number(at, UNI_TRACE_ARGS, &number) || number == 0)
			return false;
		ret->arg = (uint8_t)(number - 1);
		return true;
	}
	if (len == 0 || len >= sizeof(ret->param))
		return false;
	memcpy(ret->param, *at, len);
	ret->param[len] = '\0';
	*at += len;
	return true;
}

/* "path:s", "1:s200", "buf:b" */
static bool take_text(const char **at, struct uni_trace_want_text *ret)
{
	unsigned bytes = UNI_TRACE_WANT_BYTES;

	*ret = (struct uni_trace_want_text){ 0 };
	if (!take_argument(at, ret))
		return false;
	if ((*at)[0] != ':' || ((*at)[1] != 's' && (*at)[1] != 'b'))
		return false;
	ret->is_buffer = (*at)[1] == 'b';
	*at += 2;
	if (isdigit((unsigned char)**at) &&
		(!take_number(at, UNI_TRACE_TEXT_MAX, &bytes) || bytes == 0))
		return false;
	ret->bytes = (uint16_t)bytes;
	*at = skip_blanks(*at);
	return true;
}

/* "heap.used" */
static bool take_variable(const char **at, struct uni_trace_want *ret)
{
	size_t len = strcspn(*at, ",) ");
	char *to;

	if (ret->nr_reads == UNI_TRACE_READS_OF || len == 0 || len >= UNI_VARIABLE_NAME)
		return false;
	to = ret->read[ret->nr_reads++];
	memcpy(to, *at, len);
	to[len] = '\0';
	*at = skip_blanks(*at + len);
	return true;
}

static bool take_return(const char **at, struct uni_trace_want *ret)
{
	static const char word[] = "return";
	const size_t len = sizeof(word) - 1;

	if (strncmp(*at, word, len) != 0 || strchr(",) ", (*at)[len]) == NULL)
		return false;
	*at = skip_blanks(*at + len);
	ret->returns = true;
	return true;
}

/* A text, a condition, a variable, or "return". */
static bool take_item(const char **at, struct uni_trace_want *ret)
{
	if (**at == '@') {
		(*at)++;
		return take_variable(at, ret);
	}
	if (take_return(at, ret))
		return true;
	if ((*at)[strcspn(*at, ":=!<>~,)")] != ':')
		return ret->nr_conditions < UNI_TRACE_ARGS &&
		       uni_call_condition_take(at, &ret->condition[ret->nr_conditions++]);
	return ret->nr < UNI_TRACE_ARGS && take_text(at, &ret->text[ret->nr++]);
}

int uni_trace_want_parse(const char *text, struct uni_trace_want *ret, struct uni_err *err)
{
	size_t len = strcspn(text, "(");
	const char *at = text + len;

	*ret = (struct uni_trace_want){ 0 };
	if (len == 0 || len >= sizeof(ret->function))
		return uni_err_set(err, UNI_EUSAGE, "--args %s: " HOW, text);
	memcpy(ret->function, text, len);
	if (*at == '\0')
		return 0;
	do {
		at = skip_blanks(at + 1);
		if (!take_item(&at, ret))
			return uni_err_set(err, UNI_EUSAGE,
				"--args %s: " HOW " (by its name, or its number from 1 to %d; s: "
				"text, b: bytes; then at most %d bytes)",
				text, UNI_TRACE_ARGS, UNI_TRACE_TEXT_MAX);
	} while (*at == ',');
	if (strcmp(at, ")") != 0)
		return uni_err_set(err, UNI_EUSAGE, "--args %s: " HOW, text);
	for (unsigned i = 0; i < ret->nr_conditions; i++) {
		if (ret->condition[i].op >= UNI_CALL_OP_LIKE)
			return uni_err_set(err, UNI_EUSAGE,
				"--args %s: the guest compares numbers only. Record the text "
				"with FUNCTION(ARGUMENT:s), and choose calls with `trace replay "
				"--rule`",
				text);
	}
	return 0;
}

bool uni_trace_wants_match(const struct uni_trace_want *want, size_t nr, const char *function)
{
	for (size_t i = 0; i < nr; i++) {
		if (uni_glob_match(want[i].function, function))
			return true;
	}
	return false;
}

bool uni_trace_wants_value_alone(const struct uni_trace_want *want, size_t nr, const char *function)
{
	bool alone = false;

	for (size_t i = 0; i < nr; i++) {
		const struct uni_trace_want *w = &want[i];

		if (!uni_glob_match(w->function, function))
			continue;
		alone = w->returns;
		if (!alone || w->nr + w->nr_conditions + w->nr_reads != 0)
			return false;
	}
	return alone;
}

bool uni_trace_wants_name(const struct uni_trace_want *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		for (unsigned k = 0; k < want[i].nr; k++) {
			if (want[i].text[k].param[0] != '\0')
				return true;
		}
		for (unsigned k = 0; k < want[i].nr_conditions; k++) {
			if (want[i].condition[k].param[0] != '\0')
				return true;
		}
	}
	return false;
}

bool uni_trace_wants_text(const struct uni_trace_want *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (want[i].nr != 0)
			return true;
	}
	return false;
}

bool uni_trace_wants_condition(const struct uni_trace_want *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (want[i].nr_conditions != 0)
			return true;
	}
	return false;
}

bool uni_trace_wants_read(const struct uni_trace_want *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (want[i].nr_reads != 0)
			return true;
	}
	return false;
}

/* The parameter of this name, or "" in this register; NULL: none is known. */
static const struct uni_param *find_param(const struct uni_params *p, const char *name, int reg)
{
	for (size_t i = 0; p != NULL && i < p->nr; i++) {
		const struct uni_param *one = &p->param[i];

		if (name[0] != '\0' ? strcmp(one->name, name) == 0 : one->reg == reg)
			return one;
	}
	return NULL;
}

/* Its register; -1: it has none, or there is no such parameter. */
static int register_of(const struct uni_params *p, const char *name, int reg)
{
	const struct uni_param *param = find_param(p, name, reg);

	if (name[0] == '\0')
		return reg;
	return param != NULL && param->reg < UNI_TRACE_ARGS ? param->reg : -1;
}

static bool is_exact(const struct uni_trace_want *w)
{
	return strpbrk(w->function, "*?") == NULL;
}

static int no_such_param(
	const char *function, const char *name, const char *by_number, struct uni_err *err)
{
	return uni_err_set(err, UNI_ENOENT,
		"--args: %s has no parameter '%s' in a general register, as far as the image's "
		"debug data tells; give its number: %s(1%s)",
		function, name, function, by_number);
}

static int add_texts(const struct uni_trace_want *w, const char *function,
	const struct uni_params *p, struct uni_trace_text_rule *ret, struct uni_err *err)
{
	for (unsigned i = 0; i < w->nr; i++) {
		const struct uni_trace_want_text *t = &w->text[i];
		int reg = register_of(p, t->param, t->arg);

		if (reg < 0 && is_exact(w))
			return no_such_param(function, t->param, ":s", err);
		if (reg < 0)
			continue;
		*(t->is_buffer ? &ret->buffers : &ret->arguments) |= (uint8_t)(1u << reg);
		ret->bytes = uni_max(ret->bytes, t->bytes);
	}
	return 0;
}

/* The range of an argument's numbers. */
static bool can_be(const struct uni_trace_condition *c, __int128 value)
{
	__int128 one = 1, end = one << (c->bits - (c->is_signed ? 1 : 0));

	return value < end && value >= (c->is_signed ? -end : 0);
}

static int add_conditions(struct uni_trace_rules *rules, const struct uni_trace_want *w,
	const char *function, const struct uni_params *p, uint64_t entry, struct uni_err *err)
{
	/* By enum uni_call_op. */
	static const uint8_t order[] = { UNI_TRACE_IF_EQUAL,
		UNI_TRACE_IF_LESS | UNI_TRACE_IF_GREATER, UNI_TRACE_IF_LESS,
		UNI_TRACE_IF_LESS | UNI_TRACE_IF_EQUAL, UNI_TRACE_IF_GREATER,
		UNI_TRACE_IF_EQUAL | UNI_TRACE_IF_GREATER };

	for (unsigned i = 0; i < w->nr_conditions; i++) {
		const struct uni_call_condition *c = &w->condition[i];
		const struct uni_param *param = find_param(p, c->param, c->arg);
		int reg = register_of(p, c->param, c->arg);
		bool is_number = param != NULL && param->size != 0 && param->size <= 8;
		struct uni_trace_condition one = { .function = (uint32_t)entry,
			.argument = (uint8_t)reg,
			.order = order[c->op],
			.bits = is_number ? (uint8_t)(param->size * 8) : 64,
			.is_signed = is_number && param->form == UNI_PARAM_SIGNED,
			.value = (uint64_t)c->value };

		if (reg < 0 && is_exact(w))
			return no_such_param(function, c->param, ">5", err);
		if (reg < 0)
			continue;
		if (!can_be(&one, c->value))
			return uni_err_set(err, UNI_EUSAGE,
				"--args: an argument of %s is compared with a number that it "
				"cannot be: it has %u bits and %s sign",
				function, one.bits, one.is_signed ? "a" : "no");
		if (!uni_vec_push(&rules->condition, one))
			return uni_err_nomem(err);
	}
	return 0;
}

/* If several words ask for variables of one function, the first ones are read. */
static int add_reads(struct uni_trace_rules *rules, const struct uni_trace_want *w,
	const struct uni_traced_function *f, struct uni_err *err)
{
	struct uni_trace_read one = { .function = (uint32_t)(f->svma + f->bias) };
	struct uni_variable v;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < w->nr_reads; i++) {
		rc = uni_variable_find(f->image, f->debug, w->read[i], &v, err);
		if (rc != 0)
			break;
		one.bytes = v.size;
		one.is_signed = v.is_signed;
		one.address = v.svma + f->bias;
		if (!uni_vec_push(&rules->read, one))
			rc = uni_err_nomem(err);
	}
	return rc;
}

int uni_trace_rules_add(struct uni_trace_rules *rules, const struct uni_trace_want *want, size_t nr,
	const struct uni_traced_function *f, struct uni_err *err)
{
	const uint64_t entry = f->svma + f->bias;
	struct uni_trace_text_rule text = { .function = (uint32_t)entry };
	const struct uni_params *p = NULL;
	struct uni_params params;
	bool looked = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		if (want[i].nr + want[i].nr_conditions + want[i].nr_reads == 0 ||
			!uni_glob_match(want[i].function, f->name))
			continue;
		if (!looked && f->debug != NULL &&
			uni_debug_params(f->debug, f->svma, &params) == 0)
			p = &params;
		looked = true;
		rc = add_texts(&want[i], f->name, p, &text, err);
		if (rc == 0)
			rc = add_conditions(rules, &want[i], f->name, p, entry, err);
		if (rc == 0)
			rc = add_reads(rules, &want[i], f, err);
	}
	text.arguments &= (uint8_t)~text.buffers;
	if (rc == 0 && text.bytes != 0 && !uni_vec_push(&rules->text, text))
		rc = uni_err_nomem(err);
	return rc;
}

/* All kinds begin with their function. */
static int by_function(const void *a, const void *b)
{
	const uint32_t *p = a, *q = b;

	return *p < *q ? -1 : *p > *q;
}

void uni_trace_rules_sort(struct uni_trace_rules *rules)
{
	if (rules->text.nr != 0)
		qsort(rules->text.v, rules->text.nr, sizeof(*rules->text.v), by_function);
	if (rules->condition.nr != 0)
		qsort(rules->condition.v, rules->condition.nr, sizeof(*rules->condition.v),
			by_function);
	if (rules->read.nr != 0)
		qsort(rules->read.v, rules->read.nr, sizeof(*rules->read.v), by_function);
}

void uni_trace_rules_deinit(struct uni_trace_rules *rules)
{
	uni_vec_free(&rules->text);
	uni_vec_free(&rules->condition);
	uni_vec_free(&rules->read);
}
