/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel command line: words `key=value`, parted by blanks. */
#include "lab.h"

static char cmdline[512];

void lab_cmdline_init(const char *text)
{
	size_t i = 0;

	for (; text && text[i] && i + 1 < sizeof(cmdline); i++)
		cmdline[i] = text[i];
	cmdline[i] = '\0';
}

/* The text behind `key=`, or NULL. */
static const char *find_value(const char *key)
{
	size_t len = lab_strlen(key);
	const char *word = cmdline;

	while (*word) {
		while (*word == ' ')
			word++;
		if (memcmp(word, key, len) == 0 && word[len] == '=')
			return word + len + 1;
		while (*word && *word != ' ')
			word++;
	}
	return NULL;
}

uint64_t lab_arg(const char *key, uint64_t dflt)
{
	const char *s = find_value(key);
	uint64_t value = 0;

	if (!s)
		return dflt;
	for (; *s >= '0' && *s <= '9'; s++)
		value = value * 10 + (uint64_t)(*s - '0');
	if (*s && *s != ' ')
		lab_fail("a value on the command line is not a number");
	return value;
}

bool lab_arg_is(const char *key, const char *value)
{
	const char *s = find_value(key);
	size_t len = value ? lab_strlen(value) : 0;

	if (!value)
		return s;
	return s && memcmp(s, value, len) == 0 && (s[len] == ' ' || s[len] == '\0');
}
