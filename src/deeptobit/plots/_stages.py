"""The stages of a course, as fitted models keep them in ``history_``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deeptobit.plots._convergence import Stage


class Course(NamedTuple):
    """What :func:`draw_convergence` draws, and the words for its axes."""

    stages: list[Stage]
    unit: str
    objective: str
    in_turn: bool


def read_course(history: Mapping[str, Any]) -> Course | None:
    """Read a ``history_``; None if it has no course.

    A course by rows leaves out the joint tuning, whose steps and objective are of another kind.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> steps = [SimpleNamespace(n_iter=1, objective=2.0), SimpleNamespace(n_iter=2, objective=1.5)]
    >>> read_course({"solver": "batch", "course": steps}).stages
    [Stage(name='layer 1', at=[1, 2], objective=[2.0, 1.5])]
    """
    online = history.get("solver") == "online"
    layers = history.get("layers", [history])
    stages = [
        Stage(
            _name(depth, history),
            [record.n_rows if online else record.n_iter for record in course],
            [record.objective for record in course],
        )
        for depth, course in enumerate((layer.get("course") for layer in layers), start=1)
        if course
    ]
    if not stages:
        return None
    if online:
        return Course(
            stages, "rows learned from", "mean nll per entry, before learning from it", False
        )
    tuning = history.get("tuning", {})
    if tuning.get("objective"):
        kept = "" if tuning["kept"] else " (not kept)"
        values = list(tuning["objective"])
        stages.append(Stage(f"joint tuning{kept}", list(range(len(values))), values))
    return Course(stages, "iteration", "objective, penalised mean nll per row", True)


def _name(depth: int, history: Mapping[str, Any]) -> str:
    """A layer, and whether it was undone because it did not pay."""
    tuned = history.get("tuning", {}).get("kept", False)
    undone = not tuned and depth > history.get("paying_depth", depth)
    return f"layer {depth} (did not pay)" if undone else f"layer {depth}"
