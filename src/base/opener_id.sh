#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# opener_id.sh FILE...: the source of uni_opener_id (base/opener.h), which their content makes.
printf 'extern const char uni_opener_id[];\nconst char uni_opener_id[] = "id-%010u";\n' "$(cat "$@" | cksum | cut -d ' ' -f 1)"
