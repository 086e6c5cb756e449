"""Fuzz one target with atheris: ``python -m fuzz models --seconds 600``.

Inputs that lead somewhere new are collected in ``.fuzz``, from where the next run begins. An input
that is neither read nor refused ends the run; it is written to ``tests/fuzz/found``.
"""

import argparse
import sys
from hashlib import sha1
from pathlib import Path
from random import Random

import atheris

_ROOT = Path(__file__).parents[1]
# Numba compiles the kernels, and cannot compile code that counts how often it runs.
_COMPILED = ["deeptobit.likelihood.kernels", "deeptobit.online.kernels"]
_OPTIONS = (
    "-max_len=65536",
    "-rss_limit_mb=4096",
    "-malloc_limit_mb=2048",
    "-timeout=60",
    "-report_slow_units=60",
    "-print_final_stats=1",
)

with atheris.instrument_imports(include=["deeptobit", "tomllib"], exclude=_COMPILED):
    from fuzz import checkpoints, models, studies, tables

_READERS = (models.TARGET, checkpoints.TARGET, studies.TARGET, *tables.TARGETS)
_TARGETS = {target.name: target for target in _READERS}


def main() -> None:
    """Run the command; libFuzzer ends the process, with an exit code above 0 if it found any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=_TARGETS)
    parser.add_argument("--seconds", type=int, default=600)
    chosen = parser.parse_args()
    target = _TARGETS[chosen.target]
    corpus = _ROOT / ".fuzz" / target.name
    found = _ROOT / "tests" / "fuzz" / "found" / target.name
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in target.seeds().items():
        (corpus / name).write_bytes(content)

    def mutate(content: bytes, longest: int, seed: int) -> bytes:
        def change(part: bytes) -> bytes:
            return bytes(atheris.Mutate(part, len(part) + 64))

        return target.mutate(bytes(content), Random(seed), change)[:longest]

    def try_input(content: bytes) -> None:
        try:
            target.accepts(content)
        except Exception:  # libFuzzer would keep it too, but an alarm of its own may come before
            digest = sha1(content, usedforsecurity=False).hexdigest()
            (found / f"crash-{digest}").write_bytes(content)
            raise

    options = (*_OPTIONS, f"-max_total_time={chosen.seconds}", f"-artifact_prefix={found}/")
    arguments = [sys.argv[0], *options, str(corpus), str(found)]
    atheris.Setup(arguments, try_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
