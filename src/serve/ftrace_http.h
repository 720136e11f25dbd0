/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uni_ftrace over HTTP. There is no token, so that plain wget works. Therefore a request must name
 * this host as a local one, and must not come from a web page (serve/guard.h). Only our user and
 * root can change anything: the kernel tells whose connection it is (serve/peer.h).
 */
#ifndef UNI_SERVE_FTRACE_HTTP_H
#define UNI_SERVE_FTRACE_HTTP_H

#include "serve/ftrace.h"
#include "serve/httpd.h"

/* Its ctx is a struct uni_ftrace, which must outlive it. */
struct uni_httpd_cfg uni_ftrace_httpd(struct uni_ftrace *f, uint16_t port);

#endif
