/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thousand functions, one after the other, for ever: what it costs to switch so many on and off.
 */
#include "lab.h"

const char lab_app_name[] = "many";

/* X(digits) for 000 to 999. */
#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n) \
	TEN(X, n##0)  \
	TEN(X, n##1)  \
	TEN(X, n##2)  \
	TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) TEN(X, n##6) TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)
#define THOUSAND(X)   \
	HUNDRED(X, 0) \
	HUNDRED(X, 1) \
	HUNDRED(X, 2) \
	HUNDRED(X, 3) \
	HUNDRED(X, 4) HUNDRED(X, 5) HUNDRED(X, 6) HUNDRED(X, 7) HUNDRED(X, 8) HUNDRED(X, 9)

/* Unlike each other, so that the compiler keeps them all. */
#define FUNCTION(n)                                   \
	LAB_FUNC static uint64_t many_##n(uint64_t x) \
	{                                             \
		return x ^ 1##n##u;                   \
	}
THOUSAND(FUNCTION)

#define NAME(n) many_##n,
static uint64_t (*const all[])(uint64_t) = { THOUSAND(NAME) };

LAB_FUNC void app_main(void)
{
	uint64_t x = lab_tsc();

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		x = all[i](x);
	lab_heartbeat();
}
