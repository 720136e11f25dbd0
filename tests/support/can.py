#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The abilities that this host offers to tests, found out without uniscope.

can.py PART: exit 0 if it can be used. Otherwise it prints the reason and exits with 77 (skip). It exits with 1 if the variable
UNISCOPE_MUST names the part: this host must have it, so that a skip would hide a defect. PART: kvm, bpf (programs on perf events in
the kernel), perf (perf_event_open of another process). Or xen (QEMU and Xen's packages), browser (a Chromium that renders a page).
"""
import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import sys

SYS_PERF_EVENT_OPEN, SYS_BPF = {"x86_64": (298, 321), "aarch64": (241, 280)}.get(os.uname().machine, (0, 0))
KVM_GET_API_VERSION, KVM_CREATE_VM = 0xae00, 0xae01
BPF_PROG_LOAD, BPF_PROG_TYPE_PERF_EVENT = 5, 7
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK = 1, 0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Cannot(Exception):
    pass


def call(number, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    ret = libc.syscall(ctypes.c_long(number), *args)
    return ret if ret >= 0 else -ctypes.get_errno()


def kvm():
    try:
        fd = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
        version = fcntl.ioctl(fd, KVM_GET_API_VERSION)
        os.close(fcntl.ioctl(fd, KVM_CREATE_VM, 0))
        os.close(fd)
    except OSError as e:
        raise Cannot("/dev/kvm cannot be used: %s" % e.strerror) from e
    if version != 12:
        raise Cannot("/dev/kvm speaks version %d, not 12" % version)


def event(pid, cpu):
    """A software clock as an event: of a process on any CPU, or of all processes on one."""
    attr = bytearray(128)
    struct.pack_into("=IIQQ", attr, 0, PERF_TYPE_SOFTWARE, len(attr), PERF_COUNT_SW_CPU_CLOCK, 0xffffffff)
    struct.pack_into("=Q", attr, 40, 1)  # disabled
    buf = (ctypes.c_char * len(attr)).from_buffer(attr)
    fd = call(SYS_PERF_EVENT_OPEN, buf, ctypes.c_int(pid), ctypes.c_int(cpu), ctypes.c_int(-1), ctypes.c_ulong(8))
    if fd < 0:
        raise Cannot("perf_event_open() refuses: %s" % os.strerror(-fd))
    os.close(fd)


def perf():
    event(os.getppid(), -1)


def bpf():
    event(-1, 0)
    # r0 = 0; exit
    code = ctypes.create_string_buffer(struct.pack("=BBhi", 0xb7, 0, 0, 0) + struct.pack("=BBhi", 0x95, 0, 0, 0), 16)
    licence = ctypes.create_string_buffer(b"Dual BSD/GPL")
    attr = bytearray(128)
    struct.pack_into("=IIQQ", attr, 0, BPF_PROG_TYPE_PERF_EVENT, 2, ctypes.addressof(code), ctypes.addressof(licence))
    buf = (ctypes.c_char * len(attr)).from_buffer(attr)
    fd = call(SYS_BPF, ctypes.c_int(BPF_PROG_LOAD), buf, ctypes.c_int(len(attr)))
    if fd < 0:
        raise Cannot("bpf() refuses a program: %s" % os.strerror(-fd))
    os.close(fd)
    try:
        with open("/sys/kernel/btf/vmlinux", "rb") as f:
            types = f.read()
    except OSError as e:
        raise Cannot("/sys/kernel/btf/vmlinux: %s" % e.strerror) from e
    if b"\0kvm_vcpu\0" not in types and not os.path.exists("/sys/kernel/btf/kvm"):
        raise Cannot("the kernel tells nothing of KVM's types")
    if b"\0BPF_FUNC_loop\0" not in types:
        raise Cannot("the kernel is older than 5.17: its BPF has no loops")


def xen():
    for program in ("qemu-system-x86_64", "dpkg-query"):
        if shutil.which(program) is None:
            raise Cannot("%s is not installed" % program)
    for package in ("xen-utils-4.17", "xenstore-utils", "linux-image-amd64", "busybox", "cpio", "kmod", "qemu-system-xen"):
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, check=False)
        if b"install ok installed" not in done.stdout:
            raise Cannot("%s is not installed" % package)
    if not os.access("/boot/xen-4.17-amd64.gz", os.R_OK):
        raise Cannot("xen-hypervisor-4.17-amd64 is not installed")


def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise Cannot("no chromium on this machine")
    done = subprocess.run([program, "--version"], capture_output=True, check=False)
    if done.returncode != 0:
        raise Cannot("%s does not start" % program)


PARTS = {"kvm": kvm, "bpf": bpf, "perf": perf, "xen": xen, "browser": browser}


def why_not(part):
    """None if it can be used, else the reason."""
    try:
        PARTS[part]()
    except Cannot as e:
        return str(e)
    return None


def must(part):
    return part in os.environ.get("UNISCOPE_MUST", "").split()


def absent(why):
    """For tests in Python: without what the build or a package gives all is skipped; see can.sh."""
    if os.environ.get("UNISCOPE_MUST"):
        print("Bail out! " + why)
        sys.exit(1)
    print("1..0 # SKIP " + why)
    sys.exit(0)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PARTS:
        print("usage: can.py %s" % "|".join(PARTS), file=sys.stderr)
        return 2
    why = why_not(sys.argv[1])
    if why is None:
        return 0
    print(why)
    return 1 if must(sys.argv[1]) else 77


if __name__ == "__main__":
    sys.exit(main())
