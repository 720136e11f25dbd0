#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the rule that keeps Xen's interfaces in one place find them elsewhere, and only them?"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
