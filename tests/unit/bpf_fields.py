#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bpf_fields.py VMLINUX KVM OTHER... -- OBJECT... bpf_fields.py --installed -- OBJECT...: the same of the newest kernel package
that is installed; bpf_fields.py --packages DEB... -- OBJECT...: of such packages (apt-get download linux-image-VERSION-unsigned)

Every field of the kernel's structures that the programs use, looked up in a kernel's types (BTF). VMLINUX and KVM are files of
types (/sys/kernel/btf/), ELF files with a section .BTF, also packed (xz, zst, lz4, gz), or for VMLINUX a bzImage. KVM is "-" if KVM is no
module. OTHER are kvm-intel.ko and kvm-amd.ko: in the vCPUs and VMs that they extend, the fields must lie where KVM's do. TAP.
The exit status is 1 if a field is missing.

A field that a program first asks for (bpf_core_field_exists) may be missing, and so may a form that a structure had in another
version (name___form)."""
import importlib.util
import lzma
import os
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import zlib

MAGIC = 0xeb9f
INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF = 1, 2, 3, 4, 5, 6, 7, 8
VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR, DATASEC = 9, 10, 11, 12, 13, 14, 15
FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = 16, 17, 18, 19
BEHIND = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)
# Bytes behind a type's 12: fixed, and for each of its vlen parts.
TAIL = {INT: (4, 0), ARRAY: (12, 0), STRUCT: (0, 12), UNION: (0, 12), ENUM: (0, 8), FUNC_PROTO: (0, 8),
        VAR: (4, 0), DATASEC: (0, 12), DECL_TAG: (4, 0), ENUM64: (0, 12)}
BYTE_OFFSET, FIELD_EXISTS = 0, 2
FIELDS = (BYTE_OFFSET, FIELD_EXISTS)
# The place of KVM's structures in those of a vendor's module: structure and member.
EXTENDED = {'kvm_vcpu': (('vcpu_vmx', 'vcpu'), ('vcpu_svm', 'vcpu')),
            'kvm': (('kvm_vmx', 'kvm'), ('kvm_svm', 'kvm'))}


def elf_section(data, wanted):
    offset, = struct.unpack_from('<Q', data, 40)
    _, count, names = struct.unpack_from('<HHH', data, 58)
    headers = [struct.unpack_from('<IIQQQQIIQQ', data, offset + i * 64) for i in range(count)]
    for h in headers:
        at = headers[names][4] + h[0]
        if data[at:data.index(b'\0', at)] == wanted:
            return data[h[4]:h[4] + h[5]]
    sys.exit('there is no section ' + wanted.decode())


def unpacked(data):
    """The packed data, by its first bytes; or the data itself."""
    if data.startswith(b'\xfd7zXZ\0'):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
    if data.startswith(b'\x1f\x8b\x08'):
        return zlib.decompressobj(wbits=31).decompress(data)
    for magic, tool in ((b'\x28\xb5\x2f\xfd', 'zstd'), (b'\x02\x21\x4c\x18', 'lz4')):
        # Behind it in a bzImage lies its size: these unpack what they can, and complain.
        if data.startswith(magic):
            return subprocess.run([tool, '-dcq'], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return data


def payload(data):
    """The contents of a bzImage, by lab/xen/vmlinux.py."""
    path = pathlib.Path(__file__).resolve().parents[2] / 'lab/xen/vmlinux.py'
    spec = importlib.util.spec_from_file_location('vmlinux', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.payload(data)


def types_of(data):
    data = unpacked(data)
    if data[0x202:0x206] == b'HdrS':
        data = unpacked(payload(data))
    if struct.unpack_from('<H', data)[0] == MAGIC:
        return data
    if data[:4] != b'\x7fELF':
        sys.exit('neither types nor an ELF file, or packed in an unknown way: %s' % data[:4].hex())
    return elf_section(data, b'.BTF')


class Types:
    """A file of types; behind those of base, if there is one."""

    def __init__(self, data, base=None):
        magic, _, _, head, types, size, strings, strings_size = struct.unpack_from('<HBBIIIII', data)
        if magic != MAGIC:
            sys.exit('no BTF')
        self.first, self.base = (base.end, base) if base else (1, None)
        self.strings_at = base.strings_end if base else 0
        self.strings = data[head + strings:head + strings + strings_size]
        self.strings_end = self.strings_at + strings_size
        self.all, self.by_name = [], {}
        at, end = head + types, head + types + size
        while at < end:
            name, info, what = struct.unpack_from('<III', data, at)
            kind, parts = info >> 24 & 31, info & 0xffff
            fixed, each = TAIL.get(kind, (0, 0))
            tail = data[at + 12:at + 12 + fixed + each * parts]
            at += 12 + len(tail)
            self.all.append((name, info, what, tail))
            if kind in (STRUCT, UNION, ENUM, ENUM64, TYPEDEF):
                self.by_name.setdefault(self.text(name), []).append(self.first + len(self.all) - 1)
        self.end = self.first + len(self.all)

    def text(self, at):
        if at < self.strings_at:
            return self.base.text(at)
        at -= self.strings_at
        return self.strings[at:self.strings.index(b'\0', at)].decode()

    def get(self, number):
        """(name, kind, number or size, parts, flag) without typedefs and qualifiers."""
        while True:
            if number == 0:
                return ('void', 0, 0, b'', 0)
            if number < self.first:
                return self.base.get(number)
            name, info, what, tail = self.all[number - self.first]
            if info >> 24 & 31 not in BEHIND:
                return (self.text(name), info >> 24 & 31, what, tail, info >> 31)
            number = what

    def members(self, number):
        """(name, type, bit offset)"""
        _, kind, _, tail, bits = self.get(number)
        if kind in (STRUCT, UNION):
            for name, kind_of, offset in struct.iter_unpack('<III', tail):
                yield self.text(name), kind_of, offset & 0xffffff if bits else offset

    def member(self, number, name):
        """(type, bit offset) also through members without a name; None."""
        for its_name, kind_of, offset in self.members(number):
            if its_name == name:
                return kind_of, offset
            if not its_name:
                inner = self.member(kind_of, name)
                if inner:
                    return inner[0], offset + inner[1]
        return None

    def element(self, number):
        """(type, how many) of an array; None."""
        _, kind, _, tail, _ = self.get(number)
        if kind != ARRAY:
            return None
        what, _, count = struct.unpack('<III', tail)
        return what, count

    def size(self, number):
        _, kind, what, _, _ = self.get(number)
        if kind == ARRAY:
            what, count = self.element(number)
            return count * self.size(what)
        return 8 if kind == PTR else what

    def find(self, name):
        """The whole types of that name, here or in the base."""
        found = [n for n in self.by_name.get(name, []) if self.get(n)[1] != FWD]
        return found or (self.base.find(name) if self.base else [])

    def place(self, number, steps):
        """The bit offset of a field; None: there is none."""
        offset = 0
        for step in steps:
            if isinstance(step, int):
                found = self.element(number)
                if not found:
                    return None
                number = found[0]
                offset += step * self.size(number) * 8
            else:
                found = self.member(number, step)
                if not found:
                    return None
                number = found[0]
                offset += found[1]
        return offset


class Uses:
    """The fields, sizes, and values of enums that the programs of an object use."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        self.types = Types(elf_section(data, b'.BTF'))
        ext = elf_section(data, b'.BTF.ext')
        head, = struct.unpack_from('<I', ext, 4)
        at, size = struct.unpack_from('<II', ext, 24)
        self.fields, self.asked = set(), set()
        at, end = at + head + 4, at + head + size
        while at < end:
            _, count = struct.unpack_from('<II', ext, at)
            at += 8
            for _ in range(count):
                self.add(*struct.unpack_from('<IIII', ext, at)[1:])
                at += 16

    def add(self, number, access, kind):
        if kind not in FIELDS:
            return
        name = self.types.get(number)[0]
        steps, here = [], number
        for step in [int(s) for s in self.types.text(access).split(':')][1:]:
            element = self.types.element(here)
            if element:
                steps.append(step)
                here = element[0]
            else:
                member, here, _ = list(self.types.members(here))[step]
                steps.append(member)
        if steps:
            (self.asked if kind == FIELD_EXISTS else self.fields).add((name, tuple(steps)))


def written(name, steps):
    return name + ''.join('[%d]' % s if isinstance(s, int) else '.' + s for s in steps)


def looked_up(types, name, steps):
    """The place of that field in the kernel's types, or None."""
    for number in types.find(name.split('___')[0]):
        place = types.place(number, steps)
        if place is not None:
            return place
    return None


def compare(vendor, places):
    """How many fields a vendor's module has where KVM has them, and the names of those that it has not."""
    seen, odd = 0, []
    for name, holders in EXTENDED.items():
        inside = [vendor.member(n, member)[0] for holder, member in holders for n in vendor.by_name.get(holder, [])]
        for (of, steps), place in places.items():
            if of != name:
                continue
            seen += 1
            if not inside or vendor.place(inside[0], steps) != place:
                odd.append(written(of, steps))
    return seen, odd


KVM_MODULES = ('kvm.ko', 'kvm-intel.ko', 'kvm-amd.ko')


def installed():
    """The newest kernel package; none: the test is skipped, but not where UNISCOPE_MUST is set (can.sh: absent)."""
    found = []
    for image in pathlib.Path('/boot').glob('vmlinuz-*'):
        folder = pathlib.Path('/lib/modules', image.name[8:], 'kernel/arch/x86/kvm')
        modules = [sorted(folder.glob(m + '*')) for m in KVM_MODULES]
        if all(modules):
            numbers = [int(n) for n in re.findall(r'\d+', image.name)]
            found.append((numbers, [image] + [m[0] for m in modules]))
    if not found:
        must = os.environ.get('UNISCOPE_MUST')
        print(('Bail out! ' if must else '1..0 # SKIP ') + 'no kernel package with KVM as a module is installed')
        sys.exit(1 if must else 0)
    return [(f.name, f.read_bytes()) for f in max(found)[1]]


def packaged(path):
    """The same of a package's file."""
    found = {}
    with subprocess.Popen(['dpkg-deb', '--fsys-tarfile', path], stdout=subprocess.PIPE) as unpacker:
        with tarfile.open(fileobj=unpacker.stdout, mode='r|') as tree:
            for member in tree:
                name = pathlib.PurePath(member.name).name
                stem = re.sub(r'\.(xz|zst|gz)$', '', name)
                if member.isfile() and (name.startswith('vmlinuz-') or stem in KVM_MODULES):
                    found['vmlinuz' if name.startswith('vmlinuz-') else stem] = name, tree.extractfile(member).read()
    return [found[name] for name in ('vmlinuz',) + KVM_MODULES]


class Report:
    def __init__(self):
        self.nr, self.failed = 0, 0

    def line(self, good, words):
        self.nr += 1
        self.failed += not good
        print('%sok %d - %s' % ('' if good else 'not ', self.nr, words))


def check_kernel(report, files, fields, asked):
    """Files are pairs of a name and what is in it, in the order of the command line."""
    (name, vmlinux), (kvm_name, kvm), *others = files
    print('# %s %s' % (name, kvm_name))
    base = Types(types_of(vmlinux))
    types = Types(types_of(kvm), base) if kvm else base
    places = {}
    for name, steps in sorted(fields | asked, key=str):
        place = looked_up(types, name, steps)
        # Asked for, or below one that was.
        optional = '___' in name or any(name == a and steps[:len(s)] == s for a, s in asked)
        places[name, steps] = place
        report.line(place is not None or optional, written(name, steps) + (
            ' at %d' % (place // 8) if place is not None else ' is not there' + (', and need not' if optional else '')))
    slots = [f for f in asked if f[0].startswith('kvm_memslots') and places[f] is not None]
    report.line(slots, 'memory slots are kept in one of the known ways')
    for other, data in others:
        seen, odd = compare(Types(types_of(data), base), places)
        report.line(seen and not odd, '%s: %d fields, in the same places %s' % (other, seen, 'but ' + ', '.join(odd) if odd else ''))


def main():
    cut = sys.argv.index('--')
    fields, asked = set(), set()
    for path in sys.argv[cut + 1:]:
        uses = Uses(path)
        fields |= uses.fields
        asked |= uses.asked
    if sys.argv[1] == '--packages':
        kernels = (packaged(path) for path in sys.argv[2:cut])
    elif sys.argv[1] == '--installed':
        kernels = [installed()]
    else:
        kernels = [[(path, pathlib.Path(path).read_bytes() if path != '-' else b'') for path in sys.argv[1:cut]]]
    report = Report()
    for files in kernels:
        check_kernel(report, files, fields, asked)
    print('1..%d' % report.nr)
    sys.exit(report.failed != 0)


main()
