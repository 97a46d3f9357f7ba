#!/usr/bin/env python3
"""Weighs the tests: puts one fault of faults.py after the other into the code, and says which test catches it.

    scripts/mutants/run.py [--out FILE] [ID…]     ids or their beginnings, as pg01 or pg; none are all

It works on a copy of the last commit. The tests of the fault's package come first; where they pass, those of the packages
above it. With servers: eval "$(scripts/servers env)" before. Run it before tests go, and after: what was caught must stay
caught. FILE gets a line a fault: id, "caught" or "survived", the test, the fault. Faults that it has are not run again.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no folder of compiled files beside the scripts
from faults import DA, DB, DO, EN, FAULTS, HL, MC, MY, NI, OR, OS, PB, PG, PL, PR, PU, RL, S3, SL, SO, VE

BACKENDS = [S3, MY, PG, DO, OR, DB]  # the quick ones first
RUN = [PU, "internal/cli"]
ABOVE = {
    SL: BACKENDS[1:], MC: [MY, DO], OS: BACKENDS, HL: [OS, *BACKENDS], NI: [HL, *BACKENDS, PU],
    PL: BACKENDS, PB: BACKENDS, DA: [SO, *RUN],
    EN: RUN, SO: [VE, *RUN], VE: RUN, RL: RUN, PR: RUN, PU: RUN[1:], "internal/backends/discard": [EN, *RUN],
}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=pathlib.Path)
    options.add_argument("id", nargs="*")
    given = options.parse_args()
    here = pathlib.Path(__file__).resolve().parent.parent.parent
    done = {line.split("\t")[0] for line in given.out.read_text().splitlines()} if given.out and given.out.exists() else set()
    with tempfile.TemporaryDirectory() as tree:
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree], cwd=here, check=True)
        try:
            refuse_stale(pathlib.Path(tree))
            for f in FAULTS:
                if f.id not in done and (not given.id or f.id.startswith(tuple(given.id))):
                    line = "\t".join([f.id, *weigh(pathlib.Path(tree), f), f.what])
                    print(line, flush=True)
                    if given.out:
                        with given.out.open("a") as out:
                            out.write(line + "\n")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=here, check=True)


def refuse_stale(tree):
    """Ends the program if the code has changed beneath faults, and names them all."""
    stale = []
    for f in FAULTS:
        path = tree / f.package / f.file
        times = path.read_text().count(f.old) if path.exists() else 0
        if times != 1:
            stale.append(f"{f.id}: {f.package}/{f.file} has the text {times} times: {f.old}")
    if stale:
        sys.exit("\n".join(stale))


def weigh(tree, f):
    """Returns whether the fault is caught, and by which test."""
    path = tree / f.package / f.file
    text = path.read_text()
    path.write_text(text.replace(f.old, f.new))
    try:
        built = subprocess.run(["go", "build", "./..."], cwd=tree, capture_output=True, text=True)
        if built.returncode:
            sys.exit(f"{f.id} does not compile: {built.stderr}")
        for package in [f.package, *ABOVE.get(f.package, [])]:
            if test := failing(tree, package):
                return "caught", test
        return "survived", ""
    finally:
        path.write_text(text)


def failing(tree, package):
    """Returns the first test of the package that fails, also when it is run again alone."""
    test = ["go", "test", "-vet=off", "-count=1", "-failfast", "-timeout=10m", "./" + package]
    first = subprocess.run(test, cwd=tree, capture_output=True, text=True, errors="replace")
    if first.returncode == 0:
        return ""
    names = re.findall(r"--- FAIL: (\S+)", first.stdout) or re.findall(r"running tests:\s+(\S+)", first.stdout)  # one that hangs
    alone = ["-run", f"^{names[-1].split('/')[0]}$"] if names else []
    if subprocess.run([*test, *alone], cwd=tree, capture_output=True).returncode == 0:
        return ""
    names = names or re.findall(r"(panic: .*)", first.stdout)
    return f"{package.rsplit('/', 1)[-1]}.{names[-1] if names else 'timeout'}"


if __name__ == "__main__":
    main()
