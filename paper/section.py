"""What one name of ``deeptobit reproduce`` gives: tables, figures, and claims with verdicts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deeptobit.files import read_state, write_state

if TYPE_CHECKING:
    import pandas as pd


Verdict = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or of ours, and what repeats say of it.

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
    """

    text: str
    paper: str
    ours: str
    verdict: Verdict
    test: str


@dataclass(frozen=True, eq=False)
class TableOf:
    """A table as people read it: one header row, and no index.

    Cells are numbers or words; the columns that hold the paper's values say so in their names.
    ``data`` has what the table was made from, one row per repeat, for machines.
    """

    caption: str
    frame: pd.DataFrame
    data: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class FigureOf:
    """Arrays, numbers, words, and lists and dicts of them, which the report draws as ``kind``."""

    caption: str
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Section:
    """One name of ``deeptobit reproduce``.

    Parameters
    ----------
    name, title, text : str
        ``text`` says what was done; an empty line separates paragraphs.
    tables, figures, claims : tuples
    seconds : float
        Of work, whenever that was; :func:`reproduce` fills it in.
    settings : dict
        What the numbers depend on; :func:`reproduce` fills it in.
    """

    name: str
    title: str
    text: str
    tables: tuple[TableOf, ...] = ()
    figures: tuple[FigureOf, ...] = ()
    claims: tuple[Claim, ...] = ()
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)


# Finished sections in a folder, one file each, named after what they depend on.

_KIND = "reproduced section"


def section_path(store: Path, settings: Mapping[str, Any]) -> Path:
    """The file of a section with these settings, and of no other."""
    text = json.dumps(settings, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return store / "sections" / f"{settings['name']}-{digest}.section"


def write_section(path: Path, section: Section) -> None:
    """Keep a section, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "name": section.name,
        "title": section.title,
        "text": section.text,
        "tables": [
            {
                "caption": table.caption,
                "frame": _frame_state(table.frame),
                "data": None if table.data is None else _frame_state(table.data),
            }
            for table in section.tables
        ],
        "figures": [
            {"caption": figure.caption, "kind": figure.kind, "data": dict(figure.data)}
            for figure in section.figures
        ],
        "claims": [asdict(claim) for claim in section.claims],
        "seconds": section.seconds,
        "settings": json.dumps(section.settings),
    }
    write_state(path, _KIND, state)


def read_section(path: Path) -> Section:
    """A section as it was written."""
    _, state = read_state(path, _KIND)
    return Section(
        name=state["name"],
        title=state["title"],
        text=state["text"],
        tables=tuple(_table(table) for table in state["tables"]),
        figures=tuple(FigureOf(**figure) for figure in state["figures"]),
        claims=tuple(Claim(**claim) for claim in state["claims"]),
        seconds=state["seconds"],
        settings=json.loads(state["settings"]),
    )


def _frame_state(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns by name; the index of a table says nothing."""
    return {
        "columns": [str(name) for name in frame.columns],
        "values": [frame.iloc[:, column].tolist() for column in range(frame.shape[1])],
    }


def _table(state: Mapping[str, Any]) -> TableOf:
    data = None if state["data"] is None else _frame(state["data"])
    return TableOf(state["caption"], _frame(state["frame"]), data)


def _frame(state: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(zip(state["columns"], state["values"], strict=True)))


# How an experiment is run, which is no part of what it measures.

Progress = Callable[[int, int, str], None]


def _silent(done: int, total: int, label: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Context:
    """Where and how to run.

    Parameters
    ----------
    n_jobs : int
        Fits side by side; results do not depend on it.
    seed : int
        Of everything random.
    protocol : {"honest", "paper"}
        Settings of methods are chosen on training rows, or as in the paper by the best test value.
    path : Path, optional
        Folder of ADNI downloads; without it HELP or a simulated cohort takes its place.
    store : Path, optional
        Folder that keeps what is finished, so that a stopped run continues.
    progress : callable
        Called with how much is done, how much there is, and a word on what was done last.
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
        """Where an unfinished section keeps its parts; ``None`` if nothing is kept."""
        return None if self.store is None else self.store / "parts" / name


# How large experiments are: the paper's sizes, and small ones with the same shape.


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
