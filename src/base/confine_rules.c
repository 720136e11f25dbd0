/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/confine.h"
#include "base/outdir.h"

#define OUTPUTS_MAX 16

/* Rights that newer kernels know than the headers that we are built with, by version. */
#define TRUNCATE (1ULL << 14) /* version 3 */
#define IN_FILE	 (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE)
#define IN_FOLDER                                                                   \
	(IN_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
		LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG)
#define LIMITED                                                                  \
	(IN_FOLDER | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
		LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |    \
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

static const char *outputs[OUTPUTS_MAX];
static size_t nr_outputs;

void uni_confine_output(const char *path)
{
	if (path != NULL && nr_outputs < OUTPUTS_MAX)
		outputs[nr_outputs++] = path;
}

/*
 * A file system that keeps no inodes (9p without a cache) makes another one at the next look, which
 * the rule is not for. An open descriptor keeps it.
 */
static void keep_inode(int fd)
{
	(void)fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void allow_below(int rules, uint64_t known, int fd)
{
	struct landlock_path_beneath_attr a = { .parent_fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return;
	a.allowed_access = known & (S_ISDIR(st.st_mode) ? IN_FOLDER : IN_FILE);
	(void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
}

static void allow_path(int rules, uint64_t known, const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	allow_below(rules, known, fd);
}

/* The folder in which it will be made, and itself if it is a device or a folder already. */
static void allow_output(int rules, uint64_t known, const char *path)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	struct stat st;

	if (strcmp(path, "-") == 0)
		return;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		allow_path(rules, known, path);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return;
	if (uni_outdir_open(AT_FDCWD, path, true, &at, NULL) == 0)
		allow_below(rules, known, at.fd);
	if (at.fd >= 0)
		keep_inode(at.fd);
}

int uni_confine_rules(bool temporary)
{
	const char *tmp = getenv("TMPDIR");
	struct landlock_ruleset_attr attr = { 0 };
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int rules;

	if (version < 1)
		return -1;
	attr.handled_access_fs = version >= 3 ? LIMITED : LIMITED & ~TRUNCATE;
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return -1;
	for (size_t i = 0; i < nr_outputs; i++)
		allow_output(rules, attr.handled_access_fs, outputs[i]);
	allow_path(rules, attr.handled_access_fs, "/dev/null");
	if (temporary)
		allow_path(rules, attr.handled_access_fs, "/tmp");
	if (temporary && tmp != NULL && tmp[0] == '/')
		allow_path(rules, attr.handled_access_fs, tmp);
	return rules;
}
