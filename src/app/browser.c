/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/term.h"

#define OPENER "xdg-open"

static int child = -1; /* the line to it */

/* Its output is dropped: it names browsers that nobody asked for. */
static _Noreturn void exec_opener(int line, const char *path)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), why;

	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(null, STDERR_FILENO);
	(void)execlp(OPENER, OPENER, path, (char *)NULL);
	why = errno;
	(void)!write(line, &why, sizeof(why));
	_exit(127);
}

static bool is_page_here(const char *name)
{
	size_t len = strlen(name);

	return strchr(name, '/') == NULL && len > 5 && strcmp(name + len - 5, ".html") == 0;
}

/* The name of the page comes as one message. Its end without one: nobody asks. The process that
 * asks has read a file that others may have made, so it is not believed. */
static _Noreturn void wait_and_open(int line, const char *page)
{
	char path[PATH_MAX + 3] = "./"; /* a name may begin with "-" */
	ssize_t n = read(line, path + 2, PATH_MAX);
	const char *name = path[2] == '/' ? path + 2 : path;
	int status = 0;
	pid_t pid;

	if (n <= 0 || !(page != NULL ? strcmp(path + 2, page) == 0 : is_page_here(path + 2)))
		_exit(0);
	(void)setsid(); /* a Ctrl-C is not for the browser */
	pid = fork();
	if (pid == 0)
		exec_opener(line, name);
	(void)close(line);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || (status != 0 && WEXITSTATUS(status) != 127))
		uni_note(OPENER " found no browser: open %s in one", path + 2);
	_exit(0);
}

void uni_browser_prepare(const char *page)
{
	int fd[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return;
	pid = fork();
	if (pid == 0) {
		(void)close(fd[0]);
		(void)signal(SIGPIPE, SIG_IGN);
		wait_and_open(fd[1], page);
	}
	(void)close(fd[1]);
	if (pid > 0)
		child = fd[0];
	else
		(void)close(fd[0]);
}

int uni_browser_open(const char *path, struct uni_err *err)
{
	int why = 0;

	if (child < 0 || send(child, path, strlen(path), MSG_NOSIGNAL) < 0)
		return uni_err_set(
			err, UNI_EIO, "%s is written, but no process was there to open it", path);
	/* The line closes once the program runs. */
	if (read(child, &why, sizeof(why)) != sizeof(why))
		return 0;
	return uni_err_set(err, UNI_ENOENT,
		"%s is written, but cannot be opened: " OPENER
		": %s (package xdg-utils). Open the file in a browser",
		path, strerror(why));
}
