"""Results in a folder: whole or not at all, and continued only with the same data and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeptobit import __version__
from deeptobit.experiments._evaluation_data import EvaluationData
from deeptobit.experiments._splits import Protocol
from deeptobit.extras import require
from deeptobit.study import write_whole

if TYPE_CHECKING:
    import pandas as pd

SETTINGS, RESULTS = "settings.json", "results.parquet"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


@dataclass(frozen=True)
class ResultStore:
    """A folder with ``settings.json`` and ``results.parquet``; see :func:`open_store`."""

    folder: Path

    def read(self) -> list[pd.DataFrame]:
        """What was done before: one table, or none."""
        import pandas as pd

        path = self.folder / RESULTS
        if not path.exists():
            return []
        try:
            return [pd.read_parquet(path)]
        except (ValueError, OSError):
            raise ValueError(f"{path} is damaged; delete it to start anew") from None

    def write(self, results: pd.DataFrame) -> None:
        """Replace the table."""
        buffer = BytesIO()
        results.to_parquet(buffer, index=False)
        write_whole(self.folder / RESULTS, buffer.getvalue())


def open_store(
    folder: Path, data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol
) -> ResultStore:
    """A new folder, or one that the same comparison has left.

    Raises
    ------
    ValueError
        If the folder holds results of other data or settings, or other files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.experiments import data_of_cohort, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(50, random_state=0), "simulated")
    >>> with TemporaryDirectory() as folder:
    ...     _ = open_store(Path(folder), data, make_methods(["null"]), Protocol())
    ...     open_store(Path(folder), data, make_methods(["null"]), Protocol(seed=1))
    Traceback (most recent call last):
        ...
    ValueError: ... holds results of other protocol seed (0 there, 1 here); name another folder
    """
    return open_results(folder, _settings(data, methods, protocol))


def open_results(folder: Path, settings: Mapping[str, Any]) -> ResultStore:
    """A new folder, or one that a run with the same settings has left.

    Parameters
    ----------
    folder : Path
    settings : mapping
        Whatever the results depend on, as JSON has it.

    Raises
    ------
    ValueError
        If the folder holds results with other settings, or other files.
    """
    require("pyarrow", "app")
    path = folder / SETTINGS
    if path.exists():
        _check_same(_read(path), settings, folder)
        return ResultStore(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} holds other things; name a new folder or an empty one")
    folder.mkdir(parents=True, exist_ok=True)
    about = {"versions": versions()}
    write_whole(path, json.dumps({**settings, **about}, indent=2, ensure_ascii=False) + "\n")
    return ResultStore(folder)


def versions() -> dict[str, str]:
    """The packages that results depend on, as they are installed."""
    deep = ("torch",) if find_spec("torch") else ()
    return {package: version(package) for package in (*_PACKAGES, *deep)}


def _settings(
    data: EvaluationData, methods: Mapping[str, Any], protocol: Protocol
) -> dict[str, Any]:
    """What must be the same for a run to be continued, as JSON has it."""
    settings = {
        "deeptobit": __version__,
        "data": {"name": data.name, "fingerprint": data.fingerprint()},
        "protocol": asdict(protocol),
        "methods": {name: " ".join(repr(model).split()) for name, model in methods.items()},
    }
    restored: dict[str, Any] = json.loads(json.dumps(settings))
    return restored


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged; name another folder")
    return found


def _check_same(found: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    for name, value in wanted.items():
        before = found.get(name)
        if before == value:
            continue
        what = name
        if isinstance(value, dict) and isinstance(before, dict):
            part = next(key for key in (value | before) if value.get(key) != before.get(key))
            what, before, value = f"{name} {part}", before.get(part), value.get(part)
        shown = "" if "fingerprint" in what else f" ({before} there, {value} here)"
        what = "data" if "fingerprint" in what else what
        raise ValueError(f"{folder} holds results of other {what}{shown}; name another folder")
