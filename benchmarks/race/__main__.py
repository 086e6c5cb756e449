"""Race deeptobit against its peers: ``python -m benchmarks.race --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

from benchmarks.race.data import DATA, read_study_data
from benchmarks.race.environment import Facts, describe
from benchmarks.race.methods import METHODS, choose, split_by_availability
from benchmarks.race.ours import NAME
from benchmarks.race.page import render, render_markdown, render_pictures
from benchmarks.race.run import list_heats, measure_again, name_of, run
from benchmarks.race.store import Store
from benchmarks.race.summary import Summary
from benchmarks.race.wanted import wanted
from deeptobit.app.study import EvaluationData, StudyError, write_whole

_SECONDS = 300.0


def main(words: Sequence[str]) -> int:
    """Race, write the page, and print every number; the exit code tells whether all are reached."""
    arguments = _parser().parse_args(words)
    try:
        data = _read_data(arguments.data, arguments.study)
        methods, absent = split_by_availability(choose(arguments.methods, METHODS))
        _refuse_unknown(arguments.again, list(methods))
    except (ValueError, OSError, StudyError) as error:
        print(error, file=sys.stderr)
        return 2
    tell = partial(print, flush=True)
    for name, reason in absent.items():
        tell(f"{name} does not take part: {reason}")
    store = Store(arguments.out)
    for method in arguments.again:
        store.forget([name_of(one) for one in data], method)
    heats = list_heats(data, methods, arguments.splits)
    if arguments.measure_again:
        measure_again(heats, store, tell=tell)
    if not arguments.page_only:
        run(heats, store, at_once=arguments.jobs, limit=arguments.limit, tell=tell)
    try:
        summary = Summary(store.read([heat.key for heat in heats]))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if not summary.data:
        print(f"{NAME} has no result: {'; '.join(summary.failures['message'])}", file=sys.stderr)
        return 1
    needs = [package for peer in methods.values() for package in peer.needs]
    facts = [*_settings(arguments), *describe(needs)]
    return _publish(summary, absent, facts, arguments.out)


def _publish(summary: Summary, absent: dict[str, str], facts: Facts, folder: Path) -> int:
    numbers = list(wanted(summary))
    buffer = BytesIO()
    summary.results.drop(columns="pit").to_parquet(buffer, index=False)
    write_whole(folder / "results.parquet", buffer.getvalue())
    write_whole(folder / "race.html", render(summary, numbers, absent, facts))
    write_whole(folder / "race.md", render_markdown(summary, numbers, absent, facts))
    for name, picture in render_pictures(summary).items():
        write_whole(folder / name, picture)
    for number in numbers:
        print(number)
    print(f"wrote race.html, race.md, its pictures and results.parquet to {folder}")
    return 0 if all(number.reached for number in numbers) else 1


def _read_data(names: Sequence[str], studies: Sequence[Path]) -> list[EvaluationData]:
    """Data by name, all if nothing is named, and studies."""
    _refuse_unknown(names, list(DATA))
    named = names or ([] if studies else list(DATA))
    return [*(DATA[name]() for name in named), *(read_study_data(path) for path in studies)]


def _refuse_unknown(names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown name(s) {unknown}; there are {list(known)}")


def _settings(arguments: argparse.Namespace) -> Facts:
    return [
        ("splits", str(arguments.splits)),
        ("limit of a fit", f"{arguments.limit:g} s"),
        ("fits side by side", str(arguments.jobs)),
    ]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race",
        description="Race deeptobit against its peers on the same splits of the same data.",
    )
    add = parser.add_argument
    add("--data", type=_names, default=[], metavar="A,B", help=f"of {', '.join(DATA)}; default all")
    add("--study", type=Path, action="append", default=[], help="a study file; may be repeated")
    methods = f"of {', '.join(METHODS)}; default all"
    add("--methods", type=_names, default=[], metavar="A,B", help=methods)
    add("--splits", type=int, default=10, help="random splits of every data set (10)")
    add("--jobs", type=int, default=2, help="fits side by side (2)")
    limit = f"seconds of processor time that a fit may take ({_SECONDS:g})"
    add("--limit", type=float, default=_SECONDS, metavar="SECONDS", help=limit)
    add("--out", type=Path, default=Path("race"), help="folder of the results (race)")
    again = "methods whose results are thrown away first"
    add("--again", type=_names, default=[], metavar="A,B", help=again)
    measured = "put the error models anew on predictions that were made before"
    add("--measure-again", action="store_true", help=measured)
    add("--page-only", action="store_true", help="fit nothing, write the page anew")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
