"""``deeptobit evaluate``: compare methods on held-out rows."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Console
from rich.markup import escape
from typer import Argument, BadParameter, Option

import deeptobit
from deeptobit.app.cli import common, reports, studies

if TYPE_CHECKING:
    Problem = tuple[studies.EvaluationData, studies.Protocol, Any]


def evaluate(
    study: Annotated[
        Path | None, Argument(help="A study file, or with --model a table of another site.")
    ] = None,
    model: Annotated[
        Path | None, Option(help="A model file: is it right for the rows of another table?")
    ] = None,
    recalibrate: Annotated[
        Path | None,
        Option(help="With --model: write it with level, slope and noise of that table."),
    ] = None,
    force: common.Force = False,
    data: common.OtherData = None,
    dataset: Annotated[
        Literal["help", "adni"] | None, Option(help="A real cohort in place of a study.")
    ] = None,
    path: Annotated[Path | None, Option(help="Folder of your ADNI downloads.")] = None,
    out: Annotated[
        Path | None, Option(help="Folder for results; a stopped run continues there.")
    ] = None,
    methods: Annotated[
        str | None,
        Option(help="Some of null,ridge,lasso,mt-lasso,forest,tobit,network; default: all."),
    ] = None,
    repeats: Annotated[int | None, Option(min=1, help="Random splits per training share.")] = None,
    train_shares: Annotated[str | None, Option(help="Training shares, like 0.4,0.6,0.8.")] = None,
    jobs: Annotated[int, Option(min=1, help="Fits in parallel.")] = 1,
    as_json: common.AsJson = False,
) -> None:
    """Compare the model with other methods on rows that none of them has seen.

    With --model MODEL TABLE: calibration, errors in points and drift of the features of a model
    that was fitted before, on the table of another site.

    Exit codes: 0 done; 1 the data or settings are wrong; 2 wrong usage; 130 stopped by Ctrl-C.
    """
    if model is not None and study is not None:
        _validate(model, study, recalibrate, force, as_json)
        return
    if model is not None or recalibrate is not None:
        raise BadParameter("--model needs the table to evaluate, and --recalibrate needs --model")
    if (study is None) == (dataset is None):
        raise BadParameter("name a study file, or a cohort with --dataset, not both")
    if study is None and data is not None:
        raise BadParameter("--data goes with a study file")
    shares = None if train_shares is None else tuple(common.numbers(train_shares, "0.4,0.6,0.8"))
    console = Console(stderr=as_json)

    def progress(done: int, total: int, label: str) -> None:
        if done and not label:
            more = "; continuing" if done < total else ""
            console.print(f"{done} of {total} fits were done before{more}.")
        show(done, total, label)

    with studies.formats.as_study_error():
        with console.status("Reading the data …"), common.record_warnings() as messages:
            read = _of_dataset(dataset, path) if study is None else _of_study(study, data)
            problem, protocol, network = read
        common.print_warnings(console, messages)
        if repeats is not None:
            protocol = replace(protocol, method="splits", repeats=repeats)
        if shares is not None:
            protocol = replace(protocol, method="splits", train_shares=shares)
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        chosen = studies.make_methods(names, network=network, seed=protocol.seed)
        store = None if out is None else studies.open_store(out, problem, chosen, protocol)
        try:
            with common.progress_bar("") as show:
                found = studies.evaluate(
                    problem, chosen, protocol, n_jobs=jobs, store=store, progress=progress
                )
        except KeyboardInterrupt:
            saved = "nothing was saved: --out DIR saves what is done"
            if out is not None:
                saved = f"what is done is saved in {out}; the same command continues"
            raise KeyboardInterrupt(f"stopped; {saved}") from None
    if out is not None:
        studies.write_whole(out / "summary.html", reports.render_comparison(found, problem.name))
    if as_json:
        about = {
            "data": problem.name,
            "protocol": asdict(found.protocol),
            "summary": studies.summarise(found).to_dict(orient="records"),
            "skipped": [skipped._asdict() for skipped in found.skipped],
            "notes": studies.comparison.notes(found),
        }
        common.print_json(about)
    else:
        _show(problem, found)
        if out is not None:
            common.print_written(out, ": results.parquet, summary.html.")


def _validate(model: Path, file: Path, out: Path | None, force: bool, as_json: bool) -> None:
    """A model on the table of another site; written to ``out`` with its level, slope and noise."""
    console = Console(stderr=as_json)
    with common.record_warnings() as messages:
        if out is not None:
            common.check_output(out, force, model, file, option="--recalibrate")
        fitted = studies.load_fitted(model)
        table = studies.read_data(fitted.study, file)
        found = studies.validate(fitted, table)
        if out is not None:
            studies.save_fitted(studies.recalibrated(fitted, table), out)
    common.print_warnings(console, messages)
    if as_json:
        tables = {"targets": found.measures, "features": found.drift}
        shown = {name: each.reset_index().to_dict("records") for name, each in tables.items()}
        written = None if out is None else str(out)
        about = {"rows": found.n_rows, "notes": found.notes(), "recalibrated": written}
        common.print_json(about | shown)
        return
    head = "target", "n", "bias", "error", "slope", "σ ratio", "R²", "own R²", "coverage"
    names = ["entries", "bias", "mae", "slope", "sigma_ratio", "r2", "own_r2", "coverage"]
    rows = [
        [escape(str(target)), *map(reports.words.number, row)]
        for target, row in found.measures[names].iterrows()
    ]
    title = f"{found.n_rows} rows of {escape(file.name)}; bias and mean absolute error in points"
    console.print(common.plain_table(head, rows, title))
    for note in found.notes():
        console.print(escape(note), highlight=False)
    if out is not None:
        common.print_written(out, ": the model with level, slope and noise of this table.")


def _of_study(path: Path, table: Path | None) -> Problem:
    study = studies.read_study(path)
    built = studies.build_data(study, studies.read_data(study, table))
    protocol = studies.Protocol(**asdict(study.evaluation), inner_folds=study.model.cv)
    return studies.data_of_study(built, path.stem), protocol, studies.make_model(study)


def _of_dataset(dataset: str | None, path: Path | None) -> Problem:
    if dataset == "help":
        cohort, name = deeptobit.datasets.load_help(), "HELP"
    elif path is not None:
        cohort, name = deeptobit.datasets.load_adni(path), "ADNI"
    else:
        raise studies.StudyError("--dataset adni needs --path, the folder of your ADNI downloads")
    return studies.data_of_cohort(cohort, name), studies.Protocol(), None


_STYLES = {"": "{}", "best": "[bold green]{}[/]", "tie": "{} ≈"}


def _show(data: studies.EvaluationData, found: studies.evaluation.Evaluation) -> None:
    console, comparison = Console(), studies.comparison
    console.print(f"[bold]{escape(data.name)}: {common.size_of(data)}[/bold]\n")
    for table in (comparison.table_by_share(found, "anmse"), comparison.table_of_measures(found)):
        rows = [[_STYLES[of.mark].format(escape(of.text)) for of in row] for row in table.rows]
        console.print(common.plain_table(table.headings, rows, table.title))
        console.print()
    for line in comparison.notes(found):
        console.print(escape(line), highlight=False)
