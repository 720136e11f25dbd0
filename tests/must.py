#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""must.py: the parts of the lab that this host has, in words for UNISCOPE_MUST; what it lacks, on stderr.

A test that needs such a part may not skip. Each trial is the kernel's or a tool's own answer, and none is
of uniscope, which is what the tests are about."""
import ctypes
import glob
import os
import platform
import shutil
import struct
import subprocess
import sys

CALLS = {"x86_64": {"perf": 298, "bpf": 321}, "aarch64": {"perf": 241, "bpf": 280}}
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK = 1, 0
BPF_PROG_LOAD, BPF_PROG_TYPE_PERF_EVENT = 5, 7


def call(name, *args):
    """The descriptor that a system call gave, which is closed again; an OSError where it gave none."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(CALLS[platform.machine()][name], *args)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.close(fd)


def has_kvm():
    os.close(os.open("/dev/kvm", os.O_RDWR))


def has_perf():
    """The clock of a CPU as an event, as sampling in the kernel needs it: of all processes."""
    attr = struct.pack("IIQQ", PERF_TYPE_SOFTWARE, 64, PERF_COUNT_SW_CPU_CLOCK, 1000000).ljust(64, b"\0")
    call("perf", attr, ctypes.c_int(-1), 0, -1, ctypes.c_ulong(0))


def has_bpf():
    has_kvm()
    has_perf()
    with open("/sys/kernel/btf/vmlinux", "rb"):
        pass
    # r0 = 0; exit
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0))
    name = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("IIQQ", BPF_PROG_TYPE_PERF_EVENT, 2, ctypes.addressof(code),
                       ctypes.addressof(name)).ljust(48, b"\0")
    call("bpf", BPF_PROG_LOAD, attr, 48)


def has_xen():
    """What lab/xen boots comes from Debian's packages (deps.sh); lab/xen/mkdom0 fetches the hypervisor."""
    for pattern in ("/usr/lib/xen-*/bin/xl", "/boot/vmlinuz-*"):
        if not glob.glob(pattern):
            raise OSError(0, "there is no " + pattern)
    for program in ("qemu-system-x86_64", "busybox", "cpio"):
        if not shutil.which(program):
            raise OSError(0, "%s is not installed" % program)


def has_browser():
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        raise OSError(0, "no Chromium")


def main():
    words = []
    for word in ("kvm", "bpf", "perf", "xen", "browser"):
        try:
            globals()["has_" + word]()
            words.append(word)
        except (OSError, KeyError) as e:
            print("not here, so its tests may skip: %s (%s)" % (word, e), file=sys.stderr)
    print(" ".join(words))


if __name__ == "__main__":
    main()
