/* SPDX-License-Identifier: BSD-2-Clause */
/* How a recording was made and how good it is, as a member of the JSON profile. */
#ifndef UNI_FORMAT_JSON_RECORDING_H
#define UNI_FORMAT_JSON_RECORDING_H

#include "base/json.h"
#include "recording/recording.h"

/* "recording": {...}: the guests that the filter (NULL: none) lets through. */
void uni_json_recording(struct uni_json *j, const struct uni_recording *rec,
	const struct uni_sample_filter *filter);

#endif
