"""A commented study file, written by looking at the data."""

from __future__ import annotations

from collections.abc import Sequence

from deeptobit.study._look import Look, Proposal, look_at
from deeptobit.study._table import Table
from deeptobit.study._toml import toml_cell, toml_key, toml_text

_MODEL = """\
[model]
# max_layers = 2          # deeper networks are tried up to this depth
# cv = 5                  # folds that choose the model; groups are never split
# scoring = "r2"          # or "log"
# noise = "auto"          # or "gaussian", "logistic", "student_t"
# seed = 0

[evaluation]
# method = "splits"       # repeated random splits, or "folds"; groups are never split
# train_shares = [0.4, 0.5, 0.6, 0.7, 0.8]
# repeats = 5             # of every split
# folds = 5
# coverage = 0.9          # of prediction intervals
# seed = 0

[report]
# small_counts = false    # true: cards and reports tell counts under five, too
"""
_NO_TARGET = """\
# No column looks like a bounded score. Name at least one, with the bounds of its scale:
# [targets.MMSE]
# lower = 0
# upper = 30
"""


def propose_study(table: Table, file: str, *, missing: Sequence[str] = ()) -> tuple[str, Look]:
    """Text of a study file for a table, and what it was written from.

    Parameters
    ----------
    file : str
        The table as the study file is to name it, relative to its own folder.
    missing : sequence of str
        Codes for missing that the table was read with.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"id": ["a", "b"], "age": ["70", "75"], "MMSE": ["30", "21"]})
    >>> text, look = propose_study(Table(cells, "a.csv", np.array([2, 3])), "a.csv")
    >>> print(text[text.index("[targets"):text.index("[model]")])
    [targets.MMSE]  # MMSE (Folstein 1975)
    lower = 0
    upper = 30
    """
    look = look_at(table)
    targets = "\n".join(_target(proposal) for proposal in look.targets)
    if not any(proposal.certain for proposal in look.targets):
        targets = _NO_TARGET + targets
    parts = (_head(table), _data(look, file, missing), _features(look), targets, _MODEL)
    return "\n".join(parts), look


def _head(table: Table) -> str:
    return (
        f"# Written by 'deeptobit init' from {len(table)} rows and {len(table.columns)} columns.\n"
        "# Correct what was guessed wrong, above all the targets; then run 'deeptobit check'.\n"
        "# What follows # is a comment: a reason, an example or a default.\n"
    )


def _data(look: Look, file: str, missing: Sequence[str]) -> str:
    lines = ["[data]", f"file = {toml_text(file)}  # beside this file, or in a folder below it"]
    if look.id is None:
        lines.append('# id = "column"  # a column that is different in every row')
    else:
        lines.append(f"id = {toml_text(look.id)}")
    if look.group is None:
        lines.append('# group = "column"  # rows of the same person, site or family stay together')
    else:
        lines.append(f"group = {toml_text(look.group)}  # rows of one group stay together")
    codes = (
        f"missing = [{', '.join(map(toml_cell, missing))}]" if missing else "# missing = [-4, 999]"
    )
    lines.append(f"{codes}  # codes for missing, beside blank cells, NA, NaN, null and .")
    return "\n".join(lines) + "\n"


def _features(look: Look) -> str:
    excluded = [f"    {toml_text(name)},  # {why}" for name, why in look.excluded.items()]
    exclude = ["exclude = [", *excluded, "]"] if excluded else ["exclude = []"]
    lines = [
        "[features]",
        'include = ["*"]  # names, * and ?; never the id, the group or a target',
        *exclude,
        f"categorical = {_names(look.categorical)}  # numbers that are codes; words are anyway",
        'missing = "impute"  # blanks become the mean, and a feature tells where; or "error"',
    ]
    return "\n".join(lines) + "\n"


def _target(proposal: Proposal) -> str:
    lines = [f"[targets.{toml_key(proposal.column)}]  # {proposal.why}"]
    lines += [f"{key} = {_value(bound)}" for key, bound in proposal.bounds.items()]
    if not proposal.certain:
        lines = ["# Perhaps a target, now a feature:", *(f"# {line}" for line in lines)]
    return "\n".join(lines) + "\n"


def _value(bound: float | str) -> str:
    return toml_text(bound) if isinstance(bound, str) else f"{bound:.17g}"


def _names(names: list[str]) -> str:
    return f"[{', '.join(toml_text(name) for name in names)}]"
