# SPDX-License-Identifier: BSD-2-Clause
"""uniprof_text.py raw|named FILE MIN [ROOT]: is FILE in the grammar that uniprof's readers know, with at least MIN traces? Nine in
ten of them must be whole and end in a function that ROOT, a pattern, matches. uniprof_text.py collapse FILE: does what a
stackcollapse does. It skips three lines; a number ends a trace; the text behind the last '+' goes; root first, sorted."""
import re
import sys

HEAD1 = re.compile(r"#unikernel stack tracer using \S.*")
HEAD2 = re.compile(r"#tracing \S.* on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ \([+-]\d{4}\)")
FRAME = {
    "raw": re.compile(r"0x[1-9a-f][0-9a-f]*"),
    "named": re.compile(r"(\S.*)\+0x[0-9a-f]+|[A-Za-z_]\w*|\[truncated\]"),
}


def check(kind, path, least, root):
    lines = open(path).read().split("\n")
    assert HEAD1.fullmatch(lines[0]), lines[0]
    assert HEAD2.fullmatch(lines[1]), lines[1]
    assert lines[2] == "", lines[2]
    assert lines[-1] == "", "the last line does not end"
    whole, broken, trace = 0, 0, []
    # A trace that stands for skipped deadlines, too, has a larger number.
    ends = {"raw": r"0|[1-9]\d*", "named": r"[1-9]\d*"}[kind]
    lines = lines[3:-1]
    while lines:
        line = lines.pop(0)
        if not re.fullmatch(ends, line):
            assert FRAME[kind].fullmatch(line), repr(line)
            trace.append(line)
            continue
        assert lines and lines.pop(0) == "", "no blank line behind a trace"
        if line == "0" or "[truncated]" in trace:
            broken += 1
        else:
            whole += int(line)
            assert not root or re.match(f"({root})\\+0x", trace[-1]), trace
        trace = []
    assert not trace, "the last trace does not end"
    assert whole + broken >= least, f"{whole} + {broken} traces, not {least}"
    assert broken * 10 <= whole, f"{broken} of {whole + broken} traces are broken"


def collapse(path):
    stacks, trace = {}, []
    for line in open(path).read().split("\n")[3:]:
        if re.fullmatch(r"\s*\d+", line):
            key = ";".join(reversed(trace)) or "[empty]"
            stacks[key] = stacks.get(key, 0) + int(line)
            trace = []
        elif line.strip():
            trace.append(re.sub(r"\+[^+]*$", "", line.strip()))
    for key in sorted(f"{k} {v}" for k, v in stacks.items()):
        print(key)


if sys.argv[1] == "collapse":
    collapse(sys.argv[2])
else:
    check(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
