"""Build the wheel twice: ``python -m scripts.wheel`` prints its size and digest.

Fails if the two differ in a byte (times and the order of files are set by hatchling, from
``SOURCE_DATE_EPOCH`` if it is set), or if the wheel is larger than it may be.
"""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
LARGEST = 700_000


def build(folder: Path) -> Path:
    """The wheel of the working tree, built into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*command, "--directory", folder], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main() -> int:
    """Build, compare, and say what came out; the exit code is 1 if something is not as it must."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        wheel, again = build(Path(first)), build(Path(second))
        content = wheel.read_bytes()
        same, small = content == again.read_bytes(), len(content) <= LARGEST
        print(f"{wheel.name}: {len(content):,} bytes of at most {LARGEST:,}")
        print(f"sha256 {sha256(content).hexdigest()}; {'the same' if same else 'another'} twice")
    return 0 if same and small else 1


if __name__ == "__main__":
    sys.exit(main())
