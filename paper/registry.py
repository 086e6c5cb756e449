"""What can be reproduced, by name, in the order of the page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from paper.brain import fig_brain, fig_network
from paper.onepass import fig_subspace, fig_weights
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
    section = NAMES[name](scale, context)
    section = replace(
        section, seconds=perf_counter() - started, settings=_settings(name, scale, context)
    )
    if context.store is not None:
        write_section(section_path(context.store, section.settings), section)
    return section


def finished(name: str, scale: Scale, context: Context) -> Section | None:
    """The stored section of a run with the same settings, or None."""
    if context.store is None:
        return None
    path = section_path(context.store, _settings(name, scale, context))
    return read_section(path) if path.exists() else None


def _settings(name: str, scale: Scale, context: Context) -> dict[str, Any]:
    """What the numbers depend on; the number of parallel fits is not part of it."""
    return {
        "name": name,
        "scale": asdict(scale),
        "seed": context.seed,
        "protocol": context.protocol,
        "path": None if context.path is None else _digest(context.path),
        "deeptobit": version("deeptobit"),
    }


def _digest(path: Path) -> str:
    """A digest instead of the path, which may contain names of people."""
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
