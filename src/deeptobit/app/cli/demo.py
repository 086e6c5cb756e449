"""``deeptobit demo``: fit a simulated cohort, and measure the model on held-out subjects."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console

import deeptobit as dt
from deeptobit.app.cli import common
from deeptobit.app.cli.common import reports, studies

_COVERAGE = 0.9
_NO_FEATURES = 1e9  # a ridge under which every coefficient is zero: the intercept-only model


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the simulated cohort.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the cohort and its report.")] = Path(
        "deeptobit-demo"
    ),
    as_json: common.AsJson = False,
) -> None:
    """Simulate a clinical cohort, fit 30 bounded scores at once, show how it does.

    The cohort, its study file, its model and a report are left in a folder; not with --json.
    """
    console = Console(stderr=as_json)
    started = perf_counter()
    with console.status("Simulating a cohort …"):
        cohort = dt.datasets.make_clinical_cohort(random_state=seed)
    with console.status("Fitting by 5-fold cross-validation …"):
        table, model, n_train = _evaluate(cohort, seed)
    seconds = perf_counter() - started
    if as_json:
        records = table.reset_index().to_dict(orient="records")
        chosen = {"rank": model.rank_, "n_layers": model.n_layers_}
        common.print_json({**chosen, "n_train": n_train, "scores": records})
        return
    layers = "one layer" if model.n_layers_ == 1 else f"{model.n_layers_} layers"
    console.print(
        f"\n[bold]{len(cohort.X)} simulated subjects, {cohort.X.shape[1]} regional brain features, "
        f"{cohort.Y.shape[1]} bounded scores[/bold] (seed {seed})\n"
        f"AutoTobitRegressor on {n_train} subjects: {layers}, rank {model.rank_}; "
        f"tested on the other {len(cohort.X) - n_train}.\n"
    )
    columns = {
        "at lower": ("at_lower", "{:.0%}".format),
        "at upper": ("at_upper", "{:.0%}".format),
        "R²": ("r2", "{:.3f}".format),
        "log score": ("log_score", "{:.3f}".format),
        "(null)": ("log_score_without_features", "{:.3f}".format),
        "coverage": ("coverage", "{:.0%}".format),
    }
    console.print(common.target_table(table, columns, first="score"))
    console.print(
        f"\nMean R² {table['r2'].mean():.3f}. Log score {table['log_score'].mean():.3f}, without "
        f"features (null) {table['log_score_without_features'].mean():.3f}; lower is better.\n"
        f"{_COVERAGE:.0%} intervals cover {table['coverage'].mean():.1%}. Took {seconds:.1f} s."
    )
    with common.one_sentence(as_json), console.status("Writing a report …"):
        study, model_file = _write_study(cohort, out)
    common.print_written(console, model_file.with_suffix(".html"), ", the report. Next:")
    for name in ("check", "fit"):
        console.print(f"  {common.command_line(name, study)}{' --force' * (name == 'fit')}")
    console.print(f"  {common.command_line('open', model_file)}")


_MOST_SCORES = 4  # of the study that is left behind, so that it takes seconds


def _write_study(cohort: dt.datasets.ClinicalCohort, folder: Path) -> tuple[Path, Path]:
    """The cohort as a table, a study of some scores, its model and its report; two paths."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    scores, lower, upper = cohort.Y.iloc[:, :_MOST_SCORES], cohort.lower, cohort.upper
    ids = pd.Series([f"S{row + 1:04d}" for row in range(len(cohort.X))], name="subject")
    table = pd.concat([ids, cohort.X.reset_index(drop=True), scores.reset_index(drop=True)], axis=1)
    studies.write_table(table, folder / "cohort.csv")
    key = studies.config.toml_key
    targets = [
        f"[targets.{key(name)}]\nlower = {lower[name]:g}\nupper = {upper[name]:g}\n"
        for name in map(str, scores.columns)
    ]
    text = (
        '[data]\nfile = "cohort.csv"\nid = "subject"\n\n{}\n[model]\nkind = "tobit"\nalpha = 0.1\n'
    )
    study, model = folder / "cohort.toml", folder / "cohort.deeptobit"
    studies.write_whole(study, text.format("\n".join(targets)))
    settings = studies.read_study(study)
    fitted = studies.fit_study(settings, studies.build_data(settings, studies.read_data(settings)))
    studies.save_fitted(fitted, model)
    studies.write_whole(model.with_suffix(".html"), reports.render_report(fitted))
    return study, model


def _evaluate(
    cohort: dt.datasets.ClinicalCohort, seed: int
) -> tuple[Any, dt.AutoTobitRegressor, int]:
    """Measures by score on held-out subjects, the model, and the number of training subjects."""
    from sklearn.model_selection import train_test_split

    X, X_test, Y, Y_test = train_test_split(cohort.X, cohort.Y, train_size=0.6, random_state=seed)
    bounds: dict[str, Any] = {"lower": cohort.lower, "upper": cohort.upper}
    model = dt.AutoTobitRegressor(**bounds, n_jobs=2, random_state=seed).fit(X, Y)
    constant = dt.TobitRegressor(**bounds, alpha=_NO_FEATURES).fit(X, Y)

    test = dt.CensoredTargets.from_bounds(Y_test, **bounds)
    low, high = model.predict_interval(X_test, _COVERAGE)
    inside = (test.values >= low) & (test.values <= high)
    described = dt.CensoredTargets.from_bounds(cohort.Y, **bounds).describe()
    table = described[["lower", "upper", "at_lower", "at_upper"]].assign(
        r2=1.0 - dt.metrics.centred_anmse(test, model.predict(X_test), multioutput="raw_values"),
        log_score=_log_scores(model, X_test, test),
        log_score_without_features=_log_scores(constant, X_test, test),
        coverage=inside.sum(axis=0) / (~test.missing).sum(axis=0),
    )
    return table, model, len(X)


def _log_scores(model: Any, X: Any, test: dt.CensoredTargets) -> Any:
    latent = model.predict(X, kind="latent")
    return dt.metrics.censored_log_score(
        test, latent, model.sigma_, noise=model.noise_, multioutput="raw_values"
    )
