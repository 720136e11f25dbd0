#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# svg_browser.sh UNISCOPE SRCROOT: our SVG in a real browser, from a file, and inside of an HTML
# page. Clicks zoom, searches highlight, hostile names do no harm. TAP.
set -u
U=$1 SRC=$2
. "$SRC/tests/support/can.sh"
need browser
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0

result() { # OK DESCRIPTION
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

long=$(printf '%4000s' '' | tr ' ' 'W')
printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'main;<poll> 20' 'other;leaf 5' 'other;idle 35' \
	>"$T/plain.folded"
{
	printf '%s 10\n' '<script>alert(1)</script>' '</title></g><script>alert(2)</script>' \
		']]></script><script>alert(3)</script>' \
		'"><img src=x onerror="alert(4)">' "' onclick='alert(5)' x='" 'javascript:alert(6)' \
		'&lt;b&gt;&#60;&amp;' '${window.PWNED=1}' '__proto__' 'constructor' \
		'(((((a+)+)+)+)+' '\\' '%00%0a?s=x' '-->' '<!--' '<![CDATA['
	printf 'a\342\200\256evil\342\200\254;\327\251\327\234\327\225\327\235;\001\002 10\n'
	printf 'bad\377utf8;\357\277\277noncharacter;\360\237\224\245 10\n'
	printf '%s;%s 10\n' "$long" "$long"
} >"$T/hostile.folded"

# page FOLDED OUT RUN [html]: the SVG with our scripts put around its own.
page() {
	"$U" export "$1" -f svg -o "$T/plain.svg" 2>"$T/err" || { cat "$T/err" >&2; return 1; }
	{
		[ "${4:-}" = html ] && echo '<!DOCTYPE html><meta charset="utf-8"><body>'
		awk -v html="${4:-}" -v run="$3" -v js="$SRC/tests/e2e/svg_browser.js" '
			/^<\?xml/ { if (html == "") print; next }
			/^<\/svg>$/ { held = held $0 "\n"; next }
			{ printf "%s", held; held = ""; print }
			/^<svg / && !begun { begun = 1
				print "<script>window.RUN = \"" run "\"; window.TROUBLE = [];"
				print "window.onerror = function (m) { TROUBLE.push(m); };"
				print "alert = prompt = confirm = function (m) { TROUBLE.push(\"dialog \" + m); };"
				print "</script><script>/* second */</script>" }
			END { print "<script><![CDATA["
				while ((getline line < js) > 0) print line
				print "]]></script>"; print "</svg>" }' "$T/plain.svg"
	} >"$2"
}

# browse NAME FOLDED RUN QUERY [html]
browse() {
	file=$T/$3.${5:-svg}
	page "$2" "$file" "$3" "${5:-}" || { result 1 "$1: export works"; return; }
	timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$T/profile" --window-size=1000,700 --virtual-time-budget=3000 \
		--dump-dom "file://$file$4" >"$T/dom" 2>"$T/err"
	sed -n '/<desc id="tap">/,/<\/desc>/p' "$T/dom" | grep -E '^(not )?ok ' >"$T/tap"
	if [ ! -s "$T/tap" ]; then
		result 1 "$1: the page ran"
		grep -v dbus "$T/err" | tail -5 | sed 's/^/# /'
		grep -o 'error on line.*Below' "$T/dom" | head -c 300 | sed 's/^/# /'
		return
	fi
	while read -r line; do
		n=$((n + 1))
		echo "$line" | sed -E "s/^((not )?ok) [0-9]+ - /\\1 $n - $1, /"
	done <"$T/tap"
}

xml() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1" 2>"$T/err"; }

for run in click ${UNISCOPE_ALL:+hover} search keys; do
	browse "file" "$T/plain.folded" $run ""
done
browse "file" "$T/plain.folded" path "?p=main%3Bwork&s=%5Eleaf"
"$U" export "$T/plain.folded" -f svg -o "$T/plain.svg" 2>/dev/null
# other starts at 60 % of 1180 pixels; its row is the second from below.
y=$(sed -n 's/.*<title>other ([^<]*<\/title><rect x="[^"]*" y="\([0-9.]*\)".*/\1/p' "$T/plain.svg")
[ -z "${UNISCOPE_ALL-}" ] || browse "file" "$T/plain.folded" legacy "?x=718.0&y=$y"
browse "html" "$T/plain.folded" click "" html
browse "file" "$T/hostile.folded" hostile ""
"$U" export "$T/hostile.folded" -f svg -o "$T/hostile.svg" 2>/dev/null
xml "$T/hostile.svg"
result $? "hostile names: well-formed XML"
for name in plain hostile; do
	grep -q '<svg ' "$T/$name.svg" && ! grep -qiE '<[^>]* on[a-z]+ *=' "$T/$name.svg"
	result $? "no event handlers in attributes: $name"
done
echo "1..$n"
