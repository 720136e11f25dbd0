/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/chrome/time.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define NS_DIGITS  3
#define US_FORMAT  "%llu.%03llu"
#define US(ns)	   (ns) / UNI_NSEC_PER_USEC, (ns) % UNI_NSEC_PER_USEC
#define MAX_DIGITS 22

/* The double nearest to the decimal that uni_chrome_us() writes. */
static double us_of_ns(uint64_t ns)
{
	char text[32];

	/* The conversion is exact, and the quotient is exact except for its last bit. */
	if (ns < UINT64_C(1) << DBL_MANT_DIG)
		return (double)ns / (double)UNI_NSEC_PER_USEC;
	(void)snprintf(text, sizeof(text), US_FORMAT, US(ns));
	return strtod(text, NULL);
}

void uni_chrome_us(struct uni_sink *out, const char *key, uint64_t ns)
{
	uni_sink_printf(out, ",\"%s\":" US_FORMAT, key, US(ns));
}

/* Exact, unless the first is so small a number that the difference needs more digits. */
static double exact_difference(double begin, double end)
{
	double d = end - begin;

	if (begin + d != end)
		d = nextafter(d, begin + d < end ? INFINITY : 0.0);
	return d;
}

void uni_chrome_span(struct uni_sink *out, uint64_t begin_ns, uint64_t end_ns)
{
	double dur = exact_difference(us_of_ns(begin_ns), us_of_ns(end_ns));
	char text[64];

	uni_chrome_us(out, "ts", begin_ns);
	if (us_of_ns(end_ns - begin_ns) == dur) {
		uni_chrome_us(out, "dur", end_ns - begin_ns);
		return;
	}
	/* Two doubles differ by something else than the decimals do, by parts of a nanosecond. */
	for (int digits = NS_DIGITS + 1; digits <= MAX_DIGITS; digits++) {
		(void)snprintf(text, sizeof(text), "%.*f", digits, dur);
		if (strtod(text, NULL) == dur)
			break;
	}
	uni_sink_printf(out, ",\"dur\":%s", text);
}
