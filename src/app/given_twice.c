/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/given_twice.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "recording/sjson.h"

struct given {
	const char *path;
	struct stat st;
	bool is_file; /* or a folder */
	bool has_id;
	uint8_t id[UNI_CTF_UUID];
};

#define RANDOM_UUID 4 /* its version: RFC 9562 */

/* A recording's id is random. Counts that repeat have one of their image, which tells nothing. */
static void find_id(struct given *g)
{
	struct uni_session s;

	if (!S_ISDIR(g->st.st_mode) || uni_session_load(g->path, &s, NULL) != 0)
		return;
	memcpy(g->id, s.guest[0]->uuid, sizeof(g->id));
	g->has_id = g->id[6] >> 4 == RANDOM_UUID;
	uni_session_free_parsed(&s);
}

static struct given given_of(const char *path)
{
	struct given g = { .path = path };

	g.is_file = uni_door_fstatat(AT_FDCWD, path, &g.st, 0) == 0 &&
		    (S_ISREG(g.st.st_mode) || S_ISDIR(g.st.st_mode));
	if (g.is_file)
		find_id(&g);
	return g;
}

static bool is_same_run(const struct given *a, const struct given *b)
{
	if (strcmp(a->path, b->path) == 0)
		return true;
	if (a->is_file && b->is_file && a->st.st_dev == b->st.st_dev &&
		a->st.st_ino == b->st.st_ino)
		return true;
	return a->has_id && b->has_id && memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

static int refuse_twice(const struct given *a, const struct given *b, struct uni_err *err)
{
	if (strcmp(a->path, b->path) == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"%s is given twice on one side: it is one run, so give it once", a->path);
	return uni_err_set(err, UNI_EUSAGE,
		"%s and %s are the same recording: it is one run, so give it once on a side",
		a->path, b->path);
}

int uni_given_twice(const char *const *path, size_t nr, struct uni_err *err)
{
	_cleanup_free_ struct given *given = calloc(nr + 1, sizeof(*given));

	if (given == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < nr && nr > 1; i++) {
		given[i] = given_of(path[i]);
		for (size_t k = 0; k < i; k++) {
			if (is_same_run(&given[k], &given[i]))
				return refuse_twice(&given[k], &given[i], err);
		}
	}
	return 0;
}
