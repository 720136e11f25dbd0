/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/door.h"
#include "base/io.h"
#include "recording/bundle.h"
#include "recording/bundle_priv.h"
#include "recording/folder.h"

enum state { HEADER, BODY, PADDING, END };

/* Octal digits, or the extension for large numbers: a first byte of 0x80 and big-endian ones. */
static bool parse_tar_number(const uint8_t *field, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	if (field[0] == 0x80) {
		for (i = 1; i < len; i++) {
			if (v >> 55 != 0)
				return false;
			v = v << 8 | field[i];
		}
		*ret = v;
		return true;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(field[i] - '0');
	*ret = v;
	return i == len || field[i] == '\0' || field[i] == ' ';
}

static bool checksum_fits(const uint8_t *h)
{
	uint64_t want;

	return parse_tar_number(h + UNI_TAR_CHECKSUM, 8, &want) && want == uni_tar_checksum(h);
}

bool uni_bundle_is(const void *data, size_t size)
{
	const uint8_t *h = data;

	return size >= UNI_BUNDLE_BLOCK && memcmp(h + UNI_TAR_MAGIC, "ustar", 5) == 0 &&
	       checksum_fits(h);
}

void uni_bundle_reader_init(
	struct uni_bundle_reader *r, const struct uni_bundle_ops *ops, void *arg)
{
	*r = (struct uni_bundle_reader){ .ops = ops, .arg = arg, .state = HEADER };
}

static int refuse_bundle(struct uni_err *err, const char *why)
{
	return uni_err_set(err, UNI_EFORMAT, "this is no session in one stream: %s", why);
}

/* A name as it is safe: our own files need no others. */
static bool is_plain(const char *name)
{
	return name[0] != '\0' && name[0] != '.' &&
	       name[strspn(name,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")] ==
		       '\0';
}

/* Cuts "ROOT/SUB/NAME" or "ROOT/NAME" in path. False: it is neither. */
static bool split_tar_path(char *path, const char **sub, const char **name)
{
	char *first, *second;

	if (strncmp(path, "./", 2) == 0)
		path += 2;
	first = strchr(path, '/');
	if (first == NULL || first == path)
		return false;
	*first++ = '\0';
	second = strchr(first, '/');
	*sub = NULL;
	*name = first;
	if (second != NULL) {
		*second++ = '\0';
		*sub = first;
		*name = second;
	}
	return is_plain(*name) && (*sub == NULL || is_plain(*sub));
}

static int begin_file(struct uni_bundle_reader *r, struct uni_err *err)
{
	char path[101];
	const char *sub, *name;

	memcpy(path, r->block, 100);
	path[100] = '\0';
	if (r->block[UNI_TAR_PREFIX] != '\0' || !split_tar_path(path, &sub, &name) ||
		(sub != NULL && !uni_sdir_is_folder(sub)) || !uni_sdir_is_file(sub, name))
		return refuse_bundle(err, "it holds a file that is not part of a session");
	if (r->files++ == UNI_BUNDLE_FILES)
		return refuse_bundle(err, "it holds too many files");
	return r->ops->begin(r->arg, sub, name, err);
}

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < UNI_BUNDLE_BLOCK; i++) {
		if (block[i] != 0)
			return false;
	}
	return true;
}

static int file_ends(struct uni_bundle_reader *r, uint64_t size, struct uni_err *err)
{
	r->left = (UNI_BUNDLE_BLOCK - size % UNI_BUNDLE_BLOCK) % UNI_BUNDLE_BLOCK;
	r->state = r->left != 0 ? PADDING : HEADER;
	return r->ops->end(r->arg, err);
}

static int take_header(struct uni_bundle_reader *r, struct uni_err *err)
{
	const uint8_t type = r->block[UNI_TAR_TYPE];
	uint64_t size;
	int rc;

	if (is_zero(r->block)) {
		r->state = END;
		return 0;
	}
	if (!uni_bundle_is(r->block, sizeof(r->block)) ||
		!parse_tar_number(r->block + UNI_TAR_SIZE, 12, &size))
		return refuse_bundle(err, "it is damaged");
	if (type == '5' && size == 0)
		return 0; /* a folder: its files contain its name */
	if (type != '0' && type != '\0')
		return refuse_bundle(err, "it holds other things than files");
	rc = begin_file(r, err);
	if (rc < 0)
		return rc;
	r->left = size;
	r->state = BODY;
	/* The padding of the last block is computed from the size. */
	memcpy(r->block, &size, sizeof(size));
	return size != 0 ? 0 : file_ends(r, size, err);
}

static int take_body(
	struct uni_bundle_reader *r, const void *data, size_t size, struct uni_err *err)
{
	uint64_t all;
	int rc = r->ops->data(r->arg, data, size, err);

	r->left -= size;
	if (rc < 0 || r->left != 0)
		return rc;
	memcpy(&all, r->block, sizeof(all));
	return file_ends(r, all, err);
}

int uni_bundle_feed(struct uni_bundle_reader *r, const void *data, size_t size, struct uni_err *err)
{
	const uint8_t *p = data;
	int rc = 0;

	while (rc == 0 && size != 0 && r->state != END) {
		size_t n = r->state == HEADER ? UNI_BUNDLE_BLOCK - r->have
					      : (size_t)uni_min(r->left, (uint64_t)size);

		n = uni_min(n, size);
		if (r->state == BODY) {
			rc = take_body(r, p, n, err);
		} else if (r->state == PADDING) {
			r->left -= n;
			r->state = r->left != 0 ? PADDING : HEADER;
		} else {
			memcpy(r->block + r->have, p, n);
			r->have = (r->have + n) % UNI_BUNDLE_BLOCK;
			rc = r->have == 0 ? take_header(r, err) : 0;
		}
		p += n;
		size -= n;
	}
	return rc;
}

int uni_bundle_end(const struct uni_bundle_reader *r, struct uni_err *err)
{
	if (r->state == END)
		return 0;
	return refuse_bundle(err, "it ends in the middle");
}

static int to_folder_begin(void *arg, const char *sub, const char *name, struct uni_err *err)
{
	struct uni_bundle_files *f = arg;

	if (sub != NULL && uni_door_mkdirat(f->dir_fd, sub, 0700) != 0 && errno != EEXIST)
		return uni_err_set(err, UNI_EIO, "cannot make %s: %s", sub, strerror(errno));
	(void)snprintf(f->name, sizeof(f->name), "%s%s%s", sub != NULL ? sub : "",
		sub != NULL ? "/" : "", name);
	f->fd = uni_door_openat(
		f->dir_fd, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->fd >= 0)
		return 0;
	return errno == EEXIST
		       ? refuse_bundle(err, "it holds a file twice")
		       : uni_err_set(err, UNI_EIO, "cannot write %s: %s", f->name, strerror(errno));
}

static int to_folder_data(void *arg, const void *data, size_t size, struct uni_err *err)
{
	struct uni_bundle_files *f = arg;
	int r = uni_write_full(f->fd, data, size);

	return r == 0 ? 0 : uni_err_set(err, UNI_EIO, "cannot write %s: %s", f->name, strerror(-r));
}

static int to_folder_end(void *arg, struct uni_err *err)
{
	struct uni_bundle_files *f = arg;
	int r = close(f->fd);

	f->fd = -1;
	return r == 0 ? 0
		      : uni_err_set(err, UNI_EIO, "cannot write %s: %s", f->name, strerror(errno));
}

const struct uni_bundle_ops uni_bundle_to_folder = {
	.begin = to_folder_begin,
	.data = to_folder_data,
	.end = to_folder_end,
};
