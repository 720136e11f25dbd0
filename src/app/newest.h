/* SPDX-License-Identifier: BSD-2-Clause */
/* The session that was written last, for commands without a name. */
#ifndef UNI_APP_NEWEST_H
#define UNI_APP_NEWEST_H

#include "base/err.h"

/* The newest NAME.uniscope of the current folder, by the time of its session.json. The caller frees
 * *ret. -UNI_EUSAGE: there is none. */
int uni_newest_session(char **ret, struct uni_err *err);

#endif
