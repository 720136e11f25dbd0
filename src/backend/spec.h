/* SPDX-License-Identifier: BSD-2-Clause */
/* `scheme:key=value,...`: the user's notation for a target. */
#ifndef UNI_BACKEND_SPEC_H
#define UNI_BACKEND_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define UNI_SPEC_KEYS 16

struct uni_spec {
	char text[4352]; /* as given, cleaned, for messages */
	char buf[4352];	 /* the strings below point into it */
	const char *scheme;
	size_t nr;
	struct {
		const char *key, *value;
	} kv[UNI_SPEC_KEYS];
};

/*
 * "kvm:pid=12,qmp=/run/q". In a value, ',' is written as ",," . A key may be given only once. On
 * error, -UNI_EUSAGE with a message that shows an example.
 */
int uni_spec_parse(const char *text, struct uni_spec *ret, struct uni_err *err);
const char *uni_spec_get(const struct uni_spec *s, const char *key); /* NULL if absent */
/* Returns 0 and *ret; -UNI_ENOENT: no such key; -UNI_EUSAGE (err set): not a number. */
int uni_spec_get_u64(const struct uni_spec *s, const char *key, uint64_t *ret, struct uni_err *err);
/* Adds key=value. -UNI_EUSAGE: the spec would be too long. */
int uni_spec_add(struct uni_spec *s, const char *key, const char *value, struct uni_err *err);
/* Refuses keys that are not in the space-separated list. */
int uni_spec_check_keys(const struct uni_spec *s, const char *allowed, struct uni_err *err);

#endif
