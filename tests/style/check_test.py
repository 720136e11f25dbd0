#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do the rules for files, for Xen's interfaces and for plain English find each offence, and only these?"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import english  # noqa: E402

OFFENCES = """\
h = xs_open(0);
xs_watch(h, path, token);
e = xs_read_watch(h, &nr);
xs_write(h, 0, path, "1", 1);
free(xs_get_domain_path(h, domid));
xencall_open(NULL, 0);
rc = xencall2(x, 13, a, b);
p = xenforeignmemory_map(f, domid, 1, n, frames, errs);
xendevicemodel_open(NULL, 0);
xengnttab_map_grant_refs(g, n, ids, refs, 1);
ioctl(fd, IOCTL_GNTDEV, gnttab_grant(1));
xenevtchn_bind_unbound_port(e, domid);
xc_domain_pause(xch, domid);
libxl_domain_pause(ctx, domid);
call(__HYPERVISOR_domctl, &op);
op.cmd = XEN_DOMCTL_pausedomain;
text = m->store_read(c, path, &size);
#include <xenctrl.h>
#include <xen/xen.h>
#include <xs.h>
#include "backend/xen/call.h"
path = "/local/domain/%u/name";
path = "data/mprof/ring-ref";
path = "./console/tty";
path = "memory/ring-ref";
path = "domain/%u/domid";
path = "device/vif/0/state";
path = "control/shutdown";
path = "/vm/%s/image";
path = "@releaseDomain";
argv[0] = "xenstore-read";
handle = dlopen("libxencall.so.1", 0);
call = dlsym(NULL, "xencall_open");
path = "local/domain/1/name";
rc = ioctl(fd, IOCTL_PRIVCMD_HYPERCALL, 0);
fd = open("/dev/xen/privcmd", 2);
"""

FINE = """\
/* xs_open() is no business of this file. */
static const char *const argv[] = { "xl", "domid", name, NULL };
uni_json_kv(str, j, "name", name);
uni_json_kv(u64, j, "domid", domid);
(void)snprintf(target, sizeof(target), "xen:dom=%u", domid);
rc = t->ops->granted(t, "mprof", &ring, &size, err);
.mime = "image/svg+xml",
request = "GET /vm/config HTTP/1.1";
pxs_open(1);
#include "app/xl.h"
"""


def offences(rule, name, text):
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(["git", "-C", root, "init", "-q"], check=True)
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return [o for o in rule(root) if "is not needed" not in o]


class Files(unittest.TestCase):
    def test_each_offence(self):
        for call in ("open(path, 0)", 'fopen(path, "w")', "rename(a, b)", "unlink(path)", "mkdir(path, 0700)",
                     "openat(AT_FDCWD, path, 0)", "renameat(AT_FDCWD, a, fd, b)", "mkostemp(name, 0)"):
            self.assertTrue(offences(check.files, "src/cli/some.c", f"fd = {call};\n"), call)

    def test_nothing_else(self):
        for call in ("openat(dir_fd, name, 0)", "renameat(fd, a, fd, b)", "ops->open(path)", "m.unlink(x)"):
            self.assertEqual(offences(check.files, "src/cli/some.c", f"fd = {call};\n"), [], call)


class Xen(unittest.TestCase):
    def found(self, name, text):
        return offences(check.xen, name, text)

    def test_each_offence(self):
        for line in OFFENCES.splitlines():
            self.assertTrue(self.found("src/cli/some.c", line + "\n"), line)

    def test_nothing_else(self):
        self.assertEqual(self.found("src/cli/some.c", FINE), [])

    def test_its_own_place(self):
        for line in OFFENCES.splitlines():
            offence = "xenctrl" in line or "xc_" in line
            self.assertEqual(bool(self.found("src/backend/xen/some.c", line + "\n")), offence, line)


LONG = "The reader " + "really " * 23 + "waits."  # 26 words
FITS = "The reader " + "really " * 22 + "waits."
TH = '.TH X 1 "" "" ""\n.SH DESCRIPTION\n'
# A place for a sentence in each kind of file.
SPEAKS = {
    "a.c": ("/* %s */", "/*\n * Short.\n * %s\n */", "int a; /* %s */", "// Short.\n// %s", "/* - one\n * - %s */",
            "/*\n *   a   drawn line\n * %s\n */"),
    "a.h": ("int a; // %s",),
    "src/cli/a.c": ('uni_note("%s");', 'uni_note("short: "\n\t"Short. " PRIu64 " %s\\n");', '/* %s */'),
    "src/app/a.h": ('#define HELP "Short. " \\\n\t"%s"',),
    "a.S": ("\tnop /* %s */",),
    "a.ts": ("// %s", "const s = 'x'; // %s", "/** %s */"),
    "a.py": ("# %s", 'x = "#"  # %s', '"""%s"""', '"""Short.\n\n    drawn\n%s"""', "#!/usr/bin/env python3\n# %s"),
    "a.sh": ("# %s", "x=${y#z} # %s", "echo 'a # b' # %s", "# a.sh [FILE]: short.\n# %s"),
    "program": ("#!/bin/sh\n# %s",),
    "meson.build": ("# %s", "x = 1 # %s"),
    "a.md": ("%s", "Short. %s", "- %s", "Short:\n- a\n- %s", "1. %s", "| a | b |\n|---|---|\n| c | %s |", "> %s", "(%s)"),
    "a.1.in": (TH + "%s", TH + ".TP\n.B tag\n%s", TH + ".nf\nuniscope x\n.fi\n%s", TH + ".B uniscope\nis. %s"),
}
BAD = [LONG] + [w + " the reader sees." for w in ("Of", "Who", "Whose", "What", "Where")]
# Not a sentence, or not in the language of its kind.
SILENT = {
    "src/cli/a.c": ('e = "  uniscope %s\\n  uniscope x";',
                    'm = "typealias { %s } := u8;";'),
    "a.c": ('puts("%s");', "/*\n *   drawn   %s\n */", "/* Shown:\n *\t%s */"),
    "a.py": ('x = "# %s"', "x = '''\n%s\n'''"),
    "a.sh": ("echo '# %s'", 'echo " # %s"', "# a.sh FILE: short. Then   %s"),
    "a.md": ("# %s", "```\n%s\n```", "`%s`", "A list:\n\n    %s\n", "| %s |\n|---|\n| a |"),
    "a.1.in": (TH + ".TP\n%s\nShort.", TH + ".nf\n%s\n.fi", TH + ".SH SEE ALSO\n%s", TH + '.\\" %s'),
    "a.c.in": ("%s",),
    "a.json": ('{"a": "%s"}',),
}
QUESTIONS = ("What is it?", "Of whom is it?", "Who reads (and why)?", "What it prints:")


class English(unittest.TestCase):
    def found(self, name, text):
        return list(english.offences(pathlib.Path(name), text + "\n"))

    def check(self, places, sentences, nr):
        for name in places:
            for place in places[name]:
                for sentence in sentences:
                    self.assertEqual(len(self.found(name, place % sentence)), nr, (name, place % sentence))

    def test_each_offence(self):
        self.check(SPEAKS, BAD, 1)

    def test_sentences_that_fit(self):
        self.check(SPEAKS, (FITS, "Short.", *QUESTIONS), 0)

    def test_no_sentences(self):
        self.check(SILENT, BAD, 0)

    def test_lines_are_joined(self):
        words = LONG.split()
        for name, line, head, tail in (("a.c", " * ", "/*\n", "\n */"), ("a.md", "", "", ""), ("a.1.in", "", TH, ""),
                                       ("a.sh", "# ", "", "")):
            text = "\n".join(line + " ".join(words[i:i + 7]) for i in range(0, len(words), 7))
            self.assertEqual(len(self.found(name, head + text + tail)), 1, name)

    def test_numbers_and_code(self):
        # A number at the begin of a line ends a sentence there; a list of names in code is a word.
        first = " ".join(["word"] * 20)
        self.assertEqual(self.found("a.md", f"It is {first}\n53. {first}."), [])
        self.assertEqual(self.found("a.md", f"{first} {', '.join(['`a`'] * 20)} and `b`."), [])

    def test_line(self):
        self.assertEqual([o[0] for o in self.found("a.c", "int a;\n\n/* Short.\n *\n * Of it. */")], [5])
        self.assertEqual([o[0] for o in self.found("a.md", "Short.\n\nOf it.")], [3])


class Unproved(unittest.TestCase):
    def test_rows(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("docs/accuracy.md", ""), ("tests/names", "unit/a\ne2e/b\n"),
                               ("tests/unit/a.c", "static void yes(void **state)\n{\n}\n")):
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            for cell, nr in (("unit/a", 0), ("unit/a:yes, e2e/b", 0), ("unit/a:no", 1), ("e2e/c", 1), ("by hand", 1),
                             ("unit/a, e2e/c, unit/d", 2), ("e2e/b:yes", 1)):
                pathlib.Path(root, "docs/accuracy.md").write_text("| what | how sure | test |\n|---|---|---|\n| x | y | %s |\n" % cell)
                self.assertEqual(len(list(check.unproved(root))), nr, cell)


class Waits(unittest.TestCase):
    def test_stale_file(self):
        stale = 'record 2>"$T/said" &\nwait_for 60 grep -q begun "$T/said"\n'
        for head, nr in (("", 1), ('rm -f "$T/other"\n', 1), ('rm -f "$T/said"\n', 0), (': >"$T/said"\n', 0)):
            with tempfile.TemporaryDirectory() as root:
                (pathlib.Path(root) / "tests").mkdir()
                (pathlib.Path(root) / "tests/a.sh").write_text(head + stale)
                subprocess.run(["git", "init", "-q", root], check=True)
                self.assertEqual(len(list(check.waits(pathlib.Path(root)))), nr, head)


if __name__ == "__main__":
    unittest.main()
