/* SPDX-License-Identifier: BSD-2-Clause */
/* Text into XML 1.0: names of guests come out as text, never as markup. */
#ifndef UNI_FORMAT_XML_H
#define UNI_FORMAT_XML_H

#include <stdbool.h>

#include "base/sink.h"

/* Reads the code point at *s and advances it; 0 at the end. Each byte of invalid UTF-8 counts as
 * U+FFFD. */
uint32_t uni_utf8_next(const char **s, const char *end);

/*
 * Escapes for element text and quoted attributes alike; what XML cannot hold becomes U+FFFD. With
 * ascii, everything above U+007F is a character reference.
 */
void uni_xml_text(struct uni_sink *out, const char *s, size_t len, bool ascii);

#endif
