"""Small studies on disk."""

from pathlib import Path

from deeptobit.app.study import StudyData, build_data, read_data, read_study

TABLE = """\
id,site,age,sex,MMSE
a,1,70,f,30
b,1,75,m,21
c,2,,f,30
d,2,80,f,
"""
TARGET = "[targets.MMSE]\nlower = 0\nupper = 30\n"


def write_study(
    folder: Path, study: str = TARGET, table: str = TABLE, *, data: str = 'id = "id"'
) -> Path:
    """A table and its study file; ``[data]`` takes the first three lines."""
    (folder / "a.csv").write_text(table, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(f'[data]\nfile = "a.csv"\n{data}\n{study}', encoding="utf-8")
    return path


def build(
    folder: Path, study: str = TARGET, table: str = TABLE, *, data: str = 'id = "id"'
) -> StudyData:
    settings = read_study(write_study(folder, study, table, data=data))
    return build_data(settings, read_data(settings))
