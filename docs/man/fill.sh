#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fill.sh UNISCOPE IN OUT VERSION DOC GUEST_DOC COMPAT: replaces @COMMANDS@ by the list of commands, and
# @OPTIONS@ by the command's own table of options. "@OPTIONS SUB@" becomes the table of its command SUB.
# Documents get the names that they have once they are installed: docs/ in the folder DOC, guest/ as the
# folder GUEST_DOC. COMPAT is the folder of the links with older tools' names.
set -eu
uniscope=$1 in=$2 out=$3 version=$4 doc=$5 guest_doc=$6 compat=$7
name=$(basename "$in" .1.in)
cmd=${name#uniscope-}
cp "$in" "$out.tmp"
"$uniscope" __man-commands >"$out.options"
sed -i -e "/^@COMMANDS@\$/{
r $out.options
d
}" "$out.tmp"
sed -n 's/^@OPTIONS\(.*\)@$/\1/p' "$in" | while read -r sub; do
	"$uniscope" __man-options "$cmd" $sub >"$out.options"
	sed -e "/^@OPTIONS${sub:+ $sub}@\$/{
r $out.options
d
}" "$out.tmp" >"$out.more"
	mv "$out.more" "$out.tmp"
done
sed -E -e "s/@VERSION@/$version/" -e "s,@COMPAT@,$compat," -e "s,(^|[ (])(docs/[a-z]),\\1$doc/\\2,g" \
	-e "s,(^|[ (])guest/README,\\1$guest_doc/README,g" "$out.tmp" >"$out.more"
rm -f "$out.options" "$out.tmp"
mv "$out.more" "$out"
