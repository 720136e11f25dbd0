/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page is opened in a browser by xdg-open. A process that gave up its rights cannot start
 * programs, so a child waits for the page from before that.
 */
#ifndef UNI_APP_BROWSER_H
#define UNI_APP_BROWSER_H

#include "base/err.h"

/*
 * Call it with the rights of the user. The child opens this page and no other, whatever it is
 * asked; NULL: one in this folder that ends in .html. If it is never asked, it ends with this
 * process.
 */
void uni_browser_prepare(const char *page);
/* Fails if there is no xdg-open; the error names the page. It is not waited for. */
int uni_browser_open(const char *path, struct uni_err *err);

#endif
