/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotate/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"
#include "obj/debug.h"

#define FILE_MAX  ((size_t)16 << 20) /* bytes */
#define FILES_MAX 64
#define TAB	  8

struct source {
	char *path;	       /* as debug data has it */
	char *data;	       /* NULL: not found */
	UNI_VEC(size_t) begin; /* of each line, and of one behind the last */
};

struct uni_lines {
	const char *const *dirs;
	size_t nr_dirs;
	UNI_VEC(const struct uni_debug *) debugs;
	UNI_VEC(struct source) sources;
};

struct uni_lines *uni_lines_create(const char *const *dirs, size_t nr)
{
	struct uni_lines *l = calloc(1, sizeof(*l));

	if (l != NULL) {
		l->dirs = dirs;
		l->nr_dirs = nr;
	}
	return l;
}

bool uni_lines_add_debug(struct uni_lines *l, const struct uni_debug *debug)
{
	return uni_vec_push(&l->debugs, debug);
}

void uni_lines_destroy(struct uni_lines *l)
{
	if (l == NULL)
		return;
	uni_vec_foreach (s, &l->sources) {
		free(s->path);
		free(s->data);
		uni_vec_free(&s->begin);
	}
	uni_vec_free(&l->sources);
	uni_vec_free(&l->debugs);
	free(l);
}

/* Takes "." and ".." out of a path, so that it leads to no file above a folder. */
static void path_straighten(char *path)
{
	bool absolute = path[0] == '/';
	char *out = path;
	const char *p = path;

	while (*p != '\0') {
		size_t slashes = strspn(p, "/"), len = strcspn(p + slashes, "/");
		const char *part = p + slashes;

		p = part + len;
		if (len == 0 || (len == 1 && part[0] == '.'))
			continue;
		if (len == 2 && part[0] == '.' && part[1] == '.') {
			while (out > path && *--out != '/')
				;
			continue;
		}
		if (out != path || absolute)
			*out++ = '/';
		memmove(out, part, len);
		out += len;
	}
	*out = '\0';
}

/* All of the path below the folder, then ever fewer of its folders. */
static bool read_below(const char *dir, const char *path, char **data_ret, size_t *size_ret)
{
	for (const char *p = path; p != NULL && *p != '\0'; p = strchr(p, '/')) {
		char full[4096];
		int len;

		p += strspn(p, "/");
		len = snprintf(full, sizeof(full), "%s/%s", dir, p);
		if (len > 0 && (size_t)len < sizeof(full) &&
			uni_read_regular(full, FILE_MAX, data_ret, size_ret, NULL) == 0)
			return true;
	}
	return false;
}

/* A file within debug data; its text is copied, as that of others is owned. */
static bool read_embedded(const struct uni_lines *l, struct source *s, size_t *size_ret)
{
	const char *text = NULL;

	for (size_t i = 0; text == NULL && i < l->debugs.nr; i++)
		text = uni_debug_source(l->debugs.v[i], s->path);
	*size_ret = text != NULL ? strnlen(text, FILE_MAX) : 0;
	s->data = text != NULL ? strndup(text, *size_ret) : NULL;
	return s->data != NULL;
}

static void read_source(const struct uni_lines *l, struct source *s)
{
	bool found = false;
	size_t size = 0;

	char path[4096];

	(void)snprintf(path, sizeof(path), "%s", s->path);
	path_straighten(path);
	for (size_t i = 0; !found && i < l->nr_dirs; i++)
		found = read_below(l->dirs[i], path, &s->data, &size);
	if (!found)
		found = read_embedded(l, s, &size);
	if (!found && path[0] == '/')
		found = uni_read_regular(path, FILE_MAX, &s->data, &size, NULL) == 0;
	for (size_t at = 0; found && at <= size;) {
		const char *end = memchr(s->data + at, '\n', size - at);

		found = uni_vec_push(&s->begin, at);
		at = end != NULL ? (size_t)(end - s->data) + 1 : size + 1;
		if (end == NULL && found)
			found = uni_vec_push(&s->begin, at);
	}
	if (!found)
		s->begin.nr = 0;
}

static const struct source *find_source(struct uni_lines *l, const char *file)
{
	struct source s = { 0 };

	uni_vec_foreach (p, &l->sources) {
		if (strcmp(p->path, file) == 0)
			return p;
	}
	if (l->sources.nr == FILES_MAX || (s.path = strdup(file)) == NULL)
		return NULL;
	read_source(l, &s);
	if (uni_vec_push(&l->sources, s))
		return &l->sources.v[l->sources.nr - 1];
	free(s.path);
	free(s.data);
	uni_vec_free(&s.begin);
	return NULL;
}

const char *uni_lines_get(
	struct uni_lines *l, const char *file, uint32_t line, char *ret, size_t cap)
{
	const struct source *s = file != NULL ? find_source(l, file) : NULL;
	char text[1024];
	size_t n = 0;

	ret[0] = '\0';
	if (s == NULL || line == 0 || line >= s->begin.nr)
		return ret;
	for (size_t i = s->begin.v[line - 1]; i + 1 < s->begin.v[line] && n + TAB < sizeof(text);
		i++) {
		if (s->data[i] == '\r')
			continue;
		if (s->data[i] != '\t') {
			text[n++] = s->data[i];
			continue;
		}
		do
			text[n++] = ' ';
		while (n % TAB != 0);
	}
	(void)uni_text_clean(ret, cap, text, n);
	return ret;
}
