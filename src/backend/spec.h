/* SPDX-License-Identifier: BSD-2-Clause */
/* `scheme:key=value,...`: how a user names a target. */
#ifndef UNI_BACKEND_SPEC_H
#define UNI_BACKEND_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define UNI_SPEC_KEYS 16

struct uni_spec {
	char text[4352]; /* as given, cleaned, for messages */
	char buf[4352];	 /* the strings below live here */
	const char *scheme;
	size_t nr;
	struct {
		const char *key, *value;
	} kv[UNI_SPEC_KEYS];
};

/*
 * "kvm:pid=12,qmp=/run/q". A value may hold ',' as ",," . Keys may not repeat.
 * -UNI_EUSAGE with a message that shows an example.
 */
int uni_spec_parse(const char *text, struct uni_spec *ret, struct uni_err *err);
const char *uni_spec_get(const struct uni_spec *s, const char *key); /* NULL if absent */
/* 0 and *ret, -UNI_ENOENT if absent, -UNI_EUSAGE (err set) if no number. */
int uni_spec_get_u64(const struct uni_spec *s, const char *key, uint64_t *ret, struct uni_err *err);
/* Adds key=value. -UNI_EUSAGE: the spec gets too long. */
int uni_spec_add(struct uni_spec *s, const char *key, const char *value, struct uni_err *err);
/* Refuses keys that are not in the space-separated list. */
int uni_spec_check_keys(const struct uni_spec *s, const char *allowed, struct uni_err *err);

#endif
