/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP on the loopback interface, for uni_ftrace. No token, so that plain wget works; therefore it
 * answers only who names this host as such, and never a web page (serve/guard.h). One thread: the
 * caller waits for uni_httpd_fd() and lets it run.
 */
#ifndef UNI_SERVE_HTTPD_H
#define UNI_SERVE_HTTPD_H

#include <stdint.h>

#include "base/err.h"
#include "serve/ftrace.h"

struct uni_httpd; /* opaque */

/* port 0: any that is free. f must outlive it. */
int uni_httpd_create(
	struct uni_ftrace *f, uint16_t port, struct uni_httpd **ret, struct uni_err *err);
/* Ends what is on its way. NULL-safe. */
void uni_httpd_destroy(struct uni_httpd *h);
uint16_t uni_httpd_port(const struct uni_httpd *h);
/* Readable when there is something to do; borrowed. */
int uni_httpd_fd(const struct uni_httpd *h);
/* At most so many ms until uni_httpd_run() is due, whatever the descriptor says. */
int uni_httpd_timeout(const struct uni_httpd *h, int most_ms);
/* Does what can be done now: a bounded piece for each connection. */
int uni_httpd_run(struct uni_httpd *h, struct uni_err *err);

#endif
