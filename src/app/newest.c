/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/newest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/door.h"

#define ENDING	    ".uniscope"
#define ENTRIES_MAX 100000 /* of the folder that are looked at */

static bool has_ending(const char *name)
{
	size_t len = strlen(name), end = strlen(ENDING);

	return len > end && strcmp(name + len - end, ENDING) == 0;
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* NULL: there is none. */
static char *find_newest(DIR *d)
{
	struct timespec newest = { 0 };
	_cleanup_free_ char *json = NULL;
	char *best = NULL;
	struct dirent *e;

	for (size_t i = 0; i < ENTRIES_MAX && (e = readdir(d)) != NULL; i++) {
		struct stat st;

		free(json);
		json = NULL;
		if (!has_ending(e->d_name) || asprintf(&json, "%s/session.json", e->d_name) < 0 ||
			uni_door_fstatat(dirfd(d), json, &st, 0) != 0 ||
			(best != NULL && !is_newer(&st.st_mtim, &newest)))
			continue;
		free(best);
		best = strdup(e->d_name);
		newest = st.st_mtim;
	}
	return best;
}

int uni_newest_session(char **ret, struct uni_err *err)
{
	DIR *d = uni_door_opendir(".");

	*ret = NULL;
	if (d != NULL) {
		*ret = find_newest(d);
		(void)closedir(d);
	}
	if (*ret != NULL)
		return 0;
	return uni_err_set(err, UNI_EUSAGE,
		"give a FILE: this folder has no session (NAME" ENDING ", as record writes it)");
}
