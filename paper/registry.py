"""The names of ``deeptobit reproduce``, in the order of the page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from deeptobit import __version__
from paper.figures import fig_brain, fig_network, fig_subspace, fig_weights
from paper.real import table_calibration, table_rank, table_real, table_real_layers
from paper.recovery import table_recovery
from paper.runtime import table_runtime
from paper.section import Context, Scale, Section, read_section, section_path, write_section
from paper.synthetic import table_layers, table_synthetic
from paper.theory import theory

NAMES: Mapping[str, Callable[[Scale, Context], Section]] = {
    "fig-network": fig_network,
    "fig-subspace": fig_subspace,
    "fig-weights": fig_weights,
    "theory": theory,
    "table-recovery": table_recovery,
    "table-synthetic": table_synthetic,
    "table-layers": table_layers,
    "table-runtime": table_runtime,
    "table-real": table_real,
    "table-real-layers": table_real_layers,
    "table-rank": table_rank,
    "table-calibration": table_calibration,
    "fig-brain": fig_brain,
}


def reproduce(name: str, scale: Scale, context: Context) -> Section:
    """Compute one section, or read it where it was finished before with the same settings."""
    before = finished(name, scale, context)
    if before is not None:
        return before
    started = perf_counter()
    section = _find(name)(scale, context)
    section = replace(
        section, seconds=perf_counter() - started, settings=_settings(name, scale, context)
    )
    if context.store is not None:
        write_section(section_path(context.store, section.settings), section)
    return section


def finished(name: str, scale: Scale, context: Context) -> Section | None:
    """The section as it was kept before with the same settings, if it was."""
    _find(name)
    settings = _settings(name, scale, context)
    if context.store is None:
        return None
    path = section_path(context.store, settings)
    return read_section(path) if path.exists() else None


def _find(name: str) -> Callable[[Scale, Context], Section]:
    if name not in NAMES:
        raise ValueError(f"there is nothing called {name!r} to reproduce; there is {list(NAMES)}")
    return NAMES[name]


def _settings(name: str, scale: Scale, context: Context) -> dict[str, Any]:
    """What the numbers depend on; how many fits run side by side is no part of it."""
    return {
        "name": name,
        "scale": asdict(scale),
        "seed": context.seed,
        "protocol": context.protocol,
        "path": None if context.path is None else _digest(context.path),
        "deeptobit": __version__,
    }


def _digest(path: Path) -> str:
    """Tells folders apart, and not where they are: paths have the names of people in them."""
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
