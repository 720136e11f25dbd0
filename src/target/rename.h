/* SPDX-License-Identifier: BSD-2-Clause */
/* A name of its own for a helper process. */
#ifndef UNI_TARGET_RENAME_H
#define UNI_TARGET_RENAME_H

/*
 * By name and by command line the caller is no profiler afterwards: whoever kills or stops all
 * profilers (pkill -f) must not hit what looks after them. For forked children; at most 15
 * characters.
 */
void uni_target_rename(const char *name);

#endif
