"""``deeptobit plan``: how many people a study needs."""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import BadParameter, Option

from deeptobit.app.cli import common, reports, studies


def plan(
    power: Annotated[float | None, Option(help="Wanted power of the test, such as 0.8.")] = None,
    width: Annotated[
        float | None, Option(help="Or the wanted width of the interval of the effect, in points.")
    ] = None,
    model: Annotated[
        Path | None, Option(help="A model file to take scores, effect, noise and bounds from.")
    ] = None,
    target: Annotated[str | None, Option(help="With --model: the outcome.")] = None,
    feature: Annotated[str | None, Option(help="With --model: the feature of interest.")] = None,
    effect: Annotated[
        float | None, Option(help="Points per standard deviation of the feature, before censoring.")
    ] = None,
    mean: Annotated[float, Option(help="Mean of the score before censoring.")] = 0.0,
    sd: Annotated[float | None, Option(help="Noise: its standard deviation, in points.")] = None,
    others: Annotated[float, Option(help="Points that other features explain, as an sd.")] = 0.0,
    correlation: Annotated[float, Option(help="Of the feature with the others.")] = 0.0,
    lower: Annotated[float, Option(help="Floor of the scale.")] = float("-inf"),
    upper: Annotated[float, Option(help="Ceiling of the scale.")] = float("inf"),
    confidence: Annotated[float, Option(help="Of the interval; 1 - the level of the test.")] = 0.95,
    repeats: Annotated[int, Option(min=100, help="Simulated studies per number of people.")] = 200,
    seed: Annotated[int, Option(help="Of the simulation.")] = 0,
    as_json: common.AsJson = False,
) -> None:
    """How many people give the wanted power, or an interval of the wanted width.

    Outcomes are simulated with their floor and ceiling, and a Tobit model is fitted to each set.

    Exit codes: 0 found; 1 the settings are wrong or no number is enough; 2 wrong usage.
    """
    if (power is None) == (width is None):
        raise BadParameter("ask for --power or for --width")
    if model is not None:
        if target is None or feature is None:
            raise BadParameter("--model needs --target and --feature")
        found = studies.plan_of_study(studies.load_fitted(model), target, feature)
    elif effect is None or sd is None:
        raise BadParameter("state --effect and --sd, or name a --model with --target and --feature")
    else:
        found = studies.Plan(effect, mean, sd, others, correlation, lower, upper)
    with Console(stderr=True).status("Simulating …"):
        tried = found.search(
            power=power, width=width, confidence=confidence, n_repeats=repeats, seed=seed
        )
    answer = tried.iloc[-1]
    if as_json:
        records = tried.to_dict("records")
        about = {name: getattr(found, name) for name in ("effect", "mean", "sigma", "others")}
        common.print_json({"people": int(answer["people"]), **about, "tried": records})
        return
    console, rows = Console(), []
    for _, row in tried.iterrows():
        shares = [reports.percent(row[name]) for name in ("power", "at_lower", "at_upper")]
        rows.append([f"{row['people']:,.0f}", f"{row['width']:.3g}", *shares])
    console.print(common.plain_table(("people", "width", "power", "at floor", "at ceiling"), rows))
    wanted = f"a power of {power:.0%}" if width is None else f"an interval {width:g} wide"
    console.print(
        f"{answer['people']:,.0f} people give {wanted}, for an effect of {found.effect:.3g} points "
        f"per standard deviation and noise of {found.sigma:.3g}.",
        soft_wrap=True,
    )
