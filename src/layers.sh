#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# layers.sh SRCROOT BUILDROOT LAYER [BELOW...]: makes BUILDROOT/layers/LAYER, an include directory
# with one link for the layer itself and one for each layer below it.
set -eu
src=$1 build=$2 layer=$3
shift 3
dir=$build/layers/$layer
rm -rf "$dir"
mkdir -p "$dir"
for l in "$layer" "$@"; do
	ln -s "$src/src/$l" "$dir/$l"
done
# Headers shared with guests, once there are any.
[ ! -d "$src/include/uniscope" ] || ln -s "$src/include/uniscope" "$dir/uniscope"
