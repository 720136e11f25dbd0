/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts QMP messages to values: pure functions over bytes from a VMM. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_load.h"
#include "base/text.h"
#include "backend/vmm/qmp.h"

static enum uni_qmp_kind kind_of(const json_t *json)
{
	static const struct {
		const char *key;
		enum uni_qmp_kind kind;
	} keys[] = {
		{ "return", UNI_QMP_RETURN },
		{ "error", UNI_QMP_ERROR },
		{ "event", UNI_QMP_EVENT },
		{ "QMP", UNI_QMP_GREETING },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (json_object_get(json, keys[i].key) != NULL)
			return keys[i].kind;
	}
	return UNI_QMP_OTHER;
}

/* A string member, cleaned; "" if it is missing or of another type. */
static bool take_string(const json_t *json, const char *key, char *out, size_t cap)
{
	const json_t *v = json_object_get(json, key);

	out[0] = '\0';
	if (!json_is_string(v))
		return false;
	(void)uni_text_clean(out, cap, json_string_value(v), json_string_length(v));
	return true;
}

int uni_qmp_parse(const void *data, size_t size, struct uni_qmp_message *ret)
{
	json_t *json;

	memset(ret, 0, sizeof(*ret));
	if (size > UNI_QMP_MESSAGE_MAX)
		return -UNI_EFORMAT;
	json = uni_json_load(data, size, JSON_ALLOW_NUL, UNI_JSON_TIMES, NULL);
	if (!json_is_object(json)) {
		json_decref(json);
		return -UNI_EFORMAT;
	}
	ret->json = json;
	ret->kind = kind_of(json);
	if (ret->kind == UNI_QMP_ERROR)
		(void)take_string(
			json_object_get(json, "error"), "desc", ret->desc, sizeof(ret->desc));
	return 0;
}

void uni_qmp_message_free(struct uni_qmp_message *m)
{
	json_decref(m->json);
	m->json = NULL;
}

static const json_t *get_return(const struct uni_qmp_message *m)
{
	return m->kind == UNI_QMP_RETURN ? json_object_get(m->json, "return") : NULL;
}

/*
 * "Host virtual address for 0x200000 (pc.ram) is 0x7f1234600000\r
 * ", or an error text.
 */
/* A text that begins so, and the number behind the mark in it. */
static int take_address(
	const struct uni_qmp_message *m, const char *begin, const char *mark, uint64_t *ret)
{
	const char *text = json_string_value(get_return(m)), *p;
	char number[32] = "0x";
	size_t n;

	if (text == NULL)
		return -UNI_EPROTO;
	p = strstr(text, mark);
	if (p == NULL || strncmp(text, begin, strlen(begin)) != 0)
		return -UNI_EFAULT;
	p += strlen(mark);
	n = strspn(p, "0123456789abcdefABCDEF");
	if (n == 0 || n > 16)
		return -UNI_EPROTO;
	memcpy(number + 2, p, n);
	return uni_parse_u64(number, ret) ? 0 : -UNI_EPROTO;
}

int uni_qmp_take_gpa2hva(const struct uni_qmp_message *m, uint64_t *hva_ret)
{
	return take_address(m, "Host virtual address", ") is 0x", hva_ret);
}

int uni_qmp_take_gva2gpa(const struct uni_qmp_message *m, uint64_t *gpa_ret)
{
	return take_address(m, "gpa: 0x", "gpa: 0x", gpa_ret);
}

int uni_qmp_take_status(
	const struct uni_qmp_message *m, bool *running_ret, char *status_ret, size_t cap)
{
	const json_t *v = get_return(m), *running = json_object_get(v, "running");
	char status[32];

	if (!json_is_boolean(running))
		return -UNI_EPROTO;
	(void)take_string(v, "status", status, sizeof(status));
	*running_ret = json_is_true(running);
	if (status_ret != NULL)
		(void)uni_text_clean(status_ret, cap, status, strlen(status));
	return 0;
}

int uni_qmp_take_name(const struct uni_qmp_message *m, char *ret, size_t cap)
{
	const json_t *v = get_return(m);

	if (!json_is_object(v))
		return -UNI_EPROTO;
	(void)take_string(v, "name", ret, cap);
	return 0;
}

enum uni_qmp_chardev uni_qmp_take_chardev(const struct uni_qmp_message *m, const char *label)
{
	static const char left[] = "disconnected:";
	const json_t *all = get_return(m), *one;
	size_t i;

	json_array_foreach(all, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "label"));
		const char *file = json_string_value(json_object_get(one, "filename"));

		if (name == NULL || strcmp(name, label) != 0)
			continue;
		return file != NULL && strncmp(file, left, strlen(left)) == 0
			       ? UNI_QMP_CHARDEV_LEFT
			       : UNI_QMP_CHARDEV_USED;
	}
	return UNI_QMP_CHARDEV_NONE;
}

/* The value of the filename: "disconnected:unix:/run/q.sock,server=on", "tcp:[::1]:1234,server=on
 * <-> ...". */
bool uni_qmp_take_gdb(const struct uni_qmp_message *m, char *ret, size_t cap)
{
	static const char left[] = "disconnected:";
	const json_t *all = get_return(m), *one;
	char text[256], host[200];
	const char *at, *port;
	size_t i;
	int n = 0;

	json_array_foreach(all, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "label"));

		if (name == NULL || strcmp(name, "gdb") != 0 ||
			!take_string(one, "filename", text, sizeof(text)))
			continue;
		at = text + (strncmp(text, left, strlen(left)) == 0 ? strlen(left) : 0);
		text[strcspn(text, ",")] = '\0';
		if (strncmp(at, "unix:", 5) == 0)
			n = snprintf(ret, cap, "unix=%s", at + 5);
		port = strncmp(at, "tcp:", 4) == 0 ? strrchr(at + 4, ':') : NULL;
		if (port == NULL)
			return n > 5 && (size_t)n < cap;
		(void)snprintf(host, sizeof(host), "%.*s", (int)(port - at - 4), at + 4);
		if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 ||
			strcmp(host, "[::]") == 0)
			(void)snprintf(host, sizeof(host), "127.0.0.1");
		n = snprintf(ret, cap, "tcp=%s%s", host, port);
		return n > 0 && (size_t)n < cap;
	}
	return false;
}

int uni_qmp_take_event(const struct uni_qmp_message *m, struct uni_qmp_event *ret)
{
	const json_t *when = json_object_get(m->json, "timestamp");
	const json_t *data = json_object_get(m->json, "data");
	json_int_t s = json_integer_value(json_object_get(when, "seconds"));
	json_int_t us = json_integer_value(json_object_get(when, "microseconds"));

	if (m->kind != UNI_QMP_EVENT ||
		!take_string(m->json, "event", ret->name, sizeof(ret->name)))
		return -UNI_EPROTO;
	if (!take_string(data, "reason", ret->reason, sizeof(ret->reason)))
		(void)take_string(data, "action", ret->reason, sizeof(ret->reason));
	ret->wall_ns = 0;
	if (s > 0 && s < INT64_MAX / (json_int_t)UNI_NSEC_PER_SEC - 1 && us >= 0 && us < 1000000)
		ret->wall_ns = (uint64_t)s * UNI_NSEC_PER_SEC + (uint64_t)us * 1000;
	return 0;
}

/* The hexadecimal number after the word, which is a register's name with its separator. */
static bool take_hex(const char *text, const char *word, uint64_t *ret)
{
	const char *at = strstr(text, word);

	if (at == NULL)
		return false;
	at += strlen(word);
	if (strspn(at, "0123456789abcdefABCDEF") == 0)
		return false;
	*ret = strtoull(at, NULL, 16);
	return true;
}

/* "EIP=0000fff0 EFL=... HLT=0", "CS =f000 ffff0000 0000ffff ...", "CR0=60000010 ...". */
int uni_qmp_take_cpu(const struct uni_qmp_message *m, struct uni_qmp_cpu *ret)
{
	const json_t *v = get_return(m);
	const char *text = json_string_value(v), *cs;
	uint64_t pc, cr0, flags = 0, hlt = 0, selector, base = 0;
	char *end;

	if (text == NULL)
		return -UNI_EPROTO;
	if (!take_hex(text, "CR0=", &cr0) ||
		!(take_hex(text, "RIP=", &pc) || take_hex(text, "EIP=", &pc)))
		return -UNI_ENOTSUP;
	(void)take_hex(text, "HLT=", &hlt);
	(void)(take_hex(text, "RFL=", &flags) || take_hex(text, "EFL=", &flags));
	cs = strstr(text, "CS =");
	if (cs != NULL) {
		selector = strtoull(cs + 4, &end, 16);
		base = selector <= UINT16_MAX ? strtoull(end, NULL, 16) : 0;
	}
	*ret = (struct uni_qmp_cpu){ .pc = pc + base,
		.paging = (cr0 >> 31 & 1) != 0,
		.halted = hlt == 1,
		.interrupts = (flags >> 9 & 1) != 0,
		.key = uni_hash_bytes(text, strlen(text), 0) };
	return 0;
}
