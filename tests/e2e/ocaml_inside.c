/* SPDX-License-Identifier: BSD-2-Clause */
/* For ocaml_chains.py: the program takes samples of itself, with its stack, and gives them away on
 * the unix socket PORT. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#include <caml/version.h>
#if OCAML_VERSION >= 50000
#define CAML_INTERNALS
#include <caml/domain.h>
#include <caml/fiber.h>
#endif

#include "uniscope/sample.h"
#include "uniscope/stream.h"
#include "uniscope/trace.h"

#define TICK_US 2000
#define RING	(1u << 20)

extern void *__libc_stack_end;

static struct uni_trace_sampler sampler;
static struct uni_stream stream;
static uint8_t ring[RING] __attribute__((aligned(UNI_TRACE_SUB_SIZE)));
static int listener, host = -1;

static unsigned read_port(void *ctx, void *buf, unsigned size)
{
	ssize_t n = recv(host, buf, size, MSG_DONTWAIT);

	/* It has gone away: the next one may connect. */
	if (n == 0 && size != 0) {
		(void)close(host);
		host = -1;
	}
	return n > 0 ? (unsigned)n : 0;
}

static unsigned write_port(void *ctx, const void *data, unsigned size)
{
	ssize_t n = send(host, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	return n > 0 ? (unsigned)n : 0;
}

#if OCAML_VERSION >= 50000
/* A call of C that allocates nothing leaves the stack's pointer in rbx alone: OCaml may have gone
 * deeper since its stack was left last. C may have saved that register on its own stack. */
static uint64_t deepest(const struct uni_sample_at *at, uint64_t sp, uint64_t low)
{
	const uint64_t *word = (const uint64_t *)at->sp,
		       *end = (const uint64_t *)Caml_state->c_stack;

	if (at->saved[0] >= low && at->saved[0] < sp)
		sp = at->saved[0];
	for (; word < end; word++) {
		if (*word % 8 == 0 && *word >= low && *word < sp)
			sp = *word;
	}
	return sp;
}

/* OCaml has a stack of its own, and C another one. */
static void find_other(struct uni_sample_at *at)
{
	struct stack_info *stack = Caml_state_opt != NULL ? Caml_state->current_stack : NULL;
	uint64_t low, high;

	if (stack == NULL)
		return;
	low = (uint64_t)Stack_base(stack);
	high = (uint64_t)Stack_high(stack);
	if (at->sp >= low && at->sp < high) {
		at->other_sp = (uint64_t)Caml_state->c_stack;
		at->other_high = at->stack_high;
		at->stack_high = high;
	} else {
		at->other_sp = deepest(at, (uint64_t)stack->sp, low);
		at->other_high = high;
	}
}
#else
static void find_other(struct uni_sample_at *at)
{
}
#endif

static void tick(int sig, siginfo_t *info, void *context)
{
	const greg_t *r = ((const ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t saved[] = { (uint64_t)r[REG_RBX], (uint64_t)r[REG_R12], (uint64_t)r[REG_R13],
		(uint64_t)r[REG_R14], (uint64_t)r[REG_R15] };
	struct uni_sample_at at = { .pc = (uint64_t)r[REG_RIP],
		.sp = (uint64_t)r[REG_RSP],
		.fp = (uint64_t)r[REG_RBP],
		.stack_low = (uint64_t)r[REG_RSP],
		.stack_high = (uint64_t)__libc_stack_end,
		.saved = saved };

	find_other(&at);
	uni_sample_tick(&at);
	if (host < 0)
		host = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	if (host >= 0)
		(void)uni_stream_poll(&stream, 1u << 16);
}

__attribute__((constructor)) static void start(void)
{
	const struct itimerval every = { { 0, TICK_US }, { 0, TICK_US } };
	const struct uni_stream_config config = {
		.read = read_port, .write = write_port, .name = "ocaml"
	};
	struct sigaction sa = { .sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", getenv("PORT"));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0 ||
		uni_trace_init(ring, RING, 1, NULL, UNI_TRACE_OVERWRITE, 0) != 0)
		_exit(3);
	uni_sample_init(&sampler, 0);
	uni_sample_copy_stack((uint32_t)strtoul(getenv("COPY"), NULL, 10));
	uni_stream_init(&stream, &config);
	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}
