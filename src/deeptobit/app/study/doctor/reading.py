"""What was decided when the file was read."""

from collections.abc import Iterator

from deeptobit.app.study.doctor.registry import Case, Edit, Finding, rule


@rule(
    "read",
    harm="None, if it was guessed right.",
    fix="`[data] header` or `sheet`, if it was not",
    cells=True,
)
def find_remarks(case: Case) -> Iterator[Finding]:
    """What was left out or guessed: title lines, rows of units and of means, the encoding."""
    for remark in case.table.remarks:
        edits = () if remark.setting is None else (Edit(("data",), *remark.setting),)
        yield Finding("note", remark.about, remark.message, "read", edits=edits)
