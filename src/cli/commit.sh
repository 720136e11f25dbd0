#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# commit.sh SOURCE_ROOT: the commit that is built. git archive writes it into the file COMMIT.
cd "$1" || exit 1
read -r commit <COMMIT
case $commit in
'$'*)
	[ -e .git ] || { echo unknown; exit 0; }
	git -c safe.directory="$PWD" describe --always --abbrev=12 --exclude='*' --dirty=+ 2>/dev/null || echo unknown
	;;
*) printf '%.12s\n' "$commit" ;;
esac
