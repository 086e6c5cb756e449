"""What ``deeptobit init`` shows at its end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from deeptobit.study import Look, Proposal, Table

_SHOWN = 12  # targets or columns in one line; a table may have thousands


def show_look(console: Console, table: Table, look: Look, codes: Sequence[str], path: Path) -> None:
    """What was guessed, line by line, and what to do next."""
    targets = [_target(target) for target in look.targets if target.certain]
    console.print(
        f"Wrote [bold]{escape(str(path))}[/bold] from {len(table)} rows and "
        f"{len(table.columns)} columns of {escape(table.file)}:\n",
        soft_wrap=True,
    )
    lines = {
        "targets": _listed(targets) or "none found",
        "id": look.id or "none; rows are numbered",
        "group": f"{look.group}; its rows stay together" if look.group else "none",
        "missing": _listed(codes) and f"{_listed(codes)}, beside blank cells",
        "left out": _listed([f"{name} ({_short(why)})" for name, why in look.excluded.items()]),
    }
    grid = Grid.grid(padding=(0, 2))
    for heading, said in lines.items():
        if said:
            grid.add_row(f"  {heading}", escape(said))
    console.print(grid)
    first = "Read it, correct the targets" if targets else "Name at least one target in it"
    command = f"deeptobit check {shlex.quote(str(path))}"
    console.print(f"\n{first}, then: {escape(command)}", soft_wrap=True)


def _target(target: Proposal) -> str:
    lower, upper = (_end(target.bounds.get(side)) for side in ("lower", "upper"))
    return f"{target.column} ({lower} – {upper})"


def _end(bound: float | str | None) -> str:
    if bound is None:
        return "open"
    return bound if isinstance(bound, str) else f"{bound:g}"


def _short(why: str) -> str:
    return why.split(";")[0]


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return ", ".join(said[:_SHOWN]) + more
