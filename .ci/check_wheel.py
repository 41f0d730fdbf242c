"""Check that the wheel is the repository: sdist, wheel from it, file lists, clean installation.

An editable installation hides lost files, and the build backend ships whatever lies in a package
folder, tracked or not. So the wheel that is built from the sdist has to hold exactly the files
that ``git ls-files`` names for the packages, and has to run outside the checkout.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")


def main() -> None:
    """Build, compare, install and run.

    Raises:
        SystemExit: With the files that differ, or the command that failed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        packages = project["tool"]["uv"]["build-backend"]["module-name"]
        compare(tracked(packages), packed(wheel))
        version = run_installed(wheel, folder / "venv")
    if project["project"]["version"] not in version:
        raise SystemExit(f"the installed runbill calls itself {version!r}")
    sys.stdout.write(f"{wheel.name} holds what git holds, and runs: {version}\n")


def build(folder: Path) -> Path:
    """Build the sdist of the checkout, and the wheel from that sdist."""
    for source, kind in ((ROOT, "--sdist"), (folder, "--wheel")):
        place = next(folder.glob("*.tar.gz")) if source == folder else source
        run(
            UV,
            "build",
            "--quiet",
            "--no-build-isolation",
            "--python",
            sys.executable,
            kind,
            "--out-dir",
            folder,
            place,
        )
    return next(folder.glob("*.whl"))


def tracked(packages: list[str]) -> set[str]:
    """The files of the packages that git tracks."""
    return set(run("git", "-C", ROOT, "ls-files", "-z", "--", *packages).split("\0")) - {""}


def packed(wheel: Path) -> set[str]:
    """The files of the wheel, without the ones that describe it."""
    return {
        name
        for name in zipfile.ZipFile(wheel).namelist()
        if ".dist-info/" not in name and not name.endswith("/")
    }


def compare(git: set[str], wheel: set[str]) -> None:
    """Refuse a wheel that lacks or adds a file."""
    lines = [f"missing from the wheel: {name}" for name in sorted(git - wheel)]
    lines += [f"in the wheel but not in git: {name}" for name in sorted(wheel - git)]
    if lines:
        raise SystemExit("\n".join(lines))


def run_installed(wheel: Path, venv: Path) -> str:
    """Install the wheel with the locked packages elsewhere, and ask it for its version from /."""
    python = venv / "bin" / "python"
    run(UV, "venv", "--quiet", "--python", sys.executable, venv)
    install = (UV, "pip", "install", "--quiet", "--python", python)
    run(*install, "--require-hashes", "--requirement", ROOT / "requirements.lock")
    run(*install, "--no-deps", wheel)
    return run(venv / "bin" / "runbill", "--version", cwd="/").strip()


def run(*command: str | Path, cwd: str | Path = ROOT) -> str:
    """The stdout of a command that has to succeed."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return done.stdout


if __name__ == "__main__":
    main()
