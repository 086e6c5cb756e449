"""No expression reaches the evaluation of formulas unless it is arithmetic on columns."""

from importlib import import_module

import numpy as np
import pytest

from deeptobit.estimators.expressions import CONTRASTS, FUNCTIONS, NUMPY_FUNCTIONS, columns_read

COLUMNS = ["age", "site", "education years"]


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("C(site)", ("site",)),
        ("C(site, Treatment('Bonn'))", ("site",)),
        ("C(site, Sum)", ("site",)),
        ("C(Q('education years'), levels=[1, 2])", ("education years",)),
        ("np.log1p(age) * (age > 65)", ("age",)),
        ("bs(age, df=4, degree=3)", ("age",)),
        ("-age ** 2 / Q('education years')", ("age", "education years")),
        ("2 ** age + 10 ** 3 + (age > 65) & (age < 80)", ("age",)),
    ],
)
def test_what_an_expression_reads(expression: str, columns: tuple[str, ...]) -> None:
    assert columns_read(expression, COLUMNS) == columns


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "eval('1')",
        "().__class__.__base__.__subclasses__()",
        "age.__class__",
        "age.to_pickle('x')",
        "np.load('x', allow_pickle=True)",
        "np.log.__class__",
        "np.lib.format.open_memmap('x')",
        "np",
        "log(open('x'))",
        "log(age, out=open('x'))",
        "C(site, contr.treatment)",
        "hashed(site, levels=3, hash_func=print)",
        "[print(a) for a in age]",
        "(lambda: age)()",
        "age if print(1) else age",
        "age and print(1)",
        "(x := age)",
        "age[0]",
        "log(*age)",
        "f'{print(1)}'",
        "{'a': age}",
        "Q(site)",
        "Q('nope')",
        "Q('age', 'site')",
        "__FORMULAIC_CONTEXT__",
        "C('`' + print(1) + '`')",
        "C(`site`)",
        "age +",
        "age; site",
        "9**9**9**9",
        "((9**99)**99)**99",
        "age ** 10**6",
        "[1] * 10**9",
        "'a' * 10**9",
        "1 << 10**9",
        "bs(age, df=10**9)",
        "poly(age, 1000000)",
        "C(site, levels=['\"'])",
        "log",
        "Sum(site)",
        "np.sqrt(age, site)",
        "exp(age, site)",
        "np.log(age, where=site)",
        "center(age, _state={})",
        "C(site, 3)",
        "C(site, age)",
        "C(site, contrasts=[1, 2])",
        "age * 1j",
        "age * ...",
        f"age * {10**400}",
    ],
)
def test_anything_else_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="may not stand in a formula"):
        columns_read(expression, COLUMNS)


def test_arithmetic_acts_on_numbers() -> None:
    for expression in ("site * 10 ** 9", "I(-site) + age", "Q('site') * 3"):
        with pytest.raises(ValueError, match="'site' holds texts, and arithmetic takes numbers"):
            columns_read(expression, COLUMNS, texts=["site"])
    assert columns_read("(site == 'Bonn') * age", COLUMNS, texts=["site"]) == ("site", "age")


def test_every_listed_function_exists() -> None:
    assert set(import_module("formulaic.transforms").TRANSFORMS) >= FUNCTIONS | CONTRASTS
    assert all(isinstance(getattr(np, name), (np.ufunc, type(np.clip))) for name in NUMPY_FUNCTIONS)


def test_quoted_columns_have_two_ways_to_be_written() -> None:
    with pytest.raises(ValueError, match=r"a quoted column is written Q\('name'\)"):
        columns_read("C(`site`)", COLUMNS)
    with pytest.raises(ValueError, match="Q takes the name of one column, in quotes"):
        columns_read("Q(site)", COLUMNS)
