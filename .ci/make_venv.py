"""Make ``.venv`` from the lock file, or leave it alone if it is up to date.

Runs under any python3 that make found: standard library only, and no syntax that a Python too old
for runbill could not read, because it has to say so. The stamp inside the environment is a digest
of everything that the environment depends on; where it differs (another lock, another interpreter,
a moved checkout), the environment is made anew.
"""

import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements-dev.lock"
STAMP = VENV / "stamp"
PYTHON = VENV / "bin" / "python"
OLDEST = (3, 11)
PACKAGE = "python3-venv"


def main() -> None:
    """Check the interpreter and bring the environment up to date.

    Raises:
        SystemExit: With one line that says what to install or what failed.
    """
    check_interpreter()
    key = digest()
    if STAMP.is_file() and STAMP.read_text() == key and PYTHON.exists():
        return
    say("making .venv from requirements-dev.lock (once, about a minute)")
    make_environment()
    install()
    STAMP.write_text(key)


def check_interpreter() -> None:
    """Refuse an interpreter that is too old or cannot make environments."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        raise SystemExit(
            f"runbill needs Python 3.11 or newer and {sys.executable} is {found}: apt-get install "
            "python3.11 python3.11-venv, then add PYTHON=python3.11 to the make command"
        )
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        refuse_without_venv()


def refuse_without_venv() -> None:
    """Say which package holds what this Python lacks."""
    raise SystemExit(
        f"{sys.executable} cannot make virtual environments: apt-get install {PACKAGE}, then again"
    )


def digest() -> str:
    """SHA-256 of all that the environment is made of: files, place and interpreter."""
    parts = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), bytes(ROOT)]
    parts += [sys.version.encode(), sys.base_prefix.encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make_environment() -> None:
    """Make an empty environment with pip in it, over whatever is there."""
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True
    )
    if made.returncode and "ensurepip" in made.stdout + made.stderr:
        refuse_without_venv()
    if made.returncode:
        raise SystemExit(f"making .venv failed: {made.stdout}{made.stderr}")


def install() -> None:
    """Install uv with pip, the locked packages with uv (else pip), and runbill in place."""
    pip = [str(PYTHON), "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    uv = [str(PYTHON), "-m", "uv", "--quiet", "pip", "install", "--python", str(PYTHON)]
    locked = ["--require-hashes", "--requirement"]
    with tempfile.TemporaryDirectory() as folder:
        tool = Path(folder, "uv.txt")
        tool.write_text(locked_block("uv"))
        run(*pip, "--no-deps", *locked, str(tool))
    if subprocess.run([*uv, *locked, str(LOCK)]).returncode:
        say("uv could not install the lock file, pip tries (slower; it knows pip's own settings)")
        run(*pip, *locked, str(LOCK))
    run(*uv, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def locked_block(name: str) -> str:
    """The requirement of one package with its hashes, as the lock file has it."""
    found = re.search(rf"^{re.escape(name)}==(?:.*\\\n)*.*\n", LOCK.read_text(), re.MULTILINE)
    if not found:
        raise SystemExit(f"requirements-dev.lock does not name {name}: make lock")
    return found[0]


def run(*command: str) -> None:
    """Run a command that has to succeed; it has said on stderr what went wrong."""
    if subprocess.run(command).returncode:
        raise SystemExit("the installation failed; the lines above say where")


def say(text: str) -> None:
    """A line for the reader, kept apart from what a target prints."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
