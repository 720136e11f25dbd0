# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# For judge/CASE.sh: sessions that `recorded` left against the guests' books. OUT, BUILD and SRC come
# from tests/lab/report.sh; images is what the lab's images begin with.
n=0 images=
# verdict WHAT COMMAND...: one line of TAP, and what the command said in any case.
verdict() {
	n=$((n + 1)) what=$1
	shift
	if said=$("$@" 2>&1); then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
	fi
	echo "$said" | sed 's/^/# /'
}
judge() { # NAME APP JUDGE-OPTIONS...
	name=$1 app=$2
	shift 2
	verdict "$name: shares and chains are the guest's" python3 "$SRC/tests/e2e/judge.py" \
		--stacks "$OUT/$name.uniscope.json" --session "$OUT/$name.uniscope" \
		--graph "$BUILD/lab/$images$app-gcc-fp.graph" "$@"
}
