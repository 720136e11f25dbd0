/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/listener.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

#define SO_ACCEPTCON 0x10000 /* __SO_ACCEPTCON in the Flags column of /proc/net/unix */
#define TCP_LISTEN   0x0a    /* st column of /proc/net/tcp */
#define SOCKETS_MAX  1024    /* of one process */

static void cleanup_dir(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

static bool owns_socket(const char *pid, uint64_t inode)
{
	char dir[64], want[40];
	_cleanup_(cleanup_dir) DIR *d = NULL;
	struct dirent *e;

	(void)snprintf(dir, sizeof(dir), "/proc/%.20s/fd", pid);
	(void)snprintf(want, sizeof(want), "socket:[%" PRIu64 "]", inode);
	d = opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		char link[64];
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		if (n < 0)
			continue;
		link[n] = '\0';
		if (strcmp(link, want) == 0)
			return true;
	}
	return false;
}

int uni_net_socket_owner(uint64_t inode)
{
	_cleanup_(cleanup_dir) DIR *d = opendir("/proc");
	struct dirent *e;

	while (inode != 0 && d != NULL && (e = readdir(d)) != NULL) {
		uint64_t pid;

		if (uni_parse_u64(e->d_name, &pid) && pid <= INT32_MAX &&
			owns_socket(e->d_name, inode))
			return (int)pid;
	}
	return 0;
}

/* Cuts the next word off a line of a /proc table; "" at its end. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " "), *end = word + strcspn(word, " \n");

	*line = *end != '\0' ? end + 1 : end;
	*end = '\0';
	return word;
}

/* A word of at most `size` characters that is a hex number. */
static bool hex_part(const char *word, size_t size, uint64_t *ret)
{
	char text[20];

	if (size == 0 || size > 16)
		return false;
	(void)snprintf(text, sizeof(text), "0x%.*s", (int)size, word);
	return uni_parse_u64(text, ret);
}

static bool hex_word(const char *word, uint64_t *ret)
{
	return hex_part(word, strlen(word), ret);
}

/* One line of /proc/net/unix: "Num: RefCount Protocol Flags Type St Inode Path". */
struct unix_line {
	uint64_t flags, inode;
	char path[120]; /* sun_path has 108 bytes */
};

static bool parse_unix_line(char *line, struct unix_line *ret)
{
	char *w[7];
	size_t len;

	for (size_t i = 0; i < uni_array_len(w); i++)
		w[i] = next_word(&line);
	len = strcspn(line, "\n"); /* the rest: a path may have blanks */
	if (!hex_word(w[3], &ret->flags) || !uni_parse_u64(w[6], &ret->inode) || len == 0 ||
		len >= sizeof(ret->path))
		return false;
	memcpy(ret->path, line, len);
	ret->path[len] = '\0';
	return true;
}

/* Is the name that a process bound (perhaps relative to its own folder) this file? */
static bool same_file(const struct unix_line *l, const struct stat *want)
{
	char path[200];
	struct stat st;

	if (l->path[0] == '/')
		(void)snprintf(path, sizeof(path), "%s", l->path);
	else
		(void)snprintf(path, sizeof(path), "/proc/%d/cwd/%s",
			uni_net_socket_owner(l->inode), l->path);
	return stat(path, &st) == 0 && st.st_ino == want->st_ino && st.st_dev == want->st_dev;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

void uni_net_find_unix(const char *path, struct uni_net_listener *ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/net/unix", "re");
	char line[512], bound[120] = "";
	struct unix_line l;
	struct stat want;

	memset(ret, 0, sizeof(*ret));
	if (f == NULL || stat(path, &want) != 0)
		return;
	while (!ret->local && fgets(line, sizeof(line), f) != NULL) {
		if (!parse_unix_line(line, &l) || (l.flags & SO_ACCEPTCON) == 0 ||
			strcmp(base_name(l.path), base_name(path)) != 0 || !same_file(&l, &want))
			continue;
		ret->local = true;
		ret->inode = l.inode;
		memcpy(bound, l.path, sizeof(bound));
	}
	/* Accepted and waiting connections have the name of their listener. */
	rewind(f);
	while (ret->local && fgets(line, sizeof(line), f) != NULL) {
		if (!parse_unix_line(line, &l) || (l.flags & SO_ACCEPTCON) != 0 ||
			strcmp(l.path, bound) != 0)
			continue;
		ret->has_client = true;
		if (ret->client == 0)
			ret->client = l.inode;
	}
}

void uni_net_bound_name(uint64_t inode, char *ret, size_t cap)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	struct unix_line l;

	ret[0] = '\0';
	while (f != NULL && ret[0] == '\0' && fgets(line, sizeof(line), f) != NULL) {
		if (parse_unix_line(line, &l) && l.inode == inode && strlen(l.path) < cap)
			(void)snprintf(ret, cap, "%s", l.path);
	}
}

/* One line of /proc/net/tcp or tcp6; addresses as in memory, 4 bytes at a time. */
struct tcp_line {
	uint8_t addr[16];
	size_t addr_size;
	uint64_t port, state, inode;
};

/* "0100007F:04D2" */
static bool parse_tcp_addr(char *word, struct tcp_line *ret)
{
	char *colon = strchr(word, ':');

	if (colon == NULL || !hex_word(colon + 1, &ret->port))
		return false;
	ret->addr_size = (size_t)(colon - word) / 2;
	if (ret->addr_size != 4 && ret->addr_size != 16)
		return false;
	for (size_t i = 0; i < ret->addr_size; i += 4) {
		uint64_t v = 0;
		uint32_t part;

		if (!hex_part(word + 2 * i, 8, &v))
			return false;
		part = (uint32_t)v;
		memcpy(ret->addr + i, &part, 4);
	}
	return true;
}

/* "sl: local remote st tx:rx tr:when retrnsmt uid timeout inode ..." */
static bool parse_tcp_line(char *line, struct tcp_line *ret)
{
	char *w[10];

	for (size_t i = 0; i < uni_array_len(w); i++)
		w[i] = next_word(&line);
	return hex_word(w[3], &ret->state) && uni_parse_u64(w[9], &ret->inode) &&
	       parse_tcp_addr(w[1], ret);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != 0)
			return false;
	}
	return true;
}

/* An address belongs to this host if it can be bound. */
static bool is_ours(const struct sockaddr_storage *sa, socklen_t len)
{
	struct sockaddr_storage any = *sa;
	_cleanup_close_ int fd = socket(sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sa->ss_family == AF_INET)
		((struct sockaddr_in *)&any)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&any)->sin6_port = 0;
	return fd >= 0 && bind(fd, (struct sockaddr *)&any, len) == 0;
}

struct tcp_want {
	const uint8_t *addr;
	size_t addr_size;
	unsigned port;
};

/*
 * A wildcard listener of IPv6 usually serves IPv4, too; "::ffff:a.b.c.d" is IPv4 in an IPv6 table.
 */
static bool tcp_matches(const struct tcp_line *l, const struct tcp_want *w)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (l->port != w->port)
		return false;
	if (is_zero(l->addr, l->addr_size))
		return l->addr_size == 16 || w->addr_size == 4;
	if (l->addr_size == w->addr_size)
		return memcmp(l->addr, w->addr, l->addr_size) == 0;
	return l->addr_size == 16 && memcmp(l->addr, mapped, sizeof(mapped)) == 0 &&
	       memcmp(l->addr + 12, w->addr, 4) == 0;
}

static void scan_tcp(const char *table, const struct tcp_want *w, struct uni_net_listener *ret)
{
	_cleanup_fclose_ FILE *f = fopen(table, "re");
	char line[512];
	struct tcp_line l;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (!parse_tcp_line(line, &l) || !tcp_matches(&l, w))
			continue;
		if (l.state == TCP_LISTEN) {
			ret->local = true;
			ret->inode = l.inode;
		} else if (l.inode != 0) {
			/* Sockets in TIME_WAIT and the like have no inode. */
			ret->has_client = true;
		}
	}
}

static void find_tcp(const struct sockaddr_storage *sa, socklen_t len, struct uni_net_listener *ret)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	struct tcp_want w;

	if (sa->ss_family == AF_INET)
		w = (struct tcp_want){ (const uint8_t *)&in->sin_addr, 4, ntohs(in->sin_port) };
	else
		w = (struct tcp_want){ (const uint8_t *)&in6->sin6_addr, 16,
			ntohs(in6->sin6_port) };
	if (!is_ours(sa, len))
		return;
	scan_tcp("/proc/net/tcp", &w, ret);
	scan_tcp("/proc/net/tcp6", &w, ret);
}

void uni_net_find_listener(const struct uni_net_addr *addr, struct uni_net_listener *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < addr->nr && !ret->local; i++) {
		const struct sockaddr_storage *sa = &addr->at[i].sa;

		memset(ret, 0, sizeof(*ret));
		if (sa->ss_family == AF_UNIX)
			uni_net_find_unix(((const struct sockaddr_un *)sa)->sun_path, ret);
		else if (sa->ss_family == AF_INET || sa->ss_family == AF_INET6)
			find_tcp(sa, addr->at[i].len, ret);
	}
	if (!ret->local)
		ret->has_client = false;
}

struct sockets {
	uint64_t inode[SOCKETS_MAX];
	size_t nr;
};

static void list_sockets(int pid, struct sockets *ret)
{
	char dir[32], link[64];
	_cleanup_(cleanup_dir) DIR *d = NULL;
	struct dirent *e;

	(void)snprintf(dir, sizeof(dir), "/proc/%d/fd", pid);
	d = opendir(dir);
	ret->nr = 0;
	while (d != NULL && (e = readdir(d)) != NULL) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		if (n < 2 || strncmp(link, "socket:[", 8) != 0)
			continue;
		link[n - 1] = '\0'; /* the bracket */
		if (ret->nr < SOCKETS_MAX && uni_parse_u64(link + 8, &ret->inode[ret->nr]))
			ret->nr++;
	}
}

static bool has_socket(const struct sockets *all, uint64_t inode)
{
	for (size_t i = 0; i < all->nr; i++) {
		if (all->inode[i] == inode)
			return true;
	}
	return false;
}

/* A table of the process' own network namespace: unix, tcp or tcp6. */
static bool listens_in(int pid, const char *table, const struct sockets *all, uint64_t but)
{
	bool is_unix = strcmp(table, "unix") == 0;
	_cleanup_fclose_ FILE *f = NULL;
	char path[48], line[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, table);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		struct unix_line u;
		struct tcp_line t;
		uint64_t inode = 0;

		if (is_unix && parse_unix_line(line, &u) && (u.flags & SO_ACCEPTCON) != 0)
			inode = u.inode;
		else if (!is_unix && parse_tcp_line(line, &t) && t.state == TCP_LISTEN)
			inode = t.inode;
		if (inode != 0 && inode != but && has_socket(all, inode))
			return true;
	}
	return false;
}

bool uni_net_listens_beside(int pid, uint64_t inode)
{
	struct sockets all;

	list_sockets(pid, &all);
	return has_socket(&all, inode) &&
	       (listens_in(pid, "unix", &all, inode) || listens_in(pid, "tcp", &all, inode) ||
		       listens_in(pid, "tcp6", &all, inode));
}
