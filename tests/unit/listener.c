/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that listens at an address, by the kernel's tables: IPv4, IPv6, and IPv4 by a socket
 * of IPv6. And the client of a unix socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/listener.h"

static struct sockaddr_storage address(int family, const char *text, uint16_t port)
{
	struct sockaddr_storage ret = { .ss_family = (sa_family_t)family };

	if (family == AF_INET) {
		((struct sockaddr_in *)&ret)->sin_port = htons(port);
		(void)inet_pton(family, text, &((struct sockaddr_in *)&ret)->sin_addr);
	} else {
		((struct sockaddr_in6 *)&ret)->sin6_port = htons(port);
		(void)inet_pton(family, text, &((struct sockaddr_in6 *)&ret)->sin6_addr);
	}
	return ret;
}

static socklen_t size_of(int family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Listens at a port of the kernel's choice; -1: this host has no such addresses. */
static int listen_at(int family, const char *text, uint16_t *port_ret)
{
	struct sockaddr_storage sa = address(family, text, 0);
	socklen_t len = size_of(family);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, len) == 0 && listen(fd, 4) == 0 &&
		getsockname(fd, (struct sockaddr *)&sa, &len) == 0) {
		*port_ret = ntohs(family == AF_INET ? ((struct sockaddr_in *)&sa)->sin_port
						    : ((struct sockaddr_in6 *)&sa)->sin6_port);
		return fd;
	}
	(void)close(fd);
	return -1;
}

static struct uni_net_listener look(int family, const char *text, uint16_t port)
{
	struct uni_net_addr addr = { .nr = 1 };
	struct uni_net_listener ret;

	addr.at[0].sa = address(family, text, port);
	addr.at[0].len = size_of(family);
	uni_net_find_listener(&addr, &ret);
	return ret;
}

/* One that listens at `at` is found under `as`; then with a client. */
static void finds(int family, const char *at, int as_family, const char *as)
{
	uint16_t port = 0;
	int fd = listen_at(family, at, &port), client, served;
	struct uni_net_listener found;
	struct sockaddr_storage sa;
	struct stat st;

	if (fd < 0 && family == AF_INET6)
		return; /* a host without IPv6 has nothing to look through */
	assert_true(fd >= 0);
	found = look(as_family, as, port);
	assert_true(found.local);
	assert_false(found.has_client);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(found.inode, st.st_ino);
	assert_int_equal(uni_net_socket_owner(found.inode), getpid());
	sa = address(as_family, as, port);
	client = socket(as_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&sa, size_of(as_family)), 0);
	served = accept(fd, NULL, NULL);
	assert_true(served >= 0);
	assert_true(look(as_family, as, port).has_client);
	(void)close(served);
	(void)close(client);
	(void)close(fd);
}

static void each_family(void **state)
{
	finds(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
	finds(AF_INET, "0.0.0.0", AF_INET, "127.0.0.1");
	finds(AF_INET6, "::1", AF_INET6, "::1");
	finds(AF_INET6, "::", AF_INET6, "::1");
	finds(AF_INET6, "::", AF_INET, "127.0.0.1");
}

/* The other end of a unix connection is another process' socket; nobody but the kernel knows which.
 */
static void client_of_a_path(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct uni_net_listener l;
	char dir[] = "/tmp/listenerXXXXXX";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), served, status;
	int ready[2], end[2];
	char byte;
	pid_t child;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 1), 0);
	uni_net_find_unix(un.sun_path, &l);
	assert_true(l.local && !l.has_client);
	assert_int_equal(uni_net_client_owner(&l), 0);
	assert_int_equal(pipe(ready) | pipe(end), 0);
	child = fork();
	if (child == 0) {
		int mine = socket(AF_UNIX, SOCK_STREAM, 0);

		(void)close(end[1]);
		if (connect(mine, (struct sockaddr *)&un, sizeof(un)) != 0)
			_exit(1);
		_exit(write(ready[1], "", 1) != 1 || read(end[0], &byte, 1) != 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	served = accept(fd, NULL, NULL);
	assert_true(served >= 0);
	uni_net_find_unix(un.sun_path, &l);
	assert_true(l.has_client);
	assert_int_equal(uni_net_client_owner(&l), child);
	(void)close(end[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)close(end[0]);
	(void)close(ready[0]);
	(void)close(ready[1]);
	(void)close(served);
	(void)close(fd);
	(void)unlink(un.sun_path);
	(void)rmdir(dir);
}

/* A QEMU whose stub was switched on listens at more than its monitor. */
static int bind_path(const char *dir, const char *name, char *path_ret, size_t cap)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
	(void)snprintf(path_ret, cap, "%s", un.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static void another_listener(void **state)
{
	char dir[] = "/tmp/listenerXXXXXX", path[64], other[64];
	struct uni_net_listener l;
	uint16_t port;
	int fd, more;

	assert_non_null(mkdtemp(dir));
	fd = bind_path(dir, "s", path, sizeof(path));
	more = bind_path(dir, "t", other, sizeof(other));
	assert_int_equal(listen(fd, 1), 0);
	uni_net_find_unix(path, &l);
	assert_false(uni_net_listens_beside(getpid(), l.inode)); /* the other has only a name */
	assert_int_equal(listen(more, 1), 0);
	assert_true(uni_net_listens_beside(getpid(), l.inode));
	assert_false(uni_net_listens_beside(getpid(), 0)); /* another process' monitor */
	(void)close(more);
	assert_false(uni_net_listens_beside(getpid(), l.inode));
	more = listen_at(AF_INET, "127.0.0.1", &port);
	assert_true(uni_net_listens_beside(getpid(), l.inode));
	(void)close(more);
	more = listen_at(AF_INET6, "::1", &port);
	assert_true(more < 0 || uni_net_listens_beside(getpid(), l.inode));
	if (more >= 0)
		(void)close(more);
	assert_false(uni_net_listens_beside(getpid(), l.inode));
	(void)close(fd);
	(void)unlink(path);
	(void)unlink(other);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(another_listener),
		cmocka_unit_test(each_family), cmocka_unit_test(client_of_a_path) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
