# SPDX-License-Identifier: BSD-2-Clause
"""Names: from addresses to functions, inlined ones too, and lines."""
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from common import bench, compare, need


def make_program(d, files=26, functions=60):
    """An image of 10 MB with DWARF: functions that inline functions that inline others."""
    gcc = need("gcc")
    objects = []
    with open(f"{d}/inner.h", "w") as f:
        for i in range(40):
            body = " ".join(f"x = x * {i + 3} + (x >> {k + 1}) + (long)text[x & 7];" for k in range(4))
            call = f"x += inner{i - 1}(x, text);" if i % 4 else ""
            f.write(f"static inline long inner{i}(long x, const char *text)\n{{\n\t{body}\n\t{call}\n"
                    "\treturn x;\n}\n")
    for n in range(files):
        with open(f"{d}/f{n}.c", "w") as f:
            f.write('#include "inner.h"\n')
            for i in range(functions):
                calls = "\n".join(f"\tx ^= inner{(n + i * 7 + k * 3) % 40}(x + {k}, text);" for k in range(6))
                f.write(f"long file{n}_function{i}(long x, const char *text)\n{{\n{calls}\n\treturn x;\n}}\n")
            if n == 0:
                f.write("int main(void) { return 0; }\n")
        objects.append(f"{d}/f{n}.o")
    subprocess.run(["xargs", "-P2", "-I{}", gcc, "-O2", "-g", "-c", f"{d}/{{}}.c", "-o", f"{d}/{{}}.o"],
                   input="\n".join(f"f{n}" for n in range(files)), text=True, check=True)
    subprocess.run([gcc, "-o", f"{d}/program", *objects], check=True)
    return f"{d}/program"


@bench
def symbols(args):
    """Addresses to functions, inlined ones too, and lines: against addr2line and eu-addr2line."""
    objdump = need("objdump")
    with tempfile.TemporaryDirectory() as d:
        program = make_program(d)
        print(f"an image of {os.path.getsize(program) / 1e6:.1f} MB")
        runs = [subprocess.run([f"{args.build}/bench/lookups", program], check=True, text=True,
                               capture_output=True).stdout.splitlines() for _ in range(args.runs)]
        for i, (name, what) in enumerate((("cold", "ms from nothing to one stack of 20 frames"),
                                          ("index", "ms to read the rest"),
                                          ("symbols", "symbol lookups a second"),
                                          ("places", "lookups of inline chain and lines a second"))):
            values = sorted(float(r[i].split()[1]) for r in runs)
            print(f"    {statistics.median(values):.4g} {what}, from {values[0]:.4g} to {values[-1]:.4g}")
        text = subprocess.run([objdump, "-d", "--no-show-raw-insn", program], check=True, text=True,
                              capture_output=True).stdout
        found = [w[0][:-1] for w in (l.split(None, 1) for l in text.splitlines() if l[:1] == " ")
                 if w and w[0].endswith(":")]
        with open(f"{d}/all", "w") as f:
            f.write("".join(f"0x{a}\n" for a in found[::len(found) // 20000 + 1]))
        with open(f"{d}/one", "w") as f:
            f.write("".join(f"0x{a}\n" for a in found[::len(found) // 20]))
        print()

        def asked(path):
            def measure(argv):
                t = time.monotonic()
                with open(path) as f:
                    subprocess.run(argv, stdin=f, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, check=False)
                return time.monotonic() - t
            return measure

        for peer in ("addr2line", "eu-addr2line"):
            if not shutil.which(peer):
                print(f"{peer} is not installed\n")
                continue
            for what, path in (("20 addresses with inline chains and lines", f"{d}/one"),
                               ("20,000 addresses with inline chains and lines", f"{d}/all")):
                compare(what, "seconds", ("uniscope", [f"{args.build}/tests/e2e/places", program]),
                        (peer, [peer, "-a", "-f", "-i", "-e", program]), asked(path), args.runs)
