/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest of one file that links the installed tracer: a Linux process, as what proc: reaches.
 * Until it is killed it calls outer(), which calls inner() three times.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <uniscope/trace.h>

static uint8_t memory[8 << 20] __attribute__((aligned(4096)));
static volatile unsigned turns;

__attribute__((noinline)) void inner(unsigned i)
{
	turns += i;
}

__attribute__((noinline)) void outer(void)
{
	for (unsigned i = 0; i < 3; i++)
		inner(i);
}

int main(void)
{
	if (uni_trace_init(memory, sizeof(memory), 1, NULL, UNI_TRACE_OVERWRITE, 0) != 0)
		return 1;
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;) {
		outer();
		(void)usleep(1000);
	}
}
