#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Compares what an unprivileged domain recorded of another one (cases/domu.sh) with the other's own counts.
. "$SRC/tests/xen/judge.sh"
books() {
	python3 "$SRC/tests/e2e/inside_books.py" "$OUT" &&
		python3 "$SRC/tests/e2e/judge.py" --stacks "$OUT/in.json" --session "$OUT/books.json" --streams "$OUT/in.uniscope" --uneven \
			--graph "$BUILD/lab/xen-shares-gcc-fp.graph" --min-samples 200
}
verdict 'shares and chains are the guest'"'"'s' books
echo "1..$n"
