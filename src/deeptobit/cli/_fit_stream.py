"""``deeptobit fit`` on a table beyond memory: why it streams, and how fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from deeptobit.study import FittedStudy, Passes, Room, Study, make_network, stream_study


def fit_streamed(study: Study, room: Room, checkpoint: Path | None) -> FittedStudy:
    """Say what is done in place of the usual, and do it."""
    console = Console(stderr=True)
    console.print(escape(why_streamed(study, room)), soft_wrap=True, highlight=False)
    with _pass_bar(console) as progress:
        return stream_study(study, room.path, progress=progress, checkpoint=checkpoint)


def why_streamed(study: Study, room: Room) -> str:
    """What memory lacks, which model is fitted instead, and what its numbers are about."""
    network = make_network(study)
    depth = "1 layer" if network.n_layers == 1 else f"up to {network.n_layers} layers"
    group = study.data.group
    held_out = "10,000 rows (a tenth, if that is less)"
    if group is not None:
        held_out = f"a tenth of the groups of {group!r}"
    return (
        f"{room.shortage}, so its rows are streamed: a {type(network).__name__} of {depth} and "
        f"rank {network.rank} at most is fitted without cross-validation, and measured on "
        f"{held_out} that it does not see."
    )


@contextmanager
def _pass_bar(console: Console) -> Iterator[Passes]:
    columns = (TextColumn("{task.description}"), BarColumn(), _Rows(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("Pass 1", total=None)
        shown = 1

        def show(number: int, done: int, total: int) -> None:
            nonlocal shown
            if number != shown:
                bar.reset(task)
                shown = number
            bar.update(task, completed=done, total=total, description=f"Pass {number}")

        yield show


class _Rows(ProgressColumn):
    """Rows of the pass that are read, and how many in a second."""

    def render(self, task: Task) -> Text:
        """The text of the column."""
        speed = "" if task.speed is None else f", {task.speed:,.0f} rows/s"
        total = "" if task.total is None else f" of {task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{total} rows{speed}")
