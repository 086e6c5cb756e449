"""Write what mends findings into a study file; comments and order stay as they are."""

from collections.abc import Iterable, Sequence
from typing import Any

from deeptobit.app.study.doctor.registry import Edit, Finding
from deeptobit.app.study.tables import StudyError, did_you_mean
from deeptobit.arrays import listed
from deeptobit.extras import require


def edit_study(text: str, findings: Iterable[Finding], *, explain: bool = False) -> str:
    r"""The text of a study file with the changes that findings propose.

    Parameters
    ----------
    text : str
    findings : iterable of Finding
    explain : bool
        Whether to write the name of the finding behind each change, as a comment.

    Examples
    --------
    >>> leak = Finding("error", "sum", "is a copy", "leak",
    ...                edits=(Edit(("features",), "exclude", ("sum",)),))
    >>> print(edit_study('[features]  # all\nexclude = [\n    "name",  # text\n]\n', [leak]))
    [features]  # all
    exclude = [
        "name",  # text
        "sum",
    ]
    <BLANKLINE>
    """
    tomlkit = require("tomlkit", "app")
    document = tomlkit.parse(text)
    for finding in findings:
        for edit in finding.edits:
            _apply(tomlkit, document, edit, f"{finding.name}" if explain else "")
    return str(tomlkit.dumps(document))


def _apply(tomlkit: Any, document: Any, edit: Edit, comment: str) -> None:
    place = document
    for depth, name in enumerate(edit.table):
        if name not in place:
            above = depth < len(edit.table) - 1
            place[name] = tomlkit.table(is_super_table=above)
        place = place[name]
    if edit.value is None:
        place.pop(edit.key, None)
    elif isinstance(edit.value, tuple):
        if edit.key not in place:
            place[edit.key] = tomlkit.array()
        values = place[edit.key]
        for value in edit.value:
            if value not in list(values):
                if "\n" in values.as_string():
                    values.add_line(value, comment=comment or None, indent="    ")
                else:
                    values.append(value)
        if comment and "\n" not in values.as_string():
            before = values.trivia.comment.lstrip("# ")
            values.comment("; ".join(filter(None, [before, comment])))
    else:
        value = tomlkit.item(edit.value)
        if comment:
            value.comment(comment)
        place[edit.key] = value


def choose(findings: Sequence[Finding], names: Sequence[str]) -> list[Finding]:
    """Findings by name, or with ``all`` every one that proposes a change and is no note."""
    by_name = {finding.name: finding for finding in findings}
    chosen: dict[str, Finding] = {}
    for name in names:
        if name == "all":
            chosen |= {
                key: finding
                for key, finding in by_name.items()
                if finding.edits and finding.level != "note"
            }
        elif name not in by_name:
            known = f"; there is {listed(sorted(by_name), 20)}" if by_name else ""
            raise StudyError(f"there is no finding {name!r}{did_you_mean(name, by_name) or known}")
        elif not by_name[name].edits:
            raise StudyError(f"{name}: no line of a study file mends it; correct the table")
        else:
            chosen[name] = by_name[name]
    return list(chosen.values())
