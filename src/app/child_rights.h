/* SPDX-License-Identifier: BSD-2-Clause */
/* The rights of a VMM that root starts: a guest that escapes from it has those. */
#ifndef UNI_APP_CHILD_RIGHTS_H
#define UNI_APP_CHILD_RIGHTS_H

#include <stdbool.h>

#include "base/err.h"

/* Needs of the VMM; all borrowed, NULL: nothing. */
struct uni_child_rights {
	const char *image, *disk; /* files that it reads */
	const char *dir;	  /* a folder of ours, in which it makes sockets */
	bool kvm;
	bool writes;  /* files of ours */
	bool options; /* of the user's, or a program of the user's: they may need more */
};

/*
 * In the child, before it executes the VMM (argv[0]). If root called us, the child becomes a user
 * of its own without capabilities. If that user may not read the files, it keeps the right to read
 * all files. `dir` becomes that user's. One that writes, or has options, stays root, with fewer
 * capabilities. Only for a process with one thread.
 */
int uni_child_give_up_rights(
	const char *program, const struct uni_child_rights *needs, struct uni_err *err);

/* Would execvp() find it, for this user? */
bool uni_child_is_program(const char *name);

#endif
