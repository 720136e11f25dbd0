# SPDX-License-Identifier: BSD-2-Clause
"""The cost of a promise in a program on Lwt that is traced with guest/ports/ocaml, by the number of promises."""
import os
import shutil
import statistics
import subprocess
import tempfile

from common import ROOT, bench, need


@bench
def ocaml(args):
    """CPU time of a promise that is made, awaited, woken, and signalled once: recorded, and off."""
    find = need("ocamlfind")
    with tempfile.TemporaryDirectory() as place:
        port = f"{ROOT}/guest/ports/ocaml"
        for name in (*(f"{port}/{n}" for n in os.listdir(port)), f"{ROOT}/bench/ocaml_promises.ml"):
            shutil.copy(name, place)
        shutil.move(f"{place}/main_loop.unix.ml", f"{place}/main_loop.ml")
        subprocess.run([find, "ocamlopt", "-thread", "-package", "lwt.unix", "-linkpkg", "mprof_stubs.c",
                        "mprof_unix_stubs.c", "main_loop.ml", "mProf.mli", "mProf.ml", "mProf_unix.mli",
                        "mProf_unix.ml", "ocaml_promises.ml", "-o", "bench"],
                       cwd=place, check=True)
        for nr in (1000, 10000, 100000):
            us = {True: [], False: []}
            for _ in range(args.runs):
                for on, all_us in us.items():
                    argv = [f"{place}/bench", str(nr), *([f"{place}/ring"] if on else [])]
                    out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
                    all_us.append(float(out) * 1e6 / nr)
            on, off = (sorted(us[k]) for k in (True, False))
            print(f"{nr} promises: {statistics.median(on):.1f} us each ({on[0]:.1f} to {on[-1]:.1f});"
                  f" off {statistics.median(off):.1f} ({off[0]:.1f} to {off[-1]:.1f})")
