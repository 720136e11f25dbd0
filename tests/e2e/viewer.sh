#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# viewer.sh SRCROOT: the viewer in viewer/dist, which users get, is what viewer/src makes, fits into 60 kB
# compressed, and its types are right. TAP.
set -u
viewer=$1/viewer
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0

result() { # OK DESCRIPTION
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

size=$(cat "$viewer/dist/page.js" "$viewer/dist/page.css" | gzip -9c | wc -c)
[ "$size" -le 60000 ]
result $? "at most 60 kB compressed ($size bytes)"
cp -r "$viewer/package.json" "$viewer/build.mjs" "$viewer/test.mjs" "$viewer/tsconfig.json" "$viewer/src" "$T"
if [ -d "$viewer/node_modules/esbuild" ] && [ -d "$viewer/node_modules/typescript" ]; then
	ln -s "$viewer/node_modules" "$T/node_modules"
elif command -v npm >/dev/null; then
	(cd "$T" && timeout 200 npm install --prefer-offline --no-audit --no-fund >"$T/npm" 2>&1) || {
		echo "ok 2 # SKIP npm cannot install what viewer/package.json lists: $(grep -m1 -i error "$T/npm" | cut -c1-100)"
		echo 1..2
		exit
	}
else
	echo "ok 2 # SKIP no npm on this machine"
	echo 1..2
	exit
fi
(cd "$T" && timeout 100 node build.mjs "$T/dist" >"$T/out" 2>&1)
result $? "builds"
for f in page.js page.css; do
	cmp "$viewer/dist/$f" "$T/dist/$f" >"$T/out" 2>&1
	result $? "dist/$f is what src makes (else: cd viewer && npm install && npm run build)"
done
(cd "$T" && timeout 100 node test.mjs >"$T/out" 2>&1)
result $? "index and trees give what plain sums give"
sed 's/^/# /' "$T/out"
(cd "$T" && timeout 200 node_modules/.bin/tsc --noEmit -p . >"$T/out" 2>&1)
result $? "its types are right"
sed 's/^/# /' "$T/out"
echo "1..$n"
