"""One result of the reproduction: tables, figures, and claims with verdicts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from deeptobit.app.study import write_whole
from paper.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd


Verdict = Literal["holds", "does not hold", "cannot be told"]
Claimant = Literal["the paper", "us"]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, or of ours, and the result of testing it over repeats.

    Parameters
    ----------
    text : str
        The claim, in one sentence.
    paper : str
        What the paper reports, with the number of its table or figure.
    ours : str
        What was measured here.
    verdict : {"holds", "does not hold", "cannot be told"}
    test : str
        The test that gave the verdict, and its result.
    by : {"the paper", "us"}
    row : str
        What was run: the algorithm as printed with published or with best constants, or ours. The
        same text is tested once for each. Empty where the claim is about other methods.
    """

    text: str
    paper: str
    ours: str
    verdict: Verdict
    test: str
    by: Claimant = "the paper"
    row: str = ""


@dataclass(frozen=True, eq=False)
class TableOf:
    """A table as people read it: one header row, and no index.

    Cells are numbers or words; the columns that hold the paper's values say so in their names.
    ``data`` has what the table was made from, one row per repeat, for machines. ``settings`` are
    those of this table, in a line.
    """

    caption: str
    frame: pd.DataFrame
    data: pd.DataFrame | None = None
    settings: str = ""


@dataclass(frozen=True, eq=False)
class FigureOf:
    """What is drawn as ``kind``: arrays, numbers and strings, and lists and dicts of them.

    ``settings`` are those of this figure, in a line.
    """

    caption: str
    kind: str
    data: Mapping[str, Any]
    settings: str = ""


Part = TypeVar("Part", TableOf, FigureOf)


def with_settings(settings: Mapping[str, Any], *parts: Part) -> tuple[Part, ...]:
    """Tables or figures that were made with these settings.

    Examples
    --------
    >>> with_settings(SMALL.symbols | {"data sets": 5}, FigureOf("", "lines", {}))[0].settings
    'N = 1000 · D = 40 · T = 20 · R = 3 · σ = 3 · data sets = 5'
    """
    texts = {
        name: f"{value:.3g}" if isinstance(value, float) else str(value)
        for name, value in settings.items()
    }
    line = " · ".join(f"{name} = {text}" for name, text in texts.items())
    return tuple(replace(part, settings=line) for part in parts)


def panel(
    title: str,
    label: str,
    rows: FloatArray,
    lines: Mapping[str, Sequence[FloatArray]],
    *,
    log_x: bool = True,
) -> dict[str, Any]:
    """A panel of a figure of lines over rows seen: medians over repeats with their range.

    Parameters
    ----------
    title, label : str
        ``label`` is that of the vertical axis.
    rows : array
        Numbers of rows; shorter lines have the last of them.
    lines : mapping of str to sequences of arrays
        One array per repeat, by the name in the legend.
    log_x : bool
    """
    return {
        "title": title,
        "xlabel": "rows seen",
        "ylabel": label,
        "log_x": log_x,
        "log_y": True,
        "lines": [
            {
                "label": name,
                "x": rows[-len(values[0]) :],
                "y": np.median(values, axis=0),
                "low": np.min(values, axis=0),
                "high": np.max(values, axis=0),
            }
            for name, values in lines.items()
        ],
    }


@dataclass(frozen=True, eq=False)
class Section:
    """A table or figure of the paper, computed again.

    Parameters
    ----------
    name, title, text : str
        ``text`` says what was done; an empty line separates paragraphs.
    tables, figures, claims : tuples
    seconds : float
        Of computation; :func:`paper.registry.reproduce` fills it in.
    settings : dict
        What the numbers depend on; :func:`paper.registry.reproduce` fills it in.
    """

    name: str
    title: str
    text: str
    tables: tuple[TableOf, ...] = ()
    figures: tuple[FigureOf, ...] = ()
    claims: tuple[Claim, ...] = ()
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)


# Finished sections in a folder: one JSON file each, named after the settings it depends on.


def section_path(store: Path, settings: Mapping[str, Any]) -> Path:
    """The file of a section with these settings, and of no other."""
    text = json.dumps(settings, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return store / "sections" / f"{settings['name']}-{digest}.json"


def write_section(path: Path, section: Section) -> None:
    """Store a section, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        **vars(section),
        "tables": [
            {
                "caption": table.caption,
                "frame": _frame_state(table.frame),
                "data": None if table.data is None else _frame_state(table.data),
                "settings": table.settings,
            }
            for table in section.tables
        ],
        "figures": [vars(figure) for figure in section.figures],
        "claims": [asdict(claim) for claim in section.claims],
    }
    write_whole(path, json.dumps(state, default=lambda array: array.tolist()))


def read_section(path: Path) -> Section:
    """A section as it was written; arrays of figures are lists."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(f"{path} is damaged; delete it to compute it again") from None
    for table in state["tables"]:
        table["frame"] = _frame(table["frame"])
        table["data"] = None if table["data"] is None else _frame(table["data"])
    for name, kind in (("tables", TableOf), ("figures", FigureOf), ("claims", Claim)):
        state[name] = tuple(kind(**part) for part in state[name])
    return Section(**state)


def _frame_state(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns in order, without the index."""
    return {
        "columns": [str(name) for name in frame.columns],
        "values": [frame.iloc[:, column].tolist() for column in range(frame.shape[1])],
    }


def _frame(state: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(zip(state["columns"], state["values"], strict=True)))


# How an experiment is run; no number depends on it but for seed, protocol and path.

Progress = Callable[[int, int, str], None]


def _silent(done: int, total: int, label: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Context:
    """Where and how to run.

    Parameters
    ----------
    n_jobs : int
        Fits to run in parallel; results do not depend on it.
    seed : int
        Seed of everything random.
    protocol : {"honest", "paper"}
        Settings of methods are chosen on training rows, or as in the paper by the best test value.
    path : Path, optional
        Folder of ADNI downloads; without it HELP or a simulated cohort takes its place.
    store : Path, optional
        Folder for finished parts, so that a stopped run can be continued.
    progress : callable
        Called with the number of fits done, their total, and a label of the last one.
    """

    n_jobs: int = 1
    seed: int = 0
    protocol: Literal["honest", "paper"] = "honest"
    path: Path | None = None
    store: Path | None = None
    progress: Progress = _silent

    def seeds(self, repeats: int) -> list[int]:
        """One seed for every repeat, different for every ``seed``.

        Examples
        --------
        >>> Context(seed=2).seeds(3)
        [2000, 2001, 2002]
        """
        return [1000 * self.seed + repeat for repeat in range(repeats)]

    def folder(self, name: str) -> Path | None:
        """Folder for the parts of an unfinished section; ``None`` without a store."""
        return None if self.store is None else self.store / "parts" / name


# Sizes of the experiments: those of the paper, and small ones.


@dataclass(frozen=True)
class Scale:
    """Sizes of the synthetic data, and how often everything is repeated.

    Parameters
    ----------
    name : {"small", "paper"}
    n_samples, n_features, n_tasks, rank : int
        N, D, T and R of the synthetic data.
    sigma : float
        Standard deviation of its noise.
    repeats : int
        Independent data sets, or random splits of one.
    train_shares : tuple of float
    layers : tuple of int
        Depths of the table by layer on synthetic data.
    real_layers : tuple of int
        The same on real data.
    real_ranks : tuple of int
    real_rank : int
        R on real data where it is not varied.
    calibration_layers : int
    """

    name: Literal["small", "paper"]
    n_samples: int
    n_features: int
    n_tasks: int
    rank: int
    sigma: float
    repeats: int
    train_shares: tuple[float, ...]
    layers: tuple[int, ...]
    real_layers: tuple[int, ...]
    real_ranks: tuple[int, ...]
    real_rank: int
    calibration_layers: int

    @property
    def sizes(self) -> dict[str, Any]:
        """Arguments of :func:`deeptobit.datasets.make_subspace`, without the seed.

        Examples
        --------
        >>> PAPER.sizes["n_samples"], PAPER.sizes["sigma"]
        (5000, 3.0)
        """
        names = ("n_samples", "n_features", "n_tasks", "rank", "sigma")
        return {name: getattr(self, name) for name in names}

    @property
    def symbols(self) -> dict[str, Any]:
        """The same sizes by the paper's letters."""
        return dict(zip(("N", "D", "T", "R", "σ"), self.sizes.values(), strict=True))


SMALL = Scale(
    "small",
    n_samples=1000,
    n_features=40,
    n_tasks=20,
    rank=3,
    sigma=3.0,
    repeats=5,
    train_shares=(0.4, 0.8),
    layers=(1, 2, 3),
    real_layers=(1, 2, 3),
    real_ranks=(1, 3, 5),
    real_rank=5,
    calibration_layers=3,
)

PAPER = Scale(
    "paper",
    n_samples=5000,
    n_features=200,
    n_tasks=100,
    rank=10,
    sigma=3.0,
    repeats=10,
    train_shares=(0.4, 0.5, 0.6, 0.7, 0.8),
    layers=(1, 2, 3, 10, 20),
    real_layers=(1, 2, 3, 5, 10),
    real_ranks=(1, 3, 5, 10),
    real_rank=5,
    calibration_layers=6,
)
