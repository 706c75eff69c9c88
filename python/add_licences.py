"""Puts the licences of the libraries that auditwheel took from Debian's packages into a wheel:  add_licences.py WHEEL"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMMON = pathlib.Path("/usr/share/common-licenses")


def package_of(library: str) -> str:
    """auditwheel puts a hash into names: libxxhash-ff91ff0d.so.0.8.1. Empty where no package has the library."""
    name = re.sub(r"^([^.]*)-[0-9a-f]{8}\.", r"\1.", library)
    found = subprocess.run(["dpkg", "--search", f"*/{name}"], check=False, capture_output=True, text=True).stdout
    lines = [line for line in found.splitlines() if not line.startswith("diversion ")]
    if not lines:
        print(f"add_licences.py: {name} is of no package, add its licence before you pass the wheel on", file=sys.stderr)
        return ""
    return lines[0].partition(":")[0]


def source_of(package: str) -> str:
    form = "--showformat=${source:Package} ${source:Version}"
    return subprocess.run(["dpkg-query", "--show", form, package], check=True, capture_output=True, text=True).stdout


def texts(libraries: list[str]) -> dict[str, str]:
    """What each package says, and the whole licences that it refers to."""
    found = {}
    for package in {package_of(library) for library in libraries} - {""}:
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8")
        found[package] = f"Debian's source package: {source_of(package)}\n\n{text}"
        for name in re.findall(rf"{COMMON}/([A-Z][\w.-]*\w)", text):
            if (COMMON / name).exists():
                found[name] = (COMMON / name).read_text(encoding="utf-8")
    return found


def main() -> None:
    wheel = pathlib.Path(sys.argv[1])
    if not shutil.which("dpkg"):
        print("add_licences.py: not a Debian, add the licences of the wheel's libraries before you pass it on", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", folder, wheel], check=True)
        (tree,) = pathlib.Path(folder).iterdir()
        (info,) = tree.glob("*.dist-info")
        for name, text in texts([path.name for path in tree.glob("*.libs/*")]).items():
            (info / "licenses" / f"{name}.txt").write_text(text, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", wheel.parent, tree], check=True)


main()
