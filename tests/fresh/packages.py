#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""packages.py SOURCE_ROOT BUILD_DIR: configuring and building find all they need on a machine that
has the packages of `deps.sh build` (or `demo`, or `test`) alone. TAP.

Meson sees only the programs and the pkg-config files of those packages and of their dependencies.
Each system header that the program's objects were compiled with belongs to one of them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def fields(text):
    """The paragraphs of dpkg's status, each as a dictionary of its one-line fields."""
    for paragraph in text.split("\n\n"):
        yield dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.M))


class Installed:
    def __init__(self, admin="/var/lib/dpkg"):
        self.info = pathlib.Path(admin, "info")
        self.packages, self.provided = {}, {}
        for p in fields(pathlib.Path(admin, "status").read_text()):
            if not p.get("Status", "").endswith(" installed"):
                continue
            self.packages[p["Package"]] = p
            for name in re.findall(r"(?:^|, )([\w.+-]+)", p.get("Provides", "")):
                self.provided.setdefault(name, p["Package"])

    def needs(self, name):
        """The packages that NAME depends on; the first choice that is installed, as apt takes it."""
        p = self.packages[name]
        for clause in ", ".join(p[k] for k in ("Depends", "Pre-Depends") if k in p).split(", "):
            for choice in clause.split("|"):
                m = re.match(r"\s*([\w.+-]+)", choice)
                found = m and (m.group(1) if m.group(1) in self.packages else self.provided.get(m.group(1)))
                if found:
                    yield found
                    break

    def closure(self, names):
        ret, todo = set(), [n for n, p in self.packages.items() if p.get("Essential") == "yes"] + names
        while todo:
            name = todo.pop()
            name = name if name in self.packages else self.provided.get(name, name)
            if name not in ret:
                ret.add(name)
                todo += self.needs(name)
        return ret

    def files(self, names):
        ret = set()
        for name in names:
            for lst in (self.info / f"{name}.list", self.info / f"{name}:amd64.list",
                        self.info / f"{name}:{self.packages[name]['Architecture']}.list"):
                if lst.exists():
                    # The lists have names from before /bin, /lib and /sbin became links.
                    ret.update(re.sub(r"^/(s?bin|lib\w*)/", r"/usr/\1/", f) for f in lst.read_text().splitlines())
                    break
        return ret


def view(directory, files):
    """A folder of programs and one of pkg-config files, those among FILES."""
    for name, places in (("bin", ("/usr/bin", "/usr/sbin")),
                         ("pc", ("/usr/lib/x86_64-linux-gnu/pkgconfig", "/usr/lib/aarch64-linux-gnu/pkgconfig",
                                 "/usr/lib/pkgconfig", "/usr/share/pkgconfig"))):
        pathlib.Path(directory, name).mkdir()
        for place in places:
            for entry in os.scandir(place) if os.path.isdir(place) else ():
                if entry.path in files or os.path.realpath(entry.path) in files:
                    link = pathlib.Path(directory, name, entry.name)
                    if not link.is_symlink():
                        link.symlink_to(entry.path)


def configure(source, options, files):
    """Meson's error with only those files to be found, or None; and all that it said."""
    with tempfile.TemporaryDirectory() as t:
        view(t, files)
        env = {"PATH": f"{t}/bin", "PKG_CONFIG_LIBDIR": f"{t}/pc", "HOME": t, "LC_ALL": "C"}
        meson = subprocess.run([f"{t}/bin/meson", "setup", f"{t}/build", source, *options], env=env,
                               capture_output=True, text=True, stdin=subprocess.DEVNULL)
        said = meson.stdout + meson.stderr
        error = [l for l in said.splitlines() if "ERROR" in l] or said.splitlines()[-3:]
        return (None if meson.returncode == 0 else "\n".join(error)), said


def headers(build, target):
    """The system's headers in what TARGET is made of, by ninja's log of them."""
    ninja = ["ninja", "-C", build, "--quiet", "-t"]
    inputs = set(subprocess.run([*ninja, "inputs", target], check=True, capture_output=True, text=True).stdout.split())
    ret, mine = set(), False
    for line in subprocess.run([*ninja, "deps"], check=True, capture_output=True, text=True).stdout.splitlines():
        if not line.startswith(" "):
            mine = line.split(":")[0] in inputs
        elif mine and line.strip().startswith("/usr/"):
            ret.add(os.path.normpath(line.strip()))
    return ret


def main(source, build):
    if not shutil.which("dpkg-query"):
        print("1..0 # SKIP no dpkg-query on this machine: which package has what is asked of it")
        return
    installed = Installed()
    n = 0

    def result(ok, what, why=""):
        nonlocal n
        n += 1
        print(f"{'ok' if ok else 'not ok'} {n} - {what}")
        for line in [] if ok else why.splitlines()[:20]:
            print(f"# {line}")

    # As README.md says to, as demo.sh does, and with everything.
    demo = re.search(r"meson setup build((?: -D\S+)*)", pathlib.Path(source, "demo.sh").read_text()).group(1).split()
    has = {}
    for step, options in (("build", []), ("demo", demo), ("test", ["-Dtests=enabled", "-Dlab=enabled"])):
        names = subprocess.run(["sh", f"{source}/deps.sh", step, "--list"], check=True, capture_output=True,
                               text=True).stdout.split()
        missing = [p for p in names if p not in installed.packages and p not in installed.provided]
        result(not missing, f"the packages of deps.sh {step} are installed", " ".join(missing))
        has[step] = installed.files(installed.closure([p for p in names if p not in missing]))
        error, said = configure(source, options, has[step])
        command = " ".join(["meson setup", *options])
        result(error is None, f"with those of deps.sh {step} alone, `{command}` works", str(error))
        result("libbpf found: YES" in said and "libmicrohttpd found: YES" in said and
               ("cmocka found: YES" in said) == (step == "test"), f"and finds what they have, and no more ({step})", said)
    used = headers(build, "src/cli/uniscope")
    others = sorted(h for h in used if h not in has["build"] and os.path.realpath(h) not in has["build"])
    result(len(used) > 50 and not others, f"the {len(used)} system headers of the program are of deps.sh build's packages",
           "\n".join(others))
    print(f"1..{n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
