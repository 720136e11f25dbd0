/* SPDX-License-Identifier: BSD-2-Clause */
/* The viewer as embed.py made it: texts, and their hashes as a content security policy has them. */
#ifndef UNI_PAGE_ASSETS_H
#define UNI_PAGE_ASSETS_H

extern const char uni_page_js[], uni_page_js_hash[];
extern const char uni_page_css[], uni_page_css_hash[];

#endif
