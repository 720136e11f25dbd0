/* SPDX-License-Identifier: BSD-2-Clause */
/* Others who stop the guest, or hold the stub: an operator at the monitor, a second debugger. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define RUNS_MS	  20000
#define STANDS_MS 80

static int connect_unix(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* Waits for an answer to the command of that number, past greeting and events. */
static bool answered(int fd, unsigned id)
{
	char text[8192] = "", want[32];
	size_t nr = 0;

	(void)snprintf(want, sizeof(want), "\"id\": %u}", id);
	while (nr < sizeof(text) - 1) {
		ssize_t n = read(fd, text + nr, sizeof(text) - 1 - nr);
		const char *line;

		if (n <= 0)
			return false;
		nr += (size_t)n;
		text[nr] = '\0';
		line = strstr(text, want);
		if (line == NULL)
			continue;
		while (line != text && line[-1] != '\n')
			line--;
		return strncmp(line, "{\"return\"", 9) == 0;
	}
	return false;
}

/* One command on a connection of its own, so that the monitor is free for the target. */
static bool monitor(const char *path, const char *command)
{
	const struct timeval patience = { .tv_sec = 30 };
	char text[160];
	int fd = connect_unix(path);
	bool ok;

	if (fd < 0)
		return false;
	(void)snprintf(text, sizeof(text),
		"{\"execute\":\"qmp_capabilities\",\"id\":1}\n{\"execute\":\"%s\",\"id\":2}\n",
		command);
	ok = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
	     uni_write_full(fd, text, strlen(text)) == 0 && answered(fd, 2);
	(void)close(fd);
	return ok;
}

static void stands(struct suite *s, const char *when)
{
	(void)check(s, observer_stands(&s->obs, STANDS_MS), "the guest stands %s", when);
}

static void runs(struct suite *s, const char *when)
{
	(void)check(s, observer_runs(&s->obs, RUNS_MS), "the guest runs %s", when);
}

static bool sample(struct uni_target *t)
{
	struct uni_regs r;
	uint8_t b[64];
	int rc = hold(t, &r);

	if (rc == 0)
		rc = uni_gmem_read(t->ops->gmem(t), uni_gpa_of(0x1000), b, sizeof(b));
	return t->ops->release(t) == 0 && rc == 0 && r.pc_valid;
}

static void paused_before(struct suite *s, const char *qmp)
{
	struct uni_target *t;

	(void)check(s, monitor(qmp, "stop"), "an operator stops the guest");
	stands(s, "when an operator stopped it");
	t = attach(s);
	if (t == NULL)
		return;
	(void)check(s, sample(t), "a sample of a paused guest");
	stands(s, "after a sample");
	(void)check(s, t->ops->alive(t), "a paused guest is alive");
	uni_target_detach(t);
	stands(s, "after detach: it was not ours to resume");
	t = attach(s);
	if (t == NULL)
		return;
	(void)check(s, monitor(qmp, "cont"), "the operator resumes it while we are attached");
	runs(s, "when the operator resumed it");
	(void)check(s, sample(t), "a sample after that");
	runs(s, "after a sample");
	uni_target_detach(t);
	runs(s, "after detach");
}

static void paused_while_attached(struct suite *s, const char *qmp)
{
	struct uni_target *t = attach(s);

	if (t == NULL)
		return;
	(void)check(s, sample(t), "a sample before an operator comes");
	(void)check(s, monitor(qmp, "stop"), "an operator stops the guest while we are attached");
	stands(s, "when an operator stopped it under us");
	for (int i = 0; i < 3; i++)
		(void)check(s, sample(t), "a sample of it");
	stands(s, "after samples");
	uni_target_detach(t);
	stands(s, "after detach");
	(void)check(s, monitor(qmp, "cont"), "the operator resumes it");
	runs(s, "after all");
}

/* Sends a packet, and waits for the whole answer. */
static bool ask(int fd, const char *packet)
{
	const struct timeval patience = { .tv_sec = 30 };
	char answer[4096];
	size_t nr = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (uni_write_full(fd, packet, strlen(packet)) != 0)
		return false;
	while (nr < sizeof(answer)) {
		ssize_t n = read(fd, answer + nr, sizeof(answer) - nr);
		const char *end;

		if (n <= 0)
			return false;
		nr += (size_t)n;
		end = memchr(answer, '#', nr);
		if (end != NULL && end + 2 < answer + nr)
			return true;
	}
	return false;
}

/*
 * A debugger that is there already; it talks and detaches as gdb does. QEMU speaks its dialect with
 * process ids to all who come after it: the guardian must manage with that, too.
 */
static void second_debugger(struct suite *s)
{
	static const char dialect[] = "+$qSupported:multiprocess+#c6", detach[] = "+$D;1#b0";

	const char *path = uni_spec_get(&s->spec, "unix");
	struct uni_target *t = NULL;
	struct uni_err err = { 0 };
	uint64_t begin_ns;
	int fd, rc;

	if (path == NULL)
		return;
	fd = connect_unix(path); /* before us in the stub's queue */
	begin_ns = uni_now_ns();
	rc = uni_target_attach(&s->spec, &s->opts, &t, &err);
	(void)check(s, rc == -UNI_EBUSY, "another debugger is there: %s", err.msg);
	/* The other one would hold it for ever. */
	(void)check(s, uni_now_ns() - begin_ns < 20 * UNI_NSEC_PER_SEC, "and that was said soon");
	(void)check(s, ask(fd, dialect) && ask(fd, detach), "the other debugger is answered");
	(void)close(fd);
	runs(s, "after the other debugger left");
	t = attach(s);
	if (t == NULL)
		return;
	(void)check(s, sample(t), "and now it can be sampled");
	uni_target_detach(t);
	runs(s, "after that");
	(void)check(s, kill_at_random(s, 10) == 10, "and after SIGKILL at 10 random instants");
}

bool operator_at(struct suite *s, const char *qmp)
{
	if (!observer_sees(&s->obs))
		return check(s, false, "the guest can be observed");
	paused_before(s, qmp);
	paused_while_attached(s, qmp);
	second_debugger(s);
	(void)printf("1..%u\n", s->nr);
	return s->failed == 0;
}
