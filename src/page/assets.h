/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The viewer as embed.py made it: texts, and their hashes in the form of a content security policy.
 */
#ifndef UNI_PAGE_ASSETS_H
#define UNI_PAGE_ASSETS_H

extern const char uni_page_js[], uni_page_js_hash[];
extern const char uni_page_css[], uni_page_css_hash[];

#endif
