/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/xl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

#define LIMIT_NS (120 * UNI_NSEC_PER_SEC) /* a domain with much memory takes its time */
#define NAP_NS	 (5 * UNI_NSEC_PER_MSEC)

/* In the child: only async-signal-safe calls until exec. */
static void exec_xl(const char *const *argv, int out)
{
	int in = open("/dev/null", O_RDONLY);

	/* Ctrl-C is for us: a half-made domain is useless. */
	(void)setpgid(0, 0);
	if (in >= 0)
		(void)dup2(in, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* True: it ended, *status_ret is its wait status. Else it was killed. */
static bool wait_for(pid_t pid, int *status_ret)
{
	struct timespec nap = uni_ns_timespec(NAP_NS);
	uint64_t until_ns = uni_now_ns() + LIMIT_NS;

	while (uni_now_ns() < until_ns) {
		pid_t r = waitpid(pid, status_ret, WNOHANG);

		if (r == pid)
			return true;
		if (r < 0 && errno != EINTR)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, status_ret, 0);
	return false;
}

/* The last line that is not empty, cleaned; "nothing" if there is none. */
static void last_line(int fd, char *ret, size_t cap)
{
	char buf[1024];
	off_t size = lseek(fd, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(buf) - 1 ? size - (off_t)sizeof(buf) + 1 : 0;
	ssize_t len = pread(fd, buf, sizeof(buf) - 1, from);
	const char *line;

	(void)snprintf(ret, cap, "nothing");
	while (len > 0 && (buf[len - 1] == '\n' || buf[len - 1] == '\r' || buf[len - 1] == ' '))
		len--;
	if (len <= 0)
		return;
	buf[len] = '\0';
	line = strrchr(buf, '\n');
	line = line != NULL ? line + 1 : buf;
	(void)uni_text_clean(ret, cap, line, strlen(line));
}

/* Runs xl to its end. Its messages go to a file in memory, because `xl create` leaves a process
 * behind that would keep a pipe open. words_ret has its last line, also after a failure. */
static int run_xl(const char *const *argv, char *words_ret, size_t cap, struct uni_err *err)
{
	_cleanup_close_ int out = memfd_create("xl", MFD_CLOEXEC);
	int status = 0;
	pid_t pid;

	words_ret[0] = '\0';
	if (out < 0)
		return uni_err_set(err, UNI_EIO, "cannot run xl: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		exec_xl(argv, out);
	if (pid < 0)
		return uni_err_set(err, UNI_ENOMEM, "cannot run xl: %s", strerror(errno));
	if (!wait_for(pid, &status))
		return uni_err_set(err, UNI_ETIMEDOUT, "xl %s did not end within %llu s", argv[1],
			(unsigned long long)(LIMIT_NS / UNI_NSEC_PER_SEC));
	last_line(out, words_ret, cap);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return uni_err_set(err, UNI_ENOTSUP,
			"cannot run xl: this host is no dom0, or Xen's tools are missing (Debian: "
			"xen-utils)");
	return uni_err_set(err, UNI_EIO, "xl %s failed (status %d); its last words: %s", argv[1],
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), words_ret);
}

int uni_xl_domid(const char *name, uint64_t *ret, struct uni_err *err)
{
	const char *const argv[] = { "xl", "domid", name, NULL };
	struct uni_err why = { 0 };
	char words[256];
	int rc = run_xl(argv, words, sizeof(words), &why);

	if (rc == 0 && uni_parse_u64(words, ret) && *ret != 0)
		return 0;
	if (rc == -UNI_ENOTSUP || rc == -UNI_ETIMEDOUT)
		return uni_err_set(err, (enum uni_errcode) - rc, "%s", why.msg);
	return uni_err_set(err, UNI_ENOENT, "xl knows no domain %s: %s", name, words);
}

int uni_xl_destroy(uint64_t domid, struct uni_err *err)
{
	char number[32], words[256];
	const char *const argv[] = { "xl", "destroy", number, NULL };

	(void)snprintf(number, sizeof(number), "%" PRIu64, domid);
	return run_xl(argv, words, sizeof(words), err);
}

int uni_xl_create(const char *config, const char *name, struct uni_err *err)
{
	const char *const argv[] = { "xl", "create", config, NULL };
	char words[256];
	uint64_t domid;
	int rc = run_xl(argv, words, sizeof(words), err);

	/* It may fail when the domain runs already: at the log of the process that watches it. */
	if (rc != 0 && uni_xl_domid(name, &domid, NULL) == 0)
		(void)uni_xl_destroy(domid, NULL);
	return rc;
}
