/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers of the guest's tracer in C++, for guests that are written in it. */
#include "uniscope/promise.h"
#include "uniscope/sample.h"
#include "uniscope/stream.h"
#include "uniscope/trace.h"

/* As C has it, or this does not compile. */
extern "C" void uni_promise_word(unsigned kind, uint64_t a);

void tell();
void tell()
{
	uni_promise_named_task(1, 2, "task");
	uni_promise_switch(2);
}
