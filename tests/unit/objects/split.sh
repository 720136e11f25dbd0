#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# split.sh IMAGE STRIPPED DEBUG: the debug data of an image into a file of its own, linked by name.
set -eu
objcopy --only-keep-debug "$1" "$3"
objcopy --strip-all "$1" "$2"
cd "$(dirname "$2")"
objcopy --add-gnu-debuglink="$(basename "$3")" "$(basename "$2")"
