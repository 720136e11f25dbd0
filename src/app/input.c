/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/owner.h"
#include "base/sink.h"
#include "recording/bundle.h"
#include "recording/folder.h"

#define PART ((size_t)128 * 1024) /* enough to recognize the format */

enum how { ALL_OF_IT, PART_OF_IT, SESSION_ONLY };

/* Fewer than cap only at the end; or -errno. */
static ssize_t read_up_to(int fd, void *buf, size_t cap)
{
	size_t done = 0;

	while (done < cap) {
		ssize_t n = read(fd, (char *)buf + done, cap - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int feed_all(int fd, const void *head, size_t have, struct uni_bundle_reader *r,
	const char *name, struct uni_err *err)
{
	char buf[32768];
	ssize_t n;
	int rc = uni_bundle_feed(r, head, have, err);

	while (rc == 0) {
		n = read_up_to(fd, buf, sizeof(buf));
		if (n < 0)
			return uni_err_set(
				err, UNI_EIO, "cannot read %s: %s", name, strerror((int)-n));
		if (n == 0)
			break;
		rc = uni_bundle_feed(r, buf, (size_t)n, err);
	}
	return rc == 0 ? uni_bundle_end(r, err) : rc;
}

static int unpack_bundle(int fd, const void *head, size_t have, const char *name,
	struct uni_input *in, struct uni_err *err)
{
	struct uni_bundle_files files = { .fd = -1 };
	struct uni_bundle_reader r;
	_cleanup_close_ int dir_fd = -1;
	int rc = uni_scratch_make(&in->scratch, err);

	if (rc != 0)
		return rc;
	rc = uni_sdir_open(in->scratch.path, &dir_fd, err);
	if (rc != 0)
		return rc;
	files.dir_fd = dir_fd;
	uni_bundle_reader_init(&r, &uni_bundle_to_folder, &files);
	rc = feed_all(fd, head, have, &r, name, err);
	if (files.fd >= 0)
		(void)close(files.fd);
	in->folder = in->scratch.path;
	return rc;
}

static bool is_folder(const char *name)
{
	struct stat st;

	return strcmp(name, "-") != 0 && uni_door_fstatat(AT_FDCWD, name, &st, 0) == 0 &&
	       S_ISDIR(st.st_mode);
}

static int check_folder(const char *name, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = uni_sdir_open(name, &fd, err);

	return rc == 0 ? uni_owner_check(fd, name, err) : rc;
}

/* Opens it and reads the first block, or as much as there is. */
static int open_head(const char *name, int *fd_ret, uint8_t head[static UNI_BUNDLE_BLOCK],
	ssize_t *have_ret, struct uni_err *err)
{
	int rc = uni_open_input(name, fd_ret, err);

	if (rc != 0)
		return rc;
	*have_ret = read_up_to(*fd_ret, head, UNI_BUNDLE_BLOCK);
	if (*have_ret < 0)
		return uni_err_set(
			err, UNI_EIO, "cannot read %s: %s", name, strerror((int)-*have_ret));
	return 0;
}

/* Reads the whole file if it is short. */
static int read_part(const char *name, int fd, const uint8_t *head, size_t have,
	struct uni_input *ret, struct uni_err *err)
{
	char *data = malloc(PART + 1);
	ssize_t n;

	if (data == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory reading %s", name);
	memcpy(data, head, have);
	n = read_up_to(fd, data + have, PART - have);
	ret->data = data;
	if (n < 0)
		return uni_err_set(err, UNI_EIO, "cannot read %s: %s", name, strerror((int)-n));
	ret->size = have + (size_t)n;
	data[ret->size] = '\0';
	if (ret->size < PART)
		return 0;
	ret->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ret->part = ret->fd >= 0;
	return ret->part ? 0
			 : uni_err_set(err, UNI_EIO, "cannot read %s: %s", name, strerror(errno));
}

int uni_input_rest(struct uni_input *in, const char *name, size_t max, struct uni_err *err)
{
	_cleanup_free_ char *head = in->data;
	size_t have = in->size;
	int rc;

	if (!in->part) {
		head = NULL;
		return 0;
	}
	in->data = NULL;
	in->size = 0;
	rc = uni_read_rest(in->fd, name, head, have, max, &in->data, &in->size, err);
	(void)close(in->fd);
	in->part = false;
	return rc;
}

static int open_stream(
	const char *name, enum how how, size_t max, struct uni_input *ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	uint8_t head[UNI_BUNDLE_BLOCK];
	ssize_t have = 0;
	int rc = open_head(name, &fd, head, &have, err);

	if (rc != 0)
		return rc;
	if (uni_bundle_is(head, (size_t)have))
		return unpack_bundle(fd, head, (size_t)have, name, ret, err);
	if (how == PART_OF_IT)
		return read_part(name, fd, head, (size_t)have, ret, err);
	if (how == SESSION_ONLY)
		return uni_err_set(err, UNI_EFORMAT,
			"%s is no session: neither a folder (NAME.uniscope) nor one in a stream "
			"(trace dump -w)",
			name);
	return uni_read_rest(fd, name, head, (size_t)have, max, &ret->data, &ret->size, err);
}

static int open_any(
	const char *name, enum how how, size_t max, struct uni_input *ret, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_input){ 0 };
	if (is_folder(name)) {
		ret->folder = name;
		return check_folder(name, err);
	}
	rc = open_stream(name, how, max, ret, err);
	if (rc != 0)
		uni_input_close(ret);
	return rc;
}

int uni_input_open(const char *name, size_t max, struct uni_input *ret, struct uni_err *err)
{
	return open_any(name, ALL_OF_IT, max, ret, err);
}

int uni_input_open_part(const char *name, size_t max, struct uni_input *ret, struct uni_err *err)
{
	return open_any(name, PART_OF_IT, max, ret, err);
}

/* All of the stream, as a file of the scratch folder. */
static int spool_stream(int fd, const void *head, size_t have, struct uni_input *in,
	const char **path_ret, struct uni_err *err)
{
	struct uni_strbuf path;
	struct uni_sink *out;
	char buf[32768];
	ssize_t n = (ssize_t)have;
	int rc = uni_scratch_make(&in->scratch, err);

	if (rc != 0)
		return rc;
	uni_strbuf_init(&path);
	uni_strbuf_addf(&path, "%s/stdin", in->scratch.path);
	in->data = uni_strbuf_detach(&path);
	if (in->data == NULL)
		return uni_err_nomem(err);
	*path_ret = in->data;
	rc = uni_sink_open_file(in->data, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, head, have);
	while (n > 0 && !uni_sink_failed(out)) {
		n = read_up_to(fd, buf, sizeof(buf));
		uni_sink_write(out, buf, (size_t)uni_max(n, (ssize_t)0));
	}
	if (n >= 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return uni_err_set(err, UNI_EIO, "cannot read standard input: %s", strerror((int)-n));
}

static int path_of_stream(
	const char *name, struct uni_input *in, const char **path_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	uint8_t head[UNI_BUNDLE_BLOCK];
	ssize_t have = 0;
	int rc = open_head(name, &fd, head, &have, err);

	if (rc != 0)
		return rc;
	if (uni_bundle_is(head, (size_t)have)) {
		rc = unpack_bundle(fd, head, (size_t)have, name, in, err);
		*path_ret = in->folder;
		return rc;
	}
	*path_ret = name;
	return strcmp(name, "-") == 0 ? spool_stream(fd, head, (size_t)have, in, path_ret, err) : 0;
}

int uni_input_path(
	const char *name, struct uni_input *ret, const char **path_ret, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_input){ 0 };
	*path_ret = name;
	if (is_folder(name))
		return check_folder(name, err);
	rc = path_of_stream(name, ret, path_ret, err);
	if (rc != 0)
		uni_input_close(ret);
	return rc;
}

int uni_input_session(const char *name, struct uni_input *ret, struct uni_err *err)
{
	return open_any(name, SESSION_ONLY, 0, ret, err);
}

void uni_input_close(struct uni_input *in)
{
	free(in->data);
	if (in->part)
		(void)close(in->fd);
	uni_scratch_remove(&in->scratch);
	*in = (struct uni_input){ 0 };
}
