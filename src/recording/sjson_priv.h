/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of session.json that have files of their own. */
#ifndef UNI_RECORDING_SJSON_PRIV_H
#define UNI_RECORDING_SJSON_PRIV_H

#include <jansson.h>

#include "base/json.h"
#include "recording/sjson.h"

/* Members of a guest that are about its threads. */
void uni_session_put_threads(struct uni_json *j, const struct uni_session_guest *g);
/* NULL, or the invalid member. */
const char *uni_session_parse_threads(const json_t *guest, struct uni_session_guest *ret);

/* A whole number from 0 to max; false: it is none. */
bool uni_session_get_number(const json_t *obj, const char *key, json_int_t max, json_int_t *ret);
/* The same for the times in which it was not there: see uni_record_put_gaps(). */
const char *uni_session_parse_gaps(const json_t *guest, struct uni_record_meta *ret);

/* A member of the run: the command that ran meanwhile. */
void uni_session_put_work(struct uni_json *j, const struct uni_record_work *w);
const char *uni_session_parse_work(const json_t *root, struct uni_record_work *ret);

/* The same for function tracing; ret->uuid is set. */
void uni_session_put_trace(struct uni_json *j, const struct uni_record_trace *t);
const char *uni_session_parse_trace(const json_t *guest, struct uni_session_guest *ret);

#endif
