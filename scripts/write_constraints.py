"""Write constraints.txt: exact versions of what the two commands install, and of every extra.

What is installed in the environment keeps its version; packages of extras that are not installed
are resolved by pip without installing them.
"""

import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADER = "# Written by `make constraints`: the versions that `make demo` and `make test` install.\n"
RESOLVED_EXTRAS = ("brain", "scale", "onnx", "datasets")
# The CPU build that the network baselines are tested with; resolved by its own number because a
# newer one would bring gigabytes of accelerator libraries along.
PINNED_BY_HAND = {"torch": "2.13.0"}


def installed() -> dict[str, str]:
    """Name and version of every installed distribution but our own."""
    return _ours_left_out({dist.metadata["Name"]: dist.version for dist in distributions()})


def resolved(extras: tuple[str, ...]) -> dict[str, str]:
    """What pip would install for the extras, beside what is installed."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-"]
    target = f"{ROOT}[{','.join(extras)}]"
    output = subprocess.run([*command, target], check=True, capture_output=True, text=True).stdout
    report = json.loads(output[output.index("{") :])
    found = {item["metadata"]["name"]: item["metadata"]["version"] for item in report["install"]}
    return _ours_left_out(found)


def _ours_left_out(versions: dict[str, str]) -> dict[str, str]:
    """Without the package itself and what a new virtual environment brings along."""
    return {name: v for name, v in versions.items() if name not in ("deeptobit", "setuptools")}


def main() -> None:
    """Merge, sort and write."""
    versions = {**resolved(RESOLVED_EXTRAS), **installed(), **PINNED_BY_HAND}
    lines = sorted(f"{name}=={version}\n" for name, version in versions.items())
    (ROOT / "constraints.txt").write_text(HEADER + "".join(sorted(lines, key=str.lower)))


if __name__ == "__main__":
    main()
