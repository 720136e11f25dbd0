#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""House rules that a compiler does not check. usage: check.py RULE SOURCE_ROOT

Rules: layers, licence, banned, ranges, size, leaks, markers, docs, xen, files, ports, tables,
names, english, waits. Prints each offence and exits 1, or a closing line that says how much was looked at."""
import pathlib
import re
import subprocess
import sys

import english as plain


def layer_list(root):
    """The layers that each layer may include besides itself: the one list, by which the build makes include paths."""
    text = pathlib.Path(root, "src/meson.build").read_text()
    body = re.search(r"^layers = \{\n(.*?)^\}", text, re.S | re.M).group(1)
    return {name: re.findall(r"'(\w+)'", below) for name, below in re.findall(r"'(\w+)': \[(.*?)\]", body, re.S)}


# Backends see the common part of their layer and what they share only.
SHARED_BACKEND = {"vmm"}
# Layers of the command line: all others are libraries.
PRINTING = {"app", "top", "compat", "cli"}
BANNED = ("strcpy strcat sprintf vsprintf strtok gets atoi atol atoll atof strncpy strncat system "
          "popen alloca tmpnam mktemp").split()


def tracked(root, *patterns):
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *patterns],
                         check=True, capture_output=True, text=True).stdout
    return [p for p in (pathlib.Path(root, l) for l in out.splitlines()) if p.is_file()]


def code(text):
    """The text without comments and string contents, line numbers kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(m):
        s = m.group(0)
        if s[0] in "\"'":
            return s[0] + s[0]
        return re.sub(r"[^\n]", " ", s)

    return pattern.sub(blank, text)


def layers(root):
    below = layer_list(root)
    for f in tracked(root, "src/*.c", "src/*.h"):
        rel = f.relative_to(root).parts
        layer = rel[1]
        if len(rel) < 3:
            continue
        for n, line in enumerate(f.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            inc = m.group(1).split("/")
            where = f"{f.relative_to(root)}:{n}"
            if inc[0] in ("uniscope", "config.h") or inc[0].endswith(".inc"):
                continue
            if len(inc) < 2:
                yield f'{where}: include "{m.group(1)}" by its layer: "layer/file.h"'
            elif inc[0] != layer and inc[0] not in below.get(layer, []):
                yield f"{where}: {layer} may not include {inc[0]}"
            elif layer == inc[0] == "backend" and len(inc) > 2 and inc[1] not in SHARED_BACKEND and \
                    (len(rel) < 4 or rel[2] != inc[1]):
                yield f"{where}: only backend {inc[1]} itself may include {m.group(1)}"
    for f in tracked(root, "include/*.h"):
        for n, line in enumerate(f.read_text().splitlines(), 1):
            if re.match(r'\s*#\s*include\s+"(?!uniscope/)', line):
                yield f"{f.relative_to(root)}:{n}: installed headers include each other only"


def licence(root):
    kinds = ("*.c", "*.h", "*.S", "*.py", "*.sh", "*.js", "*.ts", "*.in", "*.lds", "meson.build")
    for f in tracked(root, *kinds):
        head = f.read_text(errors="replace")[:400]
        generated = "Made by Meson" in head
        # Programs for the kernel, and what they share with their loader, are under either.
        either = "SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)" in head
        if "SPDX-License-Identifier: BSD-2-Clause" not in head and not generated and not either:
            yield f"{f.relative_to(root)}: no SPDX line at the top"


def banned(root):
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    for f in tracked(root, "*.c", "*.h"):
        for n, line in enumerate(code(f.read_text()).splitlines(), 1):
            m = pattern.search(line)
            if m:
                yield f"{f.relative_to(root)}:{n}: {m.group(1)}() is banned (docs/HACKING.md)"
    for f in tracked(root, "src/*.c"):
        if f.relative_to(root).parts[1] in PRINTING:
            continue
        for n, line in enumerate(code(f.read_text()).splitlines(), 1):
            if re.search(r"(?<![\w.>])(printf|fprintf|puts|perror|exit|abort)\s*\(", line):
                yield f"{f.relative_to(root)}:{n}: libraries do not print or exit"


def ranges(root):
    """addr < start + size wraps; base/checked.h has the one right form."""
    pattern = re.compile(r"[<>]=?\s*\(?\s*[\w.>\[\]-]*(start|addr|base|vaddr|paddr|gpa|gva|va|lo)\b"
                         r"[\w.\[\]>-]*\s*\+\s*[\w.>\[\]-]*(size|len|length|sz)\b")
    for f in tracked(root, "src/*.c", "src/*.h", "guest/*.c", "guest/*.h", "plugin/*.[ch]"):
        if f.name == "checked.h":
            continue
        for n, line in enumerate(code(f.read_text()).splitlines(), 1):
            if pattern.search(line):
                yield f"{f.relative_to(root)}:{n}: use uni_range_*(): {line.strip()}"


def size(root):
    for f in tracked(root, "*.c", "*.h", "*.js", "*.ts", "*.py"):
        n = len(f.read_text(errors="replace").splitlines())
        if n > 600:
            yield f"{f.relative_to(root)}: {n} lines: more than one concept?"


def leaks(root):
    """The repository speaks of uniscope alone."""
    pattern = re.compile(r"(?<![\w/.])/(work|root|home/\w+)/|https?://[\w.-]*(registry|mirror|deb)\.")
    for f in tracked(root):
        if f.suffix in (".png", ".usym", ".bin") or "corpus" in f.parts or f.name == "check.py":
            continue
        for n, line in enumerate(f.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                yield f"{f.relative_to(root)}:{n}: names a place of one machine: {line.strip()[:80]}"


# A hypercall's name or number, any call into one of Xen's libraries, the module's door to xenstore.
XEN_NAMES = re.compile(
    r"\b(xen(call|foreignmemory|gnttab|gntshr|devicemodel|evtchn|hypfs|stat|store|toollog|toolcore)|xs|xc|xtl"
    r"|gnttab|libxl|xlu)_\w+\s*\(|\b(xen(call|foreignmemory|evtchn|gnttab|gntshr|devicemodel)\w*)\s*\("
    r"|__HYPERVISOR_\w+|\bIOCTL_(PRIVCMD|EVTCHN|GNTDEV|XENBUS)_\w+|\bXEN(MEM|VER|FEAT)_\w+|\bXEN_(DOMCTL|SYSCTL|DOMINF|GUEST)_\w+"
    r"|\bUNI_XEN_(NR_|PAUSE|UNPAUSE|INFO|VCPU)|\bstore_(read|list)\s*\(")
XEN_HEADERS = re.compile(r'#\s*include\s*[<"](xen[\w/]*|xs|libxl\w*)\.h[>"]|#\s*include\s*[<"](xen|backend/xen)/')
# In a string: absolute paths, what lies below a domain's own, keys that only xenstore has, its programs.
XEN_PATHS = re.compile(
    r'"[^"\n]*(local/domain/|/libxl/|/proc/xen|/dev/xen|/sys/hypervisor|@(release|introduce)Domain|ring-ref'
    r'|event-channel|grant-ref|domain/%|mprof/)'
    r'|"/vm/|"(\./)?(data|device|backend|console|control|store|vm|error|hvmloader|platform|tool)/[\w%-]'
    r'|"xenstore(-\w+|d)?"|"libxen\w+'
    r'|"(xen(call|foreignmemory|gnttab|gntshr|devicemodel|evtchn)|xs|xc|libxl)_\w+"')


def xen(root):
    """Code that changes with Xen's releases stays in one place. A port is compiled by its guest."""
    for f in tracked(root, "src/*.c", "src/*.h", "src/*.in", "guest/*.c", "guest/*.h",
                     "plugin/*.[ch]"):
        rel = f.relative_to(root).as_posix()
        text = f.read_text()
        if rel.startswith("guest/ports/"):
            continue
        if rel.startswith("src/backend/xen/"):
            if re.search(r"#\s*include\s*[<\"]xen(ctrl|guest)\.h|\bxc_\w+\s*\(", text):
                yield f"{rel}: libxenctrl has another interface in each release"
            continue
        strings = re.sub(r"#\s*include[^\n]*", "", text)
        for pattern, subject in ((XEN_NAMES, code(text)), (XEN_HEADERS, text), (XEN_PATHS, strings)):
            for n, line in enumerate(subject.splitlines(), 1):
                if pattern.search(line):
                    yield f"{rel}:{n}: Xen's interfaces belong into src/backend/xen: {line.strip()[:60]}"


# By a path, or below the current folder. Files of ours are made by base/sink.h and base/outdir.h.
BY_PATH = re.compile(r"(?<![\w.>])((open|fopen|freopen|creat|rename|unlink|rmdir|mkdir|mkfifo|symlink|link|truncate"
                     r"|opendir|mkstemp|mkostemp|mkdtemp|chmod|chown)\s*\("
                     r"|(openat|renameat2?|unlinkat|mkdirat|symlinkat|linkat|uni_door_(openat|renameat|unlinkat|mkdirat))"
                     r"\s*\(\s*AT_FDCWD)")
KERNEL = r"src/backend/(kvm|proc|vmm|gdb)/|src/backend/listener\.c|src/tracing/clock\.c|src/top/"
MAY_BY_PATH = {
    KERNEL: "reads /proc, /sys, /dev: folders that only the kernel and root change",
    r"src/backend/xen/(granted_page|keeper)\.c": "/dev/xen; keeper: its own locks in a folder that it checks",
    r"src/backend/helper\.c|src/app/(browser|xl|serve_child)\.c": "/dev/null",
    r"src/app/child\.c": "/dev/null; reads the console's file, which the user may name",
    r"src/base/(io|outdir|catch|confine_rules|door|opener|observer?|side_begin)\.c":
        "the functions that all others use; confine: to name folders only; side: the program beside this one",
    r"src/recording/folder\.c": "opens a session's folder to read; the rest is below its descriptor",
    r"src/backend/stream/line\.c": "the device of a serial line",
    r"src/backend/core/src\.c|src/obj/sysroot\.c|src/app/symbols\.c|src/format/uftrace/reader\.c|src/cli/complete\.c":
        "reads what the user named, and writes nothing",
    r"src/app/(child_rights|qemu|scratch)\.c": "a folder by mkdtemp(), whose name nobody can take",
}


def files(root):
    """No file is made, renamed or removed by its path: another user may lead that elsewhere."""
    used = set()
    for f in tracked(root, "src/*.c"):
        rel = f.relative_to(root).as_posix()
        for n, line in enumerate(code(f.read_text()).splitlines(), 1):
            if not BY_PATH.search(line):
                continue
            reason = next((p for p in MAY_BY_PATH if re.match(p, rel)), None)
            if reason is None:
                yield f"{rel}:{n}: by a path: use base/sink.h, base/outdir.h, base/io.h: {line.strip()[:60]}"
            used.add(reason)
    for p in MAY_BY_PATH:
        if p not in used:
            yield f"tests/style/check.py: the exception {p} is not needed"


def ports(root):
    """Unikraft's make names an object after its source alone: two sources of one name are one object."""
    root, path = pathlib.Path(root), "guest/ports/unikraft/Makefile.uk"
    places = {"LIBUNISCOPE_TRACE_BASE": root / "guest/ports/unikraft", "UNISCOPE": root}
    seen = {}
    for base, rest in re.findall(r"_SRCS-\S+ \+= \$\((\w+)\)/(\S+)", (root / path).read_text()):
        name = pathlib.PurePath(rest).stem
        if not (places[base] / rest).is_file():
            yield f"{path}: there is no {rest}"
        if name in seen:
            yield f"{path}: {rest} and {seen[name]} become one object"
        seen[name] = rest
    if not seen:
        yield f"{path}: no sources are found in it"


def table_names(root, path, name):
    """The names in a list of a meson.build: backends, formats."""
    body = re.search(rf"^{name} = \[(.*?)^\]", pathlib.Path(root, path).read_text(), re.S | re.M).group(1)
    return re.findall(r"'(\w+)'", body)


COMPARED = re.compile(r'\bstrn?cmp\s*\(((?:[^;()]|\([^;()]*\))*)\)')
SUBJECT = re.compile(r"\b\w*(scheme|method)\b")


def tables(root):
    """A backend, a way to sample, a format or an architecture is known by the fields of its table, not by its name."""
    schemes = set(table_names(root, "src/backend/meson.build", "backends")) | {"proc"}
    formats = set(table_names(root, "src/format/meson.build", "formats"))
    for f in tracked(root, "src/*.c", "src/*.h"):
        rel = f.relative_to(root).as_posix()
        text = f.read_text()
        inside = re.match(r"src/(backend|format)/\w+/", rel)
        for n, line in enumerate(code(text).splitlines(), 1):
            if not rel.startswith("src/arch/") and re.search(r"[!=]=\s*&uni_arch_\w+", line):
                yield f"{rel}:{n}: ask a field of struct uni_arch: {line.strip()[:60]}"
            m = not inside and re.search(r"[!=]=\s*&uni_(target|exporter|importer)_\w+", line)
            if m:
                yield f"{rel}:{n}: ask a field of its table: {line.strip()[:60]}"
        if inside:
            continue
        for m in COMPARED.finditer(text):
            args = m.group(1)
            words = re.findall(r'"([^"]*)"', args)
            bare = re.sub(r'"[^"]*"', "", args)
            http = rel.startswith("src/serve/")
            if not words or not (SUBJECT.search(bare) and not http or any(w.rstrip(":") in schemes and w.endswith(":")
                                 for w in words) or re.search(r"(\.|->)name\b|\bformat\b", bare) and formats & set(words)):
                continue
            n = text.count("\n", 0, m.start()) + 1
            yield f"{rel}:{n}: compares a name: {m.group(0)[:70]}"


STATIC = re.compile(r"^static (?:[\w\s*]|\([\w\s]*\))*?\b(\w+)\((?:[^;{}])*?\)\n\{", re.M)


def names(root):
    """A static function is verb_noun or noun_verb, so that its name says what it does and is found by grep."""
    for f in tracked(root, "src/*.c"):
        text = f.read_text()
        for m in STATIC.finditer(text):
            if "_" not in m.group(1):
                n = text.count("\n", 0, m.start(1)) + 1
                yield f"{f.relative_to(root)}:{n}: {m.group(1)}(): a verb and a noun, as in slab_take()"


def markers(root):
    """Left by a merge: they compile in no C file, but do in manual pages."""
    for f in tracked(root):
        text = f.read_bytes().decode("utf-8", "replace")
        for n, line in enumerate(text.splitlines(), 1):
            if re.match(r"(<{7}|>{7}|\|{7}) ", line):
                yield f"{f}:{n}: left by a merge: {line[:40]}"


def unproved(root):
    """Rows of docs/accuracy.md whose last cell names no test, or one that is not there. `unit/NAME:CASE` is a case of unit/NAME."""
    path = pathlib.Path(root, "docs/accuracy.md")
    tests = set(pathlib.Path(root, "tests/names").read_text().split("\n")) if path.exists() else set()
    for n, line in enumerate(path.read_text().split("\n") if path.exists() else [], 1):
        if not line.startswith("| ") or line.endswith("| test |"):
            continue
        named = re.findall(r"\b((?:unit|e2e|fuzz)/[\w-]+)(?::(\w+))?", line.rsplit("|", 2)[1])
        if not named:
            yield f"docs/accuracy.md:{n}: names no test"
        for test, case in named:
            source = pathlib.Path(root, f"tests/{test}.c")
            if test not in tests:
                yield f"docs/accuracy.md:{n}: there is no test {test}"
            elif case and not (source.exists() and f"static void {case}(void **" in source.read_text()):
                yield f"docs/accuracy.md:{n}: {test} has no case {case}"


def docs(root):
    """Each command has a man page, each document of docs/ is linked from another, each row of accuracy.md names its tests."""
    yield from unproved(root)
    for f in tracked(root, "src/cli/cmd_*.c", "src/compat/*/cmd_*.c"):
        name = f.stem[len("cmd_"):].replace("_", "-")
        if not pathlib.Path(root, f"docs/man/uniscope-{name}.1.in").exists():
            yield f"{f.relative_to(root)}: docs/man/uniscope-{name}.1.in is missing"
    pages = tracked(root, "*.md")
    text = {p: p.read_text() for p in pages}
    for p in pages:
        rel = p.relative_to(root)
        for m in re.finditer(r"\]\(([^)#]+?)(#[^)]*)?\)", text[p]):
            if "://" not in m.group(1) and not (p.parent / m.group(1)).exists():
                yield f"{rel}: link to {m.group(1)} leads nowhere"
        if rel.parts[0] == "docs" and not any(
                p.name in t for q, t in text.items() if q != p):
            yield f"{rel}: no other document leads to it"


def english(root):
    """Sentences are short, and begin with what they speak of."""
    for f in tracked(root):
        rel = f.relative_to(root)
        if {"third_party", "golden", "corpus", "dist"} & set(rel.parts):
            continue
        for line, what, sentence in plain.offences(rel, f.read_text(errors="replace")):
            yield f"{rel}:{line}: {what}: {sentence[:100]}"


def waits(root):
    """A test that waits for a line of a background process removes the file first: the line may be an earlier one's."""
    for f in tracked(root, "tests/*.sh"):
        lines = f.read_text().replace("\\\n", "").split("\n")
        for n, line in enumerate(lines):
            if not re.search(r"[^&]&\s*$", line):
                continue
            for name in re.findall(r'>\s*("\$\w+/[^"]+")', line):
                waited = re.escape(name)
                if any(re.search(r"wait_for [^|&]*" + waited, w) for w in lines[n + 1:n + 9]) and not any(
                        name in w and re.search(r"\brm -r?f|:\s*>", w) for w in lines[max(0, n - 8):n]):
                    yield f"{f.relative_to(root)}: remove {name} before '{line.strip()[:50]}': the next lines wait for it"


def main():
    rules = {f.__name__: f for f in (layers, licence, banned, ranges, size, leaks, markers, docs, xen, files, ports,
                                      tables, names, english, waits)}
    if len(sys.argv) != 3 or sys.argv[1] not in rules:
        sys.exit(__doc__)
    found = list(rules[sys.argv[1]](sys.argv[2]))
    for line in found:
        print(line)
    if found:
        sys.exit(1)
    print(f"{sys.argv[1]}: {len(tracked(sys.argv[2]))} files looked at, no offence")


if __name__ == "__main__":
    main()
