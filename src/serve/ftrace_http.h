/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uni_ftrace over HTTP. No token, so that plain wget works; therefore it answers only who names
 * this host as such, and never a web page (serve/guard.h). Only our user and root change anything:
 * the kernel tells whose connection it is (serve/peer.h).
 */
#ifndef UNI_SERVE_FTRACE_HTTP_H
#define UNI_SERVE_FTRACE_HTTP_H

#include "serve/ftrace.h"
#include "serve/httpd.h"

/* f must outlive it. */
struct uni_httpd_cfg uni_ftrace_httpd(struct uni_ftrace *f, uint16_t port);

#endif
