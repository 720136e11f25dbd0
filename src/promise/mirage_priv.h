/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_PROMISE_MIRAGE_PRIV_H
#define UNI_PROMISE_MIRAGE_PRIV_H

#include <stdint.h>

#define UNI_MIRAGE_MAGIC	  0xc1fc1fc1u
#define UNI_MIRAGE_HEAD		  30
#define UNI_MIRAGE_EVENT_HEAD	  9
#define UNI_MIRAGE_SHOULD_RESOLVE "__should_resolve"
/* Ours: labels of nobody, which other viewers pass over. */
#define UNI_MIRAGE_SUSPEND   "__suspend"
#define UNI_MIRAGE_HIBERNATE "__hibernate"
#define UNI_MIRAGE_RESUME    "__resume"

extern const uint8_t uni_mirage_uuid[16];

#endif
