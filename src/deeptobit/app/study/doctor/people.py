"""Who the rows are: people with several rows, sites, visits, and rows that were left out."""

import re
from collections.abc import Iterator

import numpy as np

from deeptobit.app.study import columns
from deeptobit.app.study.doctor.features import identifiers
from deeptobit.app.study.doctor.registry import SHOWN, Case, Edit, Finding, rule
from deeptobit.arrays import listed

_MOSTLY, _NEARLY_ALL = 0.5, 0.95
_TIME = re.compile(
    r"(visit|visite|time|zeit|wave|welle|month|monat|week|woche|year|jahr|day|tag|viscode|session)"
    r"s?(_?(no|nr|num|number|nummer|since|point|after|code|id|from|in_study|baseline|bl).*)?"
)


@rule(
    harm="Rows of a person are both in training and in held-out rows, which flatters the model.",
    fix="`[data] group`",
)
def find_people(case: Case) -> Iterator[Finding]:
    """A person or a site with several rows that is not named as group."""
    if case.study.data.group:
        return
    suspects = identifiers(case)
    for name in case.table.columns:
        text = case.table.text(name) if name in suspects or columns.names_person(name) else None
        if text is not None and columns.repeats(text):
            yield Finding(
                "warning",
                name,
                "looks like an identifier that repeats, so that rows of a person may be both in "
                "the training and in the held-out rows",
                evidence=f"{text.duplicated().sum()} rows are of a person with an earlier row",
                edits=(Edit(("data",), "group", name),),
            )


@rule(
    harm="An id names one row; a person with several rows is a group.",
    fix="`[data] group` in place of `id`, if rows are visits",
)
def find_id(case: Case) -> Iterator[Finding]:
    """An id that is the same in several rows."""
    name = case.study.data.id
    if name is None:
        return
    text = case.table.text(name)
    twice = (text.notna() & text.duplicated(keep=False)).to_numpy()
    if twice.any():
        edits: tuple[Edit, ...] = ()
        if columns.repeats(text) and not case.study.data.group:
            edits = (Edit(("data",), "id", None), Edit(("data",), "group", name))
        message = "is the id and not unique; if rows are visits of the same people, it is the group"
        yield Finding("error", name, message, evidence=case.table.at(twice), edits=edits)


@rule(
    harm="Sites differ, and people of a new site are predicted as if they were of a known one.",
    fix="`[data] group`: the model is measured on sites it has not seen; or leave it a feature",
)
def find_site(case: Case) -> Iterator[Finding]:
    """A column of sites, clinics or families among the features."""
    for name in case.features:
        text = case.table.text(name) if columns.names_place(name) else None
        if text is not None and text.nunique() > 1 and not case.study.data.group:
            edits = (Edit(("data",), "group", name),) if columns.repeats(text) else ()
            message = "holds sites: as a feature it says nothing of people from a new one"
            yield Finding("note", name, message, edits=edits)


@rule(
    harm="What is known of a person's earlier visits is not used for the later ones.",
    fix='`[model] kind = "mixed"`, where it is known',
)
def find_time(case: Case) -> Iterator[Finding]:
    """People with several rows and a column of visits or time."""
    table, group = case.table, case.study.data.group
    named = [name for name in table.columns if columns.names_person(name)]
    people = [name for name in named if name == group or columns.repeats(table.text(name))]
    for name in table.columns if people else ():
        if _TIME.fullmatch(columns.words_of(name)) and table.text(name).nunique() > 1:
            is_auto = case.study.model.kind == "auto"
            edits = (Edit(("model",), "kind", "mixed"),) if is_auto else ()
            message = f"is the visit or time of people with several rows ({people[0]!r})"
            yield Finding("note", name, message, edits=edits)


@rule(
    harm="Folds never split a group, so that too few or too large ones make them unequal.",
    fix="another column as `[data] group`",
)
def find_group(case: Case) -> Iterator[Finding]:
    """Groups that are too few for the folds, too large, or nearly all of one row."""
    study, groups, name = case.study, case.built.groups, case.study.data.group
    if groups is None or name is None:
        return
    labels, counts = np.unique(groups.astype(str), return_counts=True)
    folds = max(study.model.cv, study.evaluation.folds)
    if len(labels) < 2 * folds:
        message = f"{len(labels)} groups for {folds} folds, which never split one: too few"
        yield Finding("warning", name, message)
    if counts.max() > _MOSTLY * len(groups):
        # Its label may name a person, and findings are stored with the model.
        message = f"its largest group has {counts.max() / len(groups):.0%} of the rows"
        yield Finding("warning", name, message)
    single = int((counts == 1).sum())
    if _NEARLY_ALL * len(labels) <= single < len(labels):
        message = (
            "nearly all groups have one row; if one is an id that was written twice by mistake, "
            f"id = {name!r} in place of group says where"
        )
        twice = listed(labels[counts > 1].tolist(), SHOWN)
        yield Finding("warning", name, message, evidence=f"more than one row: {twice}")
    elif single > 0:
        yield Finding("note", name, f"{single} of {len(labels)} groups have one row")


@rule(
    harm="None, if it was guessed right.",
    fix="`[data] header` or `sheet`, if it was not",
)
def find_read(case: Case) -> Iterator[Finding]:
    """What was left out or guessed: title lines, rows of units and of means, the encoding."""
    for remark in case.table.remarks:
        edits = () if remark.setting is None else (Edit(("data",), *remark.setting),)
        yield Finding("note", remark.about, remark.message, edits=edits)
