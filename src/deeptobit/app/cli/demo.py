"""``deeptobit demo``: from a simulated cohort to honest numbers on unseen subjects."""

import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

from deeptobit.datasets import ClinicalCohort, make_clinical_cohort
from deeptobit.estimators import AutoTobitRegressor, TobitRegressor
from deeptobit.metrics import censored_log_score, centred_anmse
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd


COVERAGE = 0.9
TRAIN_SHARE = 0.6
_NO_FEATURES = 1e9  # a ridge under which every coefficient is zero: the intercept-only model


def run_demo(*, seed: int, as_json: bool) -> None:
    """Simulate, fit the automatic model, and print a table per score."""
    from rich.console import Console

    console = Console(stderr=as_json)
    started = perf_counter()
    with console.status("Simulating a cohort …"):
        cohort = make_clinical_cohort(random_state=seed)
    with console.status("Fitting by 5-fold cross-validation …"):
        table, model, n_train = evaluate_cohort(cohort, seed)
    seconds = perf_counter() - started
    if as_json:
        records = table.reset_index().to_dict(orient="records")
        chosen = {"rank": model.rank_, "n_layers": model.n_layers_}
        print(json.dumps(chosen | {"n_train": n_train, "scores": records}, indent=2))
        return
    n_test = len(cohort.X) - n_train
    console.print(
        f"\n[bold]{len(cohort.X)} simulated subjects, {cohort.X.shape[1]} regional brain features, "
        f"{cohort.Y.shape[1]} bounded scores[/bold] (seed {seed})\n"
        f"AutoTobitRegressor on {n_train} subjects: {_describe(model)}; "
        f"tested on the other {n_test}.\n"
    )
    console.print(_as_rich_table(table))
    console.print(
        f"\nMean R² {table['r2'].mean():.3f}. Log score {table['log_score'].mean():.3f}, without "
        f"features (null) {table['log_score_without_features'].mean():.3f}; lower is better.\n"
        f"{COVERAGE:.0%} intervals cover {table['coverage'].mean():.1%}. Took {seconds:.1f} s."
    )


def evaluate_cohort(
    cohort: ClinicalCohort, seed: int
) -> "tuple[pd.DataFrame, AutoTobitRegressor, int]":
    """Per-score measures on held-out subjects, the model, and the number trained on."""
    import pandas as pd
    from sklearn.model_selection import train_test_split

    X, X_test, Y, Y_test = train_test_split(
        cohort.X, cohort.Y, train_size=TRAIN_SHARE, random_state=seed
    )
    model = AutoTobitRegressor(
        lower=cohort.lower, upper=cohort.upper, n_jobs=2, random_state=seed
    ).fit(X, Y)
    constant = TobitRegressor(lower=cohort.lower, upper=cohort.upper, alpha=_NO_FEATURES).fit(X, Y)

    test = CensoredTargets.from_bounds(Y_test, cohort.lower, cohort.upper)
    shares = CensoredTargets.from_bounds(cohort.Y, cohort.lower, cohort.upper).describe()
    low, high = model.predict_interval(X_test, COVERAGE)
    inside = (test.values >= low) & (test.values <= high)
    table = pd.DataFrame(
        {
            "lower": shares["lower"],
            "upper": shares["upper"],
            "at_lower": shares["at_lower"],
            "at_upper": shares["at_upper"],
            "r2": 1.0 - centred_anmse(test, model.predict(X_test), multioutput="raw_values"),
            "log_score": _log_scores(model, X_test, test),
            "log_score_without_features": _log_scores(constant, X_test, test),
            "coverage": inside.sum(axis=0) / (~test.missing).sum(axis=0),
        },
        index=shares.index,
    )
    return table, model, len(X)


def _describe(model: AutoTobitRegressor) -> str:
    layers = "one layer" if model.n_layers_ == 1 else f"{model.n_layers_} layers"
    return f"{layers}, rank {model.rank_}"


def _log_scores(model: AutoTobitRegressor | TobitRegressor, X: Any, test: CensoredTargets) -> Any:
    latent = model.predict(X, kind="latent")
    return censored_log_score(
        test, latent, model.sigma_, noise=model.noise_, multioutput="raw_values"
    )


def _as_rich_table(table: "pd.DataFrame") -> Any:
    from rich.table import Table

    shown = Table(header_style="bold", box=None, pad_edge=False)
    shown.add_column("score", no_wrap=True)
    for heading in ("range", "at lower", "at upper", "R²", "log score", "(null)", "coverage"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in table.itertuples():
        shown.add_row(
            str(row.Index),
            f"{row.lower:g} – {row.upper:g}",
            f"{row.at_lower:.0%}",
            f"{row.at_upper:.0%}",
            f"{row.r2:.3f}",
            f"{row.log_score:.3f}",
            f"{row.log_score_without_features:.3f}",
            f"{row.coverage:.0%}",
        )
    return shown
