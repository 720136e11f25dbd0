/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gdb stub in a thread, for tests. It takes its input byte by byte as QEMU's does: the first byte
 * stops a running guest, '$' acknowledges the last packet. A test can tell it to lie.
 */
#ifndef UNI_TESTS_FAKE_STUB_H
#define UNI_TESTS_FAKE_STUB_H

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE_G_SIZE 608
#define FAKE_RAM    0x100000ull

struct fake_stub {
	/* Set before the start. */
	bool generic;	    /* no QEMU: none of its queries, and it wants each '+' */
	bool no_detach;	    /* does not know D */
	bool aarch64;	    /* its system registers are asked for one by one */
	bool no_tcr;	    /* and one of them is not there */
	bool processes;	    /* thread ids name a process, and D must */
	bool monitor;	    /* knows which threads run its vCPUs: 4711 and 4712 */
	bool kvm, tcg;	    /* it says which of the two runs the guest */
	const char *prefix; /* packets that begin so ... */
	const char *lie;    /* ... are answered by these bytes; "" silence, NULL hangs up */
	int truths;	    /* after so many true answers */
	bool starts_paused;
	int hits;	/* so often a vCPU runs into a breakpoint as soon as it goes on ... */
	bool both;	/* ... and the second vCPU, too */
	int stale;	/* so many stops of steps have an older reason: nothing was executed */
	int interrupts; /* so many steps end in an interrupt handler, which comes back */
	bool returns;	/* the instruction at a breakpoint is a return */

	uint64_t at[4];		    /* breakpoints, 0: none */
	uint64_t pc[3], sp_less[3]; /* of threads 1 and 2; pc 0: as ever */
	char log[128];		    /* Z, z, s and c as they came */
	_Atomic bool frozen;	    /* takes nothing in for as long as this is set */
	_Atomic bool running;
	_Atomic bool detached; /* after that QEMU's stub may be asked nothing */
	_Atomic bool crashed;
	_Atomic bool phys;
	int fd, peer; /* its end; ours for the test */
	bool pending; /* QEMU's last_packet */
	int state;    /* 0 idle, 1 line, 2 and 3 checksum */
	char line[512];
	size_t size;
	int thread, listed;
	pthread_t pthread;
};

static void fake_send(struct fake_stub *f, const char *bytes, size_t size)
{
	(void)!send(f->fd, bytes, size, MSG_NOSIGNAL);
}

static void fake_put(struct fake_stub *f, const char *payload)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = strlen(payload);
	char *b = malloc(n + 4);
	unsigned char sum = 0;

	b[0] = '$';
	memcpy(b + 1, payload, n);
	for (size_t i = 0; i < n; i++)
		sum = (unsigned char)(sum + (unsigned char)payload[i]);
	b[n + 1] = '#';
	b[n + 2] = digits[sum >> 4];
	b[n + 3] = digits[sum & 15];
	fake_send(f, b, n + 4);
	free(b);
	f->pending = true;
}

static void fake_stop(struct fake_stub *f)
{
	f->running = false;
	fake_put(f, "T02thread:01;");
}

/* Register n of thread t has the value 0x1000 * t + n, pc 0x401000 * t; cr0 says paging. */
static void fake_regs(struct fake_stub *f)
{
	unsigned char raw[FAKE_G_SIZE] = { 0 };
	char hex[2 * FAKE_G_SIZE + 1];
	size_t size = f->generic ? 560 : sizeof(raw);

	for (unsigned i = 0; i < 17; i++) {
		uint64_t v = 0x1000u * (unsigned)f->thread + i;

		if (i == 7)
			v -= f->sp_less[f->thread];
		if (i == 16)
			v = f->pc[f->thread] != 0 ? f->pc[f->thread]
						  : 0x401000u * (unsigned)f->thread;
		memcpy(raw + (size_t)8 * i, &v, sizeof(v));
	}
	raw[188] = 0x11;
	raw[191] = 0x80;
	for (size_t i = 0; i < size; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", raw[i]);
	fake_put(f, hex);
}

/* aarch64's: x0 to x30, sp, pc of 8 bytes with the same values, and pstate of 4. */
static void fake_a64_regs(struct fake_stub *f)
{
	char hex[2 * 268 + 1];

	for (unsigned i = 0; i < 33; i++) {
		uint64_t v = i == 32 ? 0x401000u * (unsigned)f->thread
				     : 0x1000u * (unsigned)f->thread + i;

		for (unsigned b = 0; b < 8; b++)
			(void)snprintf(
				hex + 2 * (8 * i + b), 3, "%02x", (unsigned)(v >> 8 * b & 255));
	}
	(void)snprintf(hex + 2 * 264, 9, "c5030000");
	fake_put(f, hex);
}

/* Their description, in pieces as large as the client asked for; register n has the value n. */
static bool fake_a64_packet(struct fake_stub *f)
{
	static const char xml[] =
		"<?xml version=\"1.0\"?><feature name=\"org.qemu.gdb.arm.sys.regs\">"
		"<reg name=\"TCR_EL1\" bitsize=\"64\" regnum=\"174\" group=\"cp_regs\"/>"
		"<reg name=\"SCTLR\" bitsize=\"64\" regnum=\"92\" group=\"cp_regs\"/>"
		"<reg name=\"TTBR0_EL1\" bitsize=\"64\" regnum=\"171\" group=\"cp_regs\"/>"
		"<reg name=\"TTBR1_EL1\" bitsize=\"64\" regnum=\"175\" group=\"cp_regs\"/>"
		"</feature>";
	char *at = strstr(f->line, "system-registers.xml:"), part[128], hex[17];
	const char *from = f->no_tcr ? strstr(xml, "<reg name=\"SCTLR") : xml;
	uint64_t offset = 0, len = 0;
	unsigned reg;

	if (strcmp(f->line, "g") == 0) {
		fake_a64_regs(f);
	} else if (sscanf(f->line, "p%x", &reg) == 1) {
		(void)snprintf(hex, sizeof(hex), "%02x00000000000000", reg & 255);
		fake_put(f, hex);
	} else if (at != NULL &&
		   sscanf(at, "system-registers.xml:%" SCNx64 ",%" SCNx64, &offset, &len) == 2 &&
		   offset <= strlen(from)) {
		len = len < 100 ? len : 100; /* a stub may send less than it is asked for */
		(void)snprintf(part, sizeof(part), "%c%.*s",
			strlen(from + offset) > len ? 'm' : 'l', (int)len, from + offset);
		fake_put(f, part);
	} else if (strncmp(f->line, "qXfer", 5) == 0) {
		fake_put(f, "l<target><architecture>aarch64</architecture></target>");
	} else {
		return false;
	}
	return true;
}

static void fake_memory(struct fake_stub *f)
{
	char hex[4097];
	uint64_t addr, len;

	if (sscanf(f->line, "m%" SCNx64 ",%" SCNx64, &addr, &len) != 2 || addr >= FAKE_RAM ||
		len > FAKE_RAM - addr || len > 2048) {
		fake_put(f, "E14");
		return;
	}
	hex[0] = '\0';
	for (size_t i = 0; i < len; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", (unsigned)((addr + i) & 255));
	fake_put(f, hex);
}

struct fake_answer {
	const char *prefix, *qemu, *generic;
};

static bool fake_fixed(struct fake_stub *f)
{
	static const struct fake_answer answers[] = {
		{ "qSupported", "PacketSize=1000;qXfer:features:read+;vContSupported+",
			"PacketSize=3ff" },
		{ "qfThreadInfo", "m01", "m01,02" },
		{ "qqemu.", "0", "" },
		{ "qXfer", "l<target><architecture>i386:x86-64</architecture></target>", "" },
		{ "qThreadExtraInfo,01", "4350552330205b72756e6e696e675d", "" },
		{ "qThreadExtraInfo,02", "4350552331205b68616c746564205d", "" },
		{ "qC", "QC01", "" },
		{ "vCont?", "vCont;c;C;s;S", "vCont;c;s" },
		{ "?", "T05thread:01;", "S05" },
		{ "Hc", "OK", "OK" },
	};

	if (f->processes && strcmp(f->line, "qfThreadInfo") == 0) {
		fake_put(f, "mp1.01");
		return true;
	}
	if (f->monitor && strcmp(f->line, "qRcmd,696e666f2063707573") == 0) {
		fake_put(f, "O2a204350552023303a207468726561645f69643d343731310d0a");
		fake_put(f, "O20204350552023313a207468726561645f69643d343731320d0a");
		fake_put(f, "OK");
		return true;
	}
	if (f->monitor && strcmp(f->line, "qRcmd,696e666f206b766d") == 0) {
		/* kvm support: enabled, or disabled */
		fake_put(f, f->kvm ? "O6b766d20737570706f72743a20656e61626c65640d0a"
				   : "O6b766d20737570706f72743a2064697361626c65640d0a");
		fake_put(f, "OK");
		return true;
	}
	if (f->monitor && strcmp(f->line, "qRcmd,696e666f206a6974") == 0) {
		/* ...\nTB count 4711, or: ... only available with accel=tcg */
		fake_put(f, f->tcg ? "O2e2e2e0a544220636f756e7420343731310a"
				   : "O6f6e6c7920617661696c61626c652077697468206163"
				     "63656c3d746367");
		fake_put(f, "OK");
		return true;
	}
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (strncmp(f->line, answers[i].prefix, strlen(answers[i].prefix)) == 0) {
			fake_put(f, f->generic ? answers[i].generic : answers[i].qemu);
			return true;
		}
	}
	return false;
}

static void fake_log(struct fake_stub *f, char c)
{
	size_t n = strlen(f->log);

	if (n + 1 < sizeof(f->log))
		f->log[n] = c;
}

static void fake_trap(struct fake_stub *f, int thread)
{
	f->running = false;
	fake_put(f, thread == 1 ? "T05thread:01;" : "T05thread:02;");
}

/* Breakpoints, of which the first is the one that is run into. */
static void fake_break(struct fake_stub *f)
{
	bool found = false;
	uint64_t addr = 0;

	fake_log(f, f->line[0]);
	(void)sscanf(f->line + 1, "1,%" SCNx64, &addr);
	for (size_t i = 0; i < 4 && !found; i++) {
		found = f->at[i] == (f->line[0] == 'Z' ? 0 : addr);
		if (found)
			f->at[i] = f->line[0] == 'Z' ? addr : 0;
	}
	fake_put(f, found ? "OK" : "E22");
}

static void fake_go_on(struct fake_stub *f)
{
	uint64_t addr = f->at[0];
	bool back = f->sp_less[1] != 0 && !f->returns;

	fake_log(f, 'c');
	f->sp_less[1] = 0;
	f->running = true;
	if (addr == 0 || (!back && f->hits == 0))
		return;
	f->hits -= !back;
	f->pc[1] = addr;
	if (f->both)
		f->pc[2] = addr;
	fake_trap(f, 1);
}

static void fake_step(struct fake_stub *f)
{
	int t = f->line[strlen(f->line) - 1] - '0';

	fake_log(f, 's');
	if (f->stale > 0) {
		f->stale--;
	} else if (f->interrupts > 0) {
		f->interrupts--;
		f->pc[t] = 0x900000;
		f->sp_less[t] = 40;
	} else if (f->returns) {
		f->pc[t] = 0x900000;
		f->sp_less[t] = -8ULL;
	} else {
		f->pc[t] += 4;
	}
	fake_trap(f, t);
}

/* False: it hangs up. */
static bool fake_packet(struct fake_stub *f)
{
	/* QEMU 7.2 then follows a null pointer. */
	if (!f->generic && f->detached && f->line[0] != 'c') {
		f->crashed = true;
		return false;
	}
	if (f->prefix != NULL && strncmp(f->line, f->prefix, strlen(f->prefix)) == 0 &&
		f->truths-- <= 0) {
		if (f->lie == NULL)
			return false;
		if (f->lie[0] != '\0') {
			fake_send(f, f->lie, strlen(f->lie));
			f->pending = true;
		}
		return true;
	}
	if (f->aarch64 && fake_a64_packet(f))
		return true;
	if (fake_fixed(f)) {
		f->listed = 0;
	} else if (strcmp(f->line, "qsThreadInfo") == 0) {
		fake_put(f, f->listed++ != 0 || f->generic ? "l" : f->processes ? "mp1.02" : "m02");
	} else if (strncmp(f->line, "Hg", 2) == 0) {
		f->thread = f->line[f->size - 1] - '0'; /* 01 or 02, p1.01 or p1.02 */
		fake_put(f, "OK");
	} else if (strcmp(f->line, "g") == 0) {
		fake_regs(f);
	} else if (f->line[0] == 'm') {
		fake_memory(f);
	} else if (strncmp(f->line, "Qqemu.PhyMemMode:", 17) == 0) {
		f->phys = f->line[17] == '1';
		fake_put(f, "OK");
	} else if (strcmp(f->line, "c") == 0 || strcmp(f->line, "vCont;c") == 0) {
		fake_go_on(f);
	} else if (strncmp(f->line, "vCont;s:", 8) == 0) {
		fake_step(f);
	} else if (strncmp(f->line + 1, "1,", 2) == 0) {
		fake_break(f);
	} else if (f->processes && strcmp(f->line, "D") == 0) {
		fake_put(f, "E22");
	} else if (strcmp(f->line, f->processes ? "D;1" : "D") == 0 && !f->no_detach) {
		f->running = f->detached = true;
		fake_put(f, "OK");
	} else {
		fake_put(f, "");
	}
	return true;
}

static bool fake_line(struct fake_stub *f)
{
	fake_send(f, "+", 1);
	f->state = 0;
	f->line[f->size] = '\0';
	return fake_packet(f);
}

static bool fake_byte(struct fake_stub *f, char c)
{
	if (f->pending) {
		if (c == '+' || c == '$')
			f->pending = false;
		if (c != '$')
			return true;
	}
	if (f->running) {
		fake_stop(f);
		return true;
	}
	if (f->state == 0) {
		f->state = c == '$';
		f->size = 0;
	} else if (f->state == 1 && c == '#') {
		f->state = 2;
	} else if (f->state == 1 && f->size < sizeof(f->line) - 1) {
		f->line[f->size++] = c;
	} else if (f->state == 2) {
		f->state = 3;
	} else if (f->state == 3) {
		return fake_line(f);
	}
	return true;
}

static void *fake_main(void *arg)
{
	struct fake_stub *f = arg;
	char buf[4096];
	ssize_t n;

	/* A client that connects stops the guest. */
	if (!f->generic && !f->starts_paused)
		fake_stop(f);
	while ((n = recv(f->fd, buf, sizeof(buf), 0)) > 0) {
		while (f->frozen)
			(void)usleep(1000);
		for (ssize_t i = 0; i < n; i++) {
			if (!fake_byte(f, buf[i])) {
				(void)shutdown(f->fd, SHUT_RDWR);
				return NULL;
			}
		}
	}
	return NULL;
}

static void fake_start(struct fake_stub *f)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	f->fd = pair[0];
	f->peer = pair[1];
	f->thread = 1;
	f->running = false;
	if (pthread_create(&f->pthread, NULL, fake_main, f) != 0)
		abort();
}

/* After the other side has closed. */
static void fake_join(struct fake_stub *f)
{
	(void)pthread_join(f->pthread, NULL);
	(void)close(f->fd);
}

#endif
