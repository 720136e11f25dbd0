/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/peer.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"

#define TABLE_MAX ((size_t)64 << 20)

enum { LOCAL = 1, REMOTE = 2, STATE = 3, UID = 7, INODE = 9, NR_WORDS };

/* "sl: local remote st tx:rx tr:when retrnsmt uid timeout inode ..." */
static bool split_line(char *line, char *word[NR_WORDS])
{
	char *save = NULL;

	for (unsigned i = 0; i < NR_WORDS; i++) {
		word[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (word[i] == NULL)
			return false;
	}
	return true;
}

/* `addr` and `port` are in network byte order. */
static bool find_peer_uid(char *table, uint32_t addr, uint16_t port, uint16_t our_port, uid_t *ret)
{
	/* The kernel prints an address in words of this machine's byte order. */
	char from[2][48], to[2][48], *save = NULL, *word[NR_WORDS];
	const char *map = "0000000000000000FFFF0000";
	uint32_t ours = htonl(INADDR_LOOPBACK);
	uint64_t uid, inode;

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(from[i], sizeof(from[i]), "%s%08" PRIX32 ":%04X", i != 0 ? map : "",
			addr, ntohs(port));
		(void)snprintf(to[i], sizeof(to[i]), "%s%08" PRIX32 ":%04X", i != 0 ? map : "",
			ours, our_port);
	}
	for (char *l = strtok_r(table, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
		if (!split_line(l, word) || strcmp(word[STATE], "01") != 0)
			continue;
		for (unsigned i = 0; i < 2; i++) {
			/* A socket that its process closed is shown as root's, without inode. */
			if (strcmp(word[LOCAL], from[i]) == 0 && strcmp(word[REMOTE], to[i]) == 0 &&
				uni_parse_u64(word[UID], &uid) && uid < UINT32_MAX &&
				uni_parse_u64(word[INODE], &inode) && inode != 0) {
				*ret = (uid_t)uid;
				return true;
			}
		}
	}
	return false;
}

bool uni_peer_uid(const struct sockaddr *peer, uint16_t port, uid_t *ret)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	struct sockaddr_in from;

	if (peer == NULL || peer->sa_family != AF_INET)
		return false;
	memcpy(&from, peer, sizeof(from));
	for (unsigned i = 0; i < uni_array_len(tables); i++) {
		_cleanup_free_ char *text = NULL;
		size_t size;

		if (uni_read_file(tables[i], TABLE_MAX, &text, &size, NULL) == 0 &&
			find_peer_uid(text, from.sin_addr.s_addr, from.sin_port, port, ret))
			return true;
	}
	return false;
}
