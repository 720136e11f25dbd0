/* SPDX-License-Identifier: BSD-2-Clause */
#include "syscalls/flags.h"

#include <inttypes.h>

/* Numbers as Linux has them on x86_64. aarch64 has others (O_DIRECTORY and similar), but Unikraft
 * and Nanos print x86_64's. */
struct word {
	uint64_t v;
	const char *name;
};

struct kind {
	char letter;
	bool bits;		   /* may be several; else just one */
	uint64_t mask;		   /* of the bits that are one choice: an access mode, a type */
	const struct word *choice; /* ends with a name of NULL */
	const struct word *flag;
	const char *zero; /* name of the value without any bit, NULL: 0 */
};

#define END             \
	{               \
		0, NULL \
	}

static const struct word access_modes[] = { { 0, "O_RDONLY" }, { 1, "O_WRONLY" }, { 2, "O_RDWR" },
	END };
static const struct word open_flags[] = { { 0100, "O_CREAT" }, { 0200, "O_EXCL" },
	{ 0400, "O_NOCTTY" }, { 01000, "O_TRUNC" }, { 02000, "O_APPEND" }, { 04000, "O_NONBLOCK" },
	{ 04010000, "O_SYNC" }, { 010000, "O_DSYNC" }, { 020000, "O_ASYNC" },
	{ 040000, "O_DIRECT" }, { 0100000, "O_LARGEFILE" }, { 020200000, "O_TMPFILE" },
	{ 0200000, "O_DIRECTORY" }, { 0400000, "O_NOFOLLOW" }, { 01000000, "O_NOATIME" },
	{ 02000000, "O_CLOEXEC" }, { 010000000, "O_PATH" }, END };
static const struct word prot[] = { { 1, "PROT_READ" }, { 2, "PROT_WRITE" }, { 4, "PROT_EXEC" },
	{ 0x01000000, "PROT_GROWSDOWN" }, { 0x02000000, "PROT_GROWSUP" }, END };
static const struct word map_types[] = { { 1, "MAP_SHARED" }, { 2, "MAP_PRIVATE" },
	{ 3, "MAP_SHARED_VALIDATE" }, END };
static const struct word map_flags[] = { { 0x10, "MAP_FIXED" }, { 0x20, "MAP_ANONYMOUS" },
	{ 0x40, "MAP_32BIT" }, { 0x100, "MAP_GROWSDOWN" }, { 0x800, "MAP_DENYWRITE" },
	{ 0x1000, "MAP_EXECUTABLE" }, { 0x2000, "MAP_LOCKED" }, { 0x4000, "MAP_NORESERVE" },
	{ 0x8000, "MAP_POPULATE" }, { 0x10000, "MAP_NONBLOCK" }, { 0x20000, "MAP_STACK" },
	{ 0x40000, "MAP_HUGETLB" }, { 0x80000, "MAP_SYNC" }, { 0x100000, "MAP_FIXED_NOREPLACE" },
	END };
static const struct word whence[] = { { 0, "SEEK_SET" }, { 1, "SEEK_CUR" }, { 2, "SEEK_END" },
	{ 3, "SEEK_DATA" }, { 4, "SEEK_HOLE" }, END };
static const struct word access_how[] = { { 4, "R_OK" }, { 2, "W_OK" }, { 1, "X_OK" }, END };
static const struct word signals[] = { { 1, "SIGHUP" }, { 2, "SIGINT" }, { 3, "SIGQUIT" },
	{ 4, "SIGILL" }, { 5, "SIGTRAP" }, { 6, "SIGABRT" }, { 7, "SIGBUS" }, { 8, "SIGFPE" },
	{ 9, "SIGKILL" }, { 10, "SIGUSR1" }, { 11, "SIGSEGV" }, { 12, "SIGUSR2" },
	{ 13, "SIGPIPE" }, { 14, "SIGALRM" }, { 15, "SIGTERM" }, { 17, "SIGCHLD" },
	{ 18, "SIGCONT" }, { 19, "SIGSTOP" }, { 20, "SIGTSTP" }, { 21, "SIGTTIN" },
	{ 22, "SIGTTOU" }, { 23, "SIGURG" }, { 24, "SIGXCPU" }, { 25, "SIGXFSZ" },
	{ 26, "SIGVTALRM" }, { 27, "SIGPROF" }, { 28, "SIGWINCH" }, { 29, "SIGIO" },
	{ 30, "SIGPWR" }, { 31, "SIGSYS" }, END };
static const struct word mask_how[] = { { 0, "SIG_BLOCK" }, { 1, "SIG_UNBLOCK" },
	{ 2, "SIG_SETMASK" }, END };
static const struct word clocks[] = { { 0, "CLOCK_REALTIME" }, { 1, "CLOCK_MONOTONIC" },
	{ 2, "CLOCK_PROCESS_CPUTIME_ID" }, { 3, "CLOCK_THREAD_CPUTIME_ID" },
	{ 4, "CLOCK_MONOTONIC_RAW" }, { 5, "CLOCK_REALTIME_COARSE" },
	{ 6, "CLOCK_MONOTONIC_COARSE" }, { 7, "CLOCK_BOOTTIME" }, END };
static const struct word domains[] = { { 0, "AF_UNSPEC" }, { 1, "AF_UNIX" }, { 2, "AF_INET" },
	{ 10, "AF_INET6" }, { 16, "AF_NETLINK" }, { 17, "AF_PACKET" }, { 40, "AF_VSOCK" }, END };
static const struct word socket_types[] = { { 1, "SOCK_STREAM" }, { 2, "SOCK_DGRAM" },
	{ 3, "SOCK_RAW" }, { 4, "SOCK_RDM" }, { 5, "SOCK_SEQPACKET" }, { 10, "SOCK_PACKET" }, END };
static const struct word socket_flags[] = { { 04000, "SOCK_NONBLOCK" },
	{ 02000000, "SOCK_CLOEXEC" }, END };
static const struct word message_flags[] = { { 1, "MSG_OOB" }, { 2, "MSG_PEEK" },
	{ 4, "MSG_DONTROUTE" }, { 8, "MSG_CTRUNC" }, { 0x20, "MSG_TRUNC" },
	{ 0x40, "MSG_DONTWAIT" }, { 0x80, "MSG_EOR" }, { 0x100, "MSG_WAITALL" },
	{ 0x800, "MSG_CONFIRM" }, { 0x2000, "MSG_ERRQUEUE" }, { 0x4000, "MSG_NOSIGNAL" },
	{ 0x8000, "MSG_MORE" }, { 0x10000, "MSG_WAITFORONE" }, { 0x40000000, "MSG_CMSG_CLOEXEC" },
	END };
static const struct word shut_how[] = { { 0, "SHUT_RD" }, { 1, "SHUT_WR" }, { 2, "SHUT_RDWR" },
	END };
static const struct word fcntl_cmds[] = { { 0, "F_DUPFD" }, { 1, "F_GETFD" }, { 2, "F_SETFD" },
	{ 3, "F_GETFL" }, { 4, "F_SETFL" }, { 5, "F_GETLK" }, { 6, "F_SETLK" }, { 7, "F_SETLKW" },
	{ 8, "F_SETOWN" }, { 9, "F_GETOWN" }, { 1030, "F_DUPFD_CLOEXEC" }, { 1031, "F_SETPIPE_SZ" },
	{ 1032, "F_GETPIPE_SZ" }, END };
static const struct word clone_flags[] = { { 0x100, "CLONE_VM" }, { 0x200, "CLONE_FS" },
	{ 0x400, "CLONE_FILES" }, { 0x800, "CLONE_SIGHAND" }, { 0x1000, "CLONE_PIDFD" },
	{ 0x2000, "CLONE_PTRACE" }, { 0x4000, "CLONE_VFORK" }, { 0x8000, "CLONE_PARENT" },
	{ 0x10000, "CLONE_THREAD" }, { 0x20000, "CLONE_NEWNS" }, { 0x40000, "CLONE_SYSVSEM" },
	{ 0x80000, "CLONE_SETTLS" }, { 0x100000, "CLONE_PARENT_SETTID" },
	{ 0x200000, "CLONE_CHILD_CLEARTID" }, { 0x400000, "CLONE_DETACHED" },
	{ 0x800000, "CLONE_UNTRACED" }, { 0x1000000, "CLONE_CHILD_SETTID" }, END };
static const struct word epoll_ops[] = { { 1, "EPOLL_CTL_ADD" }, { 2, "EPOLL_CTL_DEL" },
	{ 3, "EPOLL_CTL_MOD" }, END };
static const struct word futex_ops[] = { { 0, "FUTEX_WAIT" }, { 1, "FUTEX_WAKE" },
	{ 2, "FUTEX_FD" }, { 3, "FUTEX_REQUEUE" }, { 4, "FUTEX_CMP_REQUEUE" },
	{ 5, "FUTEX_WAKE_OP" }, { 6, "FUTEX_LOCK_PI" }, { 7, "FUTEX_UNLOCK_PI" },
	{ 8, "FUTEX_TRYLOCK_PI" }, { 9, "FUTEX_WAIT_BITSET" }, { 10, "FUTEX_WAKE_BITSET" },
	{ 11, "FUTEX_WAIT_REQUEUE_PI" }, { 12, "FUTEX_CMP_REQUEUE_PI" }, { 13, "FUTEX_LOCK_PI2" },
	END };
static const struct word futex_flags[] = { { 0x80, "FUTEX_PRIVATE_FLAG" },
	{ 0x100, "FUTEX_CLOCK_REALTIME" }, END };
static const struct word at_flags[] = { { 0x100, "AT_SYMLINK_NOFOLLOW" }, { 0x200, "AT_REMOVEDIR" },
	{ 0x400, "AT_SYMLINK_FOLLOW" }, { 0x800, "AT_NO_AUTOMOUNT" }, { 0x1000, "AT_EMPTY_PATH" },
	END };
static const struct word advices[] = { { 0, "MADV_NORMAL" }, { 1, "MADV_RANDOM" },
	{ 2, "MADV_SEQUENTIAL" }, { 3, "MADV_WILLNEED" }, { 4, "MADV_DONTNEED" },
	{ 8, "MADV_FREE" }, { 14, "MADV_HUGEPAGE" }, { 15, "MADV_NOHUGEPAGE" }, END };
static const struct word resources[] = { { 0, "RLIMIT_CPU" }, { 1, "RLIMIT_FSIZE" },
	{ 2, "RLIMIT_DATA" }, { 3, "RLIMIT_STACK" }, { 4, "RLIMIT_CORE" }, { 5, "RLIMIT_RSS" },
	{ 6, "RLIMIT_NPROC" }, { 7, "RLIMIT_NOFILE" }, { 8, "RLIMIT_MEMLOCK" }, { 9, "RLIMIT_AS" },
	END };
static const struct word wait_options[] = { { 1, "WNOHANG" }, { 2, "WSTOPPED" }, { 4, "WEXITED" },
	{ 8, "WCONTINUED" }, { 0x1000000, "WNOWAIT" }, END };

static const struct kind kinds[] = {
	{ 'O', true, 3, access_modes, open_flags, NULL },
	{ 'P', true, 0, NULL, prot, "PROT_NONE" },
	{ 'M', true, 3, map_types, map_flags, NULL },
	{ 'w', false, UINT32_MAX, whence, NULL, NULL },
	{ 'A', true, 0, NULL, access_how, "F_OK" },
	{ 'S', false, UINT32_MAX, signals, NULL, NULL },
	{ 'h', false, UINT32_MAX, mask_how, NULL, NULL },
	{ 'K', false, UINT32_MAX, clocks, NULL, NULL },
	{ 'D', false, UINT32_MAX, domains, NULL, NULL },
	{ 'T', true, 017, socket_types, socket_flags, NULL },
	{ 'G', true, 0, NULL, message_flags, NULL },
	{ 'H', false, UINT32_MAX, shut_how, NULL, NULL },
	{ 'c', false, UINT32_MAX, fcntl_cmds, NULL, NULL },
	{ 'C', true, 0xff, signals, clone_flags, NULL },
	{ 'E', false, UINT32_MAX, epoll_ops, NULL, NULL },
	{ 'X', true, 0x7f, futex_ops, futex_flags, NULL },
	{ 'B', true, 0, NULL, at_flags, NULL },
	{ 'a', false, UINT32_MAX, advices, NULL, NULL },
	{ 'r', false, UINT32_MAX, resources, NULL, NULL },
	{ 'W', true, 0, NULL, wait_options, NULL },
};

static const char *name_of(const struct word *w, uint64_t v)
{
	for (; w != NULL && w->name != NULL; w++) {
		if (w->v == v)
			return w->name;
	}
	return NULL;
}

static void add_flag(struct uni_strbuf *out, size_t from, const char *name)
{
	uni_strbuf_adds(out, out->len != from ? "|" : "");
	uni_strbuf_adds(out, name);
}

static void put_flags(const struct kind *k, uint64_t v, struct uni_strbuf *out)
{
	const size_t from = out->len;
	uint64_t rest = (uint32_t)v & ~k->mask;
	const char *name = k->mask != 0 ? name_of(k->choice, v & k->mask) : NULL;

	if (name != NULL)
		add_flag(out, from, name);
	else
		rest |= v & k->mask;
	for (const struct word *w = k->flag; w != NULL && w->name != NULL; w++) {
		if ((rest & w->v) == w->v) {
			add_flag(out, from, w->name);
			rest &= ~w->v;
		}
	}
	if (rest != 0) {
		uni_strbuf_adds(out, out->len != from ? "|" : "");
		uni_strbuf_addf(out, k->bits ? "%#" PRIx64 : "%" PRIu64, rest);
	} else if (out->len == from) {
		uni_strbuf_adds(out, k->zero != NULL ? k->zero : "0");
	}
}

void uni_sysc_put_flags(char kind, uint64_t v, struct uni_strbuf *out)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].letter == kind) {
			put_flags(&kinds[i], v, out);
			return;
		}
	}
	uni_strbuf_addf(out, "%#" PRIx64, v);
}
