#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fill.sh UNISCOPE IN OUT VERSION: replaces @OPTIONS@ by what the command's own table says.
set -eu
uniscope=$1 in=$2 out=$3 version=$4
name=$(basename "$in" .1.in)
cmd=${name#uniscope-}
options=$out.options
if [ "$cmd" != uniscope ]; then
	"$uniscope" __man-options "$cmd" >"$options"
else
	: >"$options"
fi
sed -e "s/@VERSION@/$version/" -e "/^@OPTIONS@\$/{
r $options
d
}" "$in" >"$out.tmp"
rm -f "$options"
mv "$out.tmp" "$out"
