# SPDX-License-Identifier: BSD-2-Clause
"""solo5_notes.py ELF OUTPUT BINDING [net:NAME|block:NAME]...

OUTPUT is ELF with the notes of an image of Solo5: "ABI1" names the binding, "MFT1" the devices."""
import struct
import subprocess
import sys
import tempfile

BINDINGS = ["hvt", "spt", "virtio", "muen", "genode", "xen"]
TYPES = {"block": 1, "net": 2}


def note(kind, desc):
    return struct.pack("<III", 6, len(desc), int.from_bytes(kind, "little")) + b"Solo5\0\0\0" + desc


def entry(name, kind):
    return struct.pack("<68sI32x", name.encode(), kind)


elf, output, binding, *devices = sys.argv[1:]
entries = [entry("", 1 << 30)] + [entry(d.split(":")[1], TYPES[d.split(":")[0]]) for d in devices]
notes = {".note.solo5.abi": note(b"ABI1", struct.pack("<IIII", BINDINGS.index(binding) + 1, 1, 0, 0)),
         ".note.solo5.manifest": note(b"MFT1", struct.pack("<III", 0, 1, len(entries)) + b"".join(entries))}
with tempfile.TemporaryDirectory() as folder:
    words = []
    for name, data in notes.items():
        with open(folder + "/" + name, "wb") as file:
            file.write(data)
        words += ["--add-section", f"{name}={folder}/{name}"]
    subprocess.run(["objcopy", *words, elf, output], check=True)
