/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session's folder: session.json and the streams of two vCPUs, each part ended by a line "=".
 * Samples come in the order of their time, of guests and vCPUs that the session has. The same if it
 * is read while it grows.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/follow.h"
#include "recording/recording.h"
#include "files.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/uni-recording-XXXXXX";
static const char *const names[] = { "session.json", "guest-0/samples-vcpu0",
	"guest-0/samples-vcpu1", "guest-0/exits-vcpu0" };
static int dir = -1;

#define NR_NAMES (sizeof(names) / sizeof(names[0]))

struct seen {
	const struct uni_recording *r;
	uint64_t last_ns, last_exit_ns, nr;
};

static void remove_files(void)
{
	for (size_t i = 0; i < NR_NAMES; i++)
		(void)unlinkat(dir, names[i], 0);
	(void)unlinkat(dir, "guest-0", AT_REMOVEDIR);
	(void)rmdir(folder);
}

static void write_files(const uint8_t *data, size_t size)
{
	struct uni_cursor all = uni_cursor_make(data, size);

	if (dir < 0) {
		require(mkdtemp(folder) != NULL);
		dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		require(dir >= 0 && mkdirat(dir, "guest-0", 0700) == 0 &&
			atexit(remove_files) == 0);
	}
	for (size_t i = 0; i < NR_NAMES; i++) {
		struct uni_cursor part = next_part(&all);

		write_file(dir, names[i], part.data, part.size);
	}
}

static int on_sample(void *ctx, const struct uni_sample *s)
{
	struct seen *seen = ctx;

	require(s->t_ns >= seen->last_ns && s->guest < uni_recording_nr_guests(seen->r));
	require(s->vcpu < uni_recording_guest(seen->r, s->guest).meta->nr_vcpus);
	told_u64(s->t_ns);
	told_u64((uint64_t)s->guest << 48 | (uint64_t)s->vcpu << 16 | s->nr);
	told(s->pc, s->nr * sizeof(s->pc[0]));
	seen->last_ns = s->t_ns;
	seen->nr++;
	return 0;
}

static int on_exit_seen(void *ctx, const struct uni_stream_exit *e)
{
	struct seen *seen = ctx;

	require(e->t_ns >= seen->last_exit_ns);
	seen->last_exit_ns = e->t_ns;
	return 0;
}

static void follow(void)
{
	struct uni_follow *f;
	struct uni_err err = { 0 };
	struct seen seen = { 0 };
	const struct uni_follow_taker to = {
		.sample = on_sample, .exit = on_exit_seen, .ctx = &seen
	};

	if (uni_follow_open(folder, 0, &f, &err) != 0)
		return;
	seen.r = uni_follow_recording(f);
	for (int i = 0; i < 2; i++)
		(void)uni_follow_look(f, &to, &err);
	(void)uni_follow_torn(f);
	uni_follow_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_recording *r;
	struct uni_err err = { 0 };
	struct seen seen = { 0 };
	char name[UNI_GUEST_NAME_MAX];

	write_files(data, size);
	if (uni_recording_open(folder, &r, &err) != 0) {
		require(err.msg[0] != '\0');
		return 0;
	}
	seen.r = r;
	uni_recording_guest_name(r, 0, name);
	told_text(name);
	(void)uni_recording_each(r, on_sample, &seen, NULL, &err);
	require(seen.nr <= size);
	(void)uni_recording_each_exit(r, on_exit_seen, &seen, NULL, &err);
	uni_recording_close(r);
	if (size % 2 == 0) /* it takes the longest */
		follow();
	return 0;
}
