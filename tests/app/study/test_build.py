from pathlib import Path

import numpy as np
import pytest

from deeptobit.app.study import StudyError, read_table
from tests.app.study.problems import TABLE, TARGET, build


def test_features_are_encoded_and_ids_kept(tmp_path: Path) -> None:
    data = build(tmp_path, data='id = "id"\ngroup = "site"')
    assert list(data.X.columns) == ["age", "age (missing)", "sex=m"]
    np.testing.assert_array_equal(data.X, [[70, 0, 0], [75, 0, 1], [75, 1, 0], [80, 0, 0]])
    assert list(data.X.index) == ["a", "b", "c", "d"]
    assert data.groups is not None
    assert data.groups.tolist() == ["1", "1", "2", "2"]
    assert (data.targets.lower.tolist(), data.targets.upper.tolist()) == ([0.0], [30.0])
    assert data.targets.at_upper.ravel().tolist() == [True, False, True, False]
    assert data.targets.missing.ravel().tolist() == [False, False, False, True]
    assert data.targets.entry_lower is None


def test_without_an_id_rows_are_numbered(tmp_path: Path) -> None:
    data = build(tmp_path, TARGET + '[features]\nexclude = ["i*", "site"]\n', data="")
    assert list(data.X.index) == ["1", "2", "3", "4"]


def test_codes_become_categories_and_the_group_a_feature_if_named(tmp_path: Path) -> None:
    features = '[features]\ninclude = ["a?e", "site"]\ncategorical = ["site"]\n'
    data = build(tmp_path, TARGET + features, data='group = "site"')
    assert list(data.X.columns) == ["site=2", "age", "age (missing)"]


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ('include = ["ages"]', "line 8: there is no column 'ages' in a.csv; did you mean 'age'"),
        ('exclude = ["z*"]', r"line 8: no column matches 'z\*'"),
        ('include = ["MMSE"]', "line 8: column 'MMSE' is a target; it cannot be a feature"),
        ('include = ["id"]', "line 8: column 'id' is the id"),
        ('exclude = ["*"]', "line 7: no column of the table is left as a feature"),
        ('missing = "error"', "a.csv, line 4: feature 'age' is missing .* in 1 row"),
    ],
)
def test_errors_of_features(features: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=sentence):
        build(tmp_path, f"{TARGET}[features]\n{features}\n")


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("id,age,MMSE\na,1,2\n", "study.toml, line 2: a.csv has one row of data"),
        (
            "id,age,MMSE\na,1,2\nb,2,3\na,3,4\n",
            "line 3: the id 'id' is not unique: 'a' is in a.csv, lines 2, 4",
        ),
        (
            "id,age,MMSE\na,1,2\n,2,3\n",
            r"line 3: the id 'id' is blank in 1 row\(s\) \(a.csv, line 3\)",
        ),
        ("id,age,MMSE\na,1,\nb,2,\n", "line 4: target 'MMSE' has no value at all; leave it out"),
        (
            "id,age,MMSE\na,1,high\nb,2,3\n",
            r"line 4: target 'MMSE' must hold numbers .* found 'high' \(a.csv, line 2",
        ),
        (
            "id,age,MMSE\na,1,-4\nb,2,3\n",
            r"line 5: target 'MMSE' has 1 value\(s\) beyond its lower .*\[data\] missing",
        ),
        (
            "id,age,MMSE\na,1,2\nb,2,31\n",
            "line 6: target 'MMSE' has .* upper bound .a.csv, line 3; the first is 31",
        ),
        (
            "id,age,mmse\na,1,2\nb,2,3\n",
            "line 4: there is no column 'MMSE' in a.csv; did you mean 'mmse'",
        ),
        (
            "id,age,MMSE\na,2020-01-01,2\nb,2020-01-02,3\n",
            r"feature 'age' holds dates; turn .* or exclude it \('2020-01-01'",
        ),
        (
            "id,age,MMSE\na,1,2\nb,2,3\nc,3,4\nd,4,4\ne,5,4\nf,6,4\ng,unknown,5\n",
            r"list the words in \[data\] missing, or exclude it \('unknown'",
        ),
        (
            "id,age,MMSE\na,some,2\nb,words,3\nc,here,4\n",
            r"feature 'age' holds free text, .*; exclude it, or list it in categorical \('some'",
        ),
        (
            "id,age,MMSE\na,12%,2\nb,11%,3\nc,14 %,4\n",
            r"feature 'age' holds numbers with %, commas or points; .*decimal_comma reads them "
            r"\('12%': a.csv",
        ),
        (
            'id,age,MMSE\na,"1,5",2\nb,2,3\nc,"2,25",4\n',
            "holds numbers with %, commas or points",
        ),
        (
            'id,age,MMSE\na,"1,500",2\nb,"2,100",3\nc,900,4\n',
            "holds numbers with %, commas or points",
        ),
        (
            "id;age;MMSE\na;1,5;2\nb;2;3\nc;1.5;4\n",
            "holds numbers with %, commas or points",
        ),
        ("id,age,MMSE\na,,2\nb,,3\n", "feature 'age' has no value at all; exclude it"),
        (
            "id,age,age=b,MMSE\n1,a,1,2\n2,a,2,3\n3,b,3,3\n4,b,3,4\n",
            "name of an encoded feature, 'age=b'",
        ),
    ],
)
def test_hostile_tables_get_a_sentence(table: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=sentence):
        build(tmp_path, table=table)


def test_new_data_are_encoded_the_same_way(tmp_path: Path) -> None:
    encoder = build(tmp_path, data='id = "id"\ngroup = "site"').encoder
    new = tmp_path / "new.csv"
    new.write_text("sex;age;other\nm;60,5;x\n;;y\n")
    X = encoder.encode(read_table(new))
    assert list(X.columns) == encoder.features
    np.testing.assert_array_equal(X, [[60.5, 0, 1], [75, 1, 0.25]])


def test_an_unknown_category_is_missing_and_said_so(tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("sex,age\nx,60\nm,70\n")
    encoder = build(tmp_path, data='id = "id"\ngroup = "site"').encoder
    with pytest.warns(UserWarning, match=r"'sex' has categories .* not know \('x'\); .* missing"):
        X = encoder.encode(read_table(new))
    assert X["sex=m"].tolist() == [0.25, 1.0]


def test_an_unknown_category_is_an_error_where_missing_is(tmp_path: Path) -> None:
    features = '[features]\nmissing = "error"\nexclude = ["age"]\n'
    encoder = build(tmp_path, TARGET + features).encoder
    new = tmp_path / "new.csv"
    new.write_text("sex,site\nx,1\nm,2\n")
    with pytest.raises(StudyError, match=r"new.csv, line 2: feature 'sex' .* unknown category"):
        encoder.encode(read_table(new))
    new.write_text("Sex,site\nx,1\n")
    with pytest.raises(StudyError, match=r"new\.csv lacks the feature 'sex'; did you mean 'Sex'"):
        encoder.encode(read_table(new))


def test_other_names_in_the_table(tmp_path: Path) -> None:
    study = '[targets.cognition]\ncolumn = "MMSE"\nlower = 0\nupper = 21\noutside = "clip"\n'
    data = build(tmp_path, study, TABLE)
    assert data.targets.names == ("cognition",)
    assert data.targets.at_upper.ravel().tolist() == [True, True, True, False]
