/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/vcpu_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/door.h"
#include "recording/folder.h"

struct uni_wstream *uni_wstream_get(struct uni_wguest *g, enum uni_ctf_stream kind, uint32_t vcpu)
{
	struct uni_wstream *st = vcpu < UNI_VCPU_MAX ? g->stream[kind][vcpu] : NULL;

	if (st != NULL || vcpu >= UNI_VCPU_MAX)
		return st;
	st = calloc(1, sizeof(*st));
	if (st == NULL)
		return NULL;
	st->fd = -1;
	g->stream[kind][vcpu] = st;
	return st;
}

static int open_file(struct uni_wstream *st, int dir_fd, const struct uni_ctf_packet *p)
{
	char name[64];

	if (st->fd >= 0)
		return 0;
	if (p->stream == UNI_CTF_EXITS)
		(void)snprintf(name, sizeof(name), UNI_SDIR_EXITS, p->guest, p->vcpu);
	else
		(void)snprintf(name, sizeof(name), UNI_SDIR_STREAM, p->guest, p->vcpu);
	st->fd = uni_door_openat(dir_fd, name,
		O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	return st->fd < 0 ? -errno : 0;
}

/* One write(2) for each packet; a partial write is undone. 0 or -errno. */
static int append_ctf_packet(struct uni_wstream *st, const uint8_t *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(st->fd, data + done, len - done);
		int r = n < 0 ? errno : EIO;

		if (n < 0 && r == EINTR)
			continue;
		if (n <= 0) {
			(void)!ftruncate(st->fd, (off_t)st->size);
			return -r;
		}
		done += (size_t)n;
	}
	st->size += len;
	return 0;
}

int uni_wstream_write(struct uni_wguest *g, int dir_fd, struct uni_ctf_packet *p)
{
	struct uni_wstream *st = g->stream[p->stream][p->vcpu];
	int rc = open_file(st, dir_fd, p);

	if (rc < 0)
		return rc;
	uni_ctf_packet_finish(p, g->uuid, st->seq, p->discarded);
	rc = append_ctf_packet(st, p->data, p->len);
	if (rc == 0)
		st->seq++;
	return rc;
}

int uni_wstream_close_all(struct uni_wguest *g)
{
	struct uni_wstream **all = &g->stream[0][0];
	int rc = 0;

	for (size_t i = 0; i < (size_t)UNI_CTF_STREAM_NR * UNI_VCPU_MAX; i++) {
		/* Network file systems report a full disk here. */
		if (all[i] != NULL && all[i]->fd >= 0 && close(all[i]->fd) != 0 && rc == 0)
			rc = -errno;
		if (all[i] != NULL)
			all[i]->fd = -1;
	}
	return rc;
}

void uni_wstream_free_all(struct uni_wguest *g)
{
	struct uni_wstream **all = g != NULL ? &g->stream[0][0] : NULL;

	for (size_t i = 0; all != NULL && i < (size_t)UNI_CTF_STREAM_NR * UNI_VCPU_MAX; i++)
		free(all[i]);
	free(g);
}
