/* SPDX-License-Identifier: BSD-2-Clause */
/* Candidates for the shells' completion: commands, options, their values, targets, sessions. */
#include "cli/called.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "app/term.h"
#include "backend/target.h"
#include "format/export.h"
#include "format/import.h"

/* The word that is being typed. */
struct typed {
	const char *before; /* "--format=", which belongs to each candidate, or "" */
	size_t before_len;
	const char *word; /* the rest */
};

/* A name that has something in it for a shell, or for a terminal, is not offered. */
static bool is_plain(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._:=,/@%+-";

	return s[0] != '\0' && strspn(s, plain) == strlen(s);
}

static void offer_word(const struct typed *t, const char *word, const char *what)
{
	if (is_plain(word) && strncmp(word, t->word, strlen(t->word)) == 0)
		(void)printf("%.*s%s\t%s\n", (int)t->before_len, t->before, word, what);
}

static void offer_commands(const struct typed *t, const struct uni_cmd *const *list)
{
	for (size_t i = 0; list[i] != NULL; i++)
		offer_word(t, list[i]->name, list[i]->summary);
}

static void offer_options(const struct typed *t, const struct uni_opt *opts)
{
	for (const struct uni_opt *o = opts; o->long_name != NULL; o++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "--%s", o->long_name);
		if (o->help != NULL)
			offer_word(t, name, o->help);
	}
	offer_word(t, "--help", "print the command's options");
}

/* Guests of this host by name and as targets, and the ways to name one. */
static void offer_targets(const struct typed *t)
{
	_cleanup_free_ struct uni_found *found = NULL;
	struct uni_err err = { 0 };
	size_t nr = 0;

	uni_note_hush(true);
	if (uni_target_discover(&found, &nr, &err) != 0)
		nr = 0;
	for (size_t i = 0; i < nr; i++) {
		char name[UNI_GUEST_NAME_MAX];

		uni_guest_name(&found[i].info, name);
		offer_word(t, name, found[i].spec);
		offer_word(t, found[i].spec, is_plain(name) ? name : "");
	}
	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		char scheme[32];

		(void)snprintf(scheme, sizeof(scheme), "%s:", uni_target_backends[i]->scheme);
		offer_word(t, scheme, uni_target_backends[i]->summary);
	}
}

/* Sessions in the folder that the word begins with. */
static void offer_sessions(const struct typed *t)
{
	const char *slash = strrchr(t->word, '/');
	size_t len = slash != NULL ? (size_t)(slash - t->word) + 1 : 0;
	_cleanup_strbuf_ struct uni_strbuf name;
	struct dirent *e;
	DIR *d;

	uni_strbuf_init(&name);
	uni_strbuf_add(&name, t->word, len);
	d = opendir(len != 0 ? name.s : ".");
	while (d != NULL && (e = readdir(d)) != NULL) {
		const char *end = strstr(e->d_name, ".uniscope");

		if (end == NULL || end[strlen(".uniscope")] != '\0')
			continue;
		uni_strbuf_reset(&name);
		uni_strbuf_addf(&name, "%.*s%s", (int)len, t->word, e->d_name);
		offer_word(t, name.s, "session");
	}
	if (d != NULL)
		(void)closedir(d);
}

/* Values one after the other, with a character between them. */
static void offer_words(const struct typed *t, const char *words, const char *between)
{
	_cleanup_free_ char *copy = strdup(words);
	char *state = NULL;

	if (copy == NULL)
		return;
	for (char *w = strtok_r(copy, between, &state); w != NULL;
		w = strtok_r(NULL, between, &state))
		offer_word(t, w, "");
}

static void offer_exporters(const struct typed *t)
{
	for (size_t i = 0; uni_exporters[i] != NULL; i++)
		offer_word(t, uni_exporters[i]->name, uni_exporters[i]->summary);
}

static void offer_importers(const struct typed *t)
{
	for (size_t i = 0; uni_importers[i] != NULL; i++)
		offer_word(t, uni_importers[i]->name, uni_importers[i]->summary);
}

/* Offers candidates for the `arg` of an option, or for an operand. */
static void offer_kind(const struct typed *t, const char *kind)
{
	if (strstr(kind, "TARGET") != NULL)
		offer_targets(t);
	if (strstr(kind, "SESSION") != NULL || strstr(kind, "FILE") != NULL)
		offer_sessions(t);
	if (strcmp(kind, "TARGET") != 0 && strcmp(kind, "THREAD") != 0 && strcmp(kind, "VCPU") != 0)
		(void)puts(":files");
}

static void offer_values(const struct typed *t, const struct uni_opt *o)
{
	if (o->type == UNI_OPT_MAYBE)
		offer_words(t, o->words != NULL ? o->words : o->arg, "[=|] ");
	else if (o->words == NULL && strstr(o->arg, "TARGET") != NULL)
		offer_targets(t);
	else if (o->words == NULL)
		return;
	else if (strcmp(o->words, UNI_WORDS_FILE) == 0)
		offer_kind(t, o->type == UNI_OPT_OUTPUT ? "" : "FILE");
	else if (strcmp(o->words, UNI_WORDS_EXPORTERS) == 0)
		offer_exporters(t);
	else if (strcmp(o->words, UNI_WORDS_IMPORTERS) == 0)
		offer_importers(t);
	else
		offer_words(t, o->words, " ");
}

/* "--name" or "--name=..." */
static const struct uni_opt *long_option(const struct uni_opt *opts, const char *word)
{
	size_t len = strcspn(word, "=");

	for (const struct uni_opt *o = opts; len > 2 && o->long_name != NULL; o++) {
		if (strlen(o->long_name) == len - 2 &&
			strncmp(o->long_name, word + 2, len - 2) == 0)
			return o;
	}
	return NULL;
}

/* The option that takes the next word as its value: "--name", "-n", "-qn". */
static const struct uni_opt *asks_value(const struct uni_opt *opts, const char *word)
{
	const struct uni_opt *o = NULL;

	if (strncmp(word, "--", 2) == 0) {
		o = strchr(word, '=') == NULL ? long_option(opts, word) : NULL;
		return o != NULL && o->arg != NULL && o->type != UNI_OPT_MAYBE ? o : NULL;
	}
	for (const char *p = word + 1; word[0] == '-' && *p != '\0'; p++) {
		for (o = opts; o->long_name != NULL && o->short_name != *p;)
			o++;
		if (o->long_name == NULL || (o->arg != NULL && p[1] != '\0'))
			return NULL;
	}
	return o != NULL && o->arg != NULL ? o : NULL;
}

/* The operand of that number, from the command's list of operands: "FILE THREAD". */
static void offer_operand(const struct typed *t, const struct uni_cmd *c, size_t number)
{
	const char *p = c->operands;
	char kind[64];

	while (number > 0 && strchr(p, ' ') != NULL) {
		p = strchr(p, ' ') + 1;
		number--;
	}
	if (p[0] == '\0' || (number > 0 && strstr(p, "...") == NULL))
		return;
	(void)snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(p, " .]"), p + (p[0] == '['));
	offer_kind(t, kind);
}

static void offer_of_command(const struct typed *t, const struct uni_cmd *c, int argc, char **argv)
{
	const struct uni_opt *opts = c->options(), *o, *asks = NULL;
	struct typed value;
	size_t operands = 0;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			(void)puts(":files");
			return;
		}
		if (asks == NULL && argv[i][0] != '-')
			operands++;
		asks = asks == NULL ? asks_value(opts, argv[i]) : NULL;
	}
	o = long_option(opts, t->word);
	if (asks != NULL) {
		offer_values(t, asks);
	} else if (o != NULL && strchr(t->word, '=') != NULL && o->arg != NULL) {
		value = (struct typed){ .before = t->word,
			.before_len = strcspn(t->word, "=") + 1 };
		value.word = t->word + value.before_len;
		offer_values(&value, o);
	} else if (t->word[0] == '-') {
		offer_options(t, opts);
	} else {
		offer_operand(t, c, operands);
	}
}

int uni_complete(const struct uni_cmd *const *list, int argc, char **argv)
{
	const struct typed t = { .before = "", .word = argc > 0 ? argv[argc - 1] : "" };
	struct uni_called called;
	int before = argc > 0 ? argc - 1 : 0;

	if (list == uni_cmds && before > 0 && strcmp(argv[0], "help") == 0) {
		argv++;
		before--;
	}
	called = uni_called_find(list, before, argv);
	if (called.cmd != NULL && called.cmd->sub == NULL) {
		offer_of_command(&t, called.cmd, before - called.words, argv + called.words);
		return UNI_EXIT_OK;
	}
	if (called.words != before)
		return UNI_EXIT_FAILED;
	offer_commands(&t, called.cmd != NULL ? called.cmd->sub : list);
	offer_word(&t, "--help", "print this command's commands");
	if (called.cmd == NULL) {
		offer_word(&t, "help", "tell more of a command");
		offer_word(&t, "--version", "print the version");
	}
	return UNI_EXIT_OK;
}
