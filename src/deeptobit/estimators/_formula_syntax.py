"""What may stand in a formula: arithmetic and known functions of columns, and nothing else.

formulaic evaluates expressions as Python, builtins included. A formula may come from a
configuration file or a web form, so every expression is read as a syntax tree first.
"""

import ast
from collections.abc import Container, Iterator

FUNCTIONS = frozenset(
    {
        *("C", "I", "Q", "Treatment", "Sum", "Helmert", "Diff", "Poly"),
        *("log", "log2", "log10", "exp", "exp2"),
        *("center", "scale", "standardize", "poly", "bs", "cr", "cc", "cs"),
    }
)
NUMPY_FUNCTIONS = frozenset(
    {
        *("abs", "sign", "square", "sqrt", "cbrt", "maximum", "minimum", "clip"),
        *("log", "log1p", "log2", "log10", "exp", "expm1", "sin", "cos", "arctan", "tanh"),
    }
)
_HARMLESS = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Load, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop),
)


def columns_read(expression: str, columns: Container[str]) -> tuple[str, ...]:
    """The columns that an expression reads; one that is more than known functions is refused.

    Examples
    --------
    >>> columns_read("np.log(age ** 2) + Q('education years')", ["age", "education years"])
    ('age', 'education years')
    >>> columns_read("__import__('os').getcwd()", ["age"])
    Traceback (most recent call last):
        ...
    ValueError: "__import__('os').getcwd()" may not stand in a formula: \
"__import__('os').getcwd" is neither a column nor a known function
    """
    if "`" in expression:
        raise _refusal(expression, "inside a function a quoted column is written Q('name')")
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise _refusal(expression, error.msg) from None
    return tuple(dict.fromkeys(_read(tree, expression, columns)))


def _read(node: ast.AST, expression: str, columns: Container[str]) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id in columns:
        yield node.id
    elif isinstance(node, ast.Call) and _is_known(node.func):
        if ast.unparse(node.func) == "Q":
            yield _quoted(node, expression, columns)
        for child in (*node.args, *node.keywords):
            yield from _read(child, expression, columns)
    elif isinstance(node, _HARMLESS):
        for part in ast.iter_child_nodes(node):
            yield from _read(part, expression, columns)
    elif not _is_known(node):  # such as Sum in C(site, Sum)
        unknown = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        raise _refusal(expression, f"{unknown!r} is neither a column nor a known function")


def _is_known(function: ast.AST) -> bool:
    if isinstance(function, ast.Attribute):
        of_numpy = isinstance(function.value, ast.Name) and function.value.id == "np"
        return of_numpy and function.attr in NUMPY_FUNCTIONS
    return isinstance(function, ast.Name) and function.id in FUNCTIONS


def _quoted(call: ast.Call, expression: str, columns: Container[str]) -> str:
    match call.args:
        case [ast.Constant(value=str(name))] if name in columns:
            return name
    raise _refusal(expression, "Q takes the name of one column, in quotes")


def _refusal(expression: str, reason: str) -> ValueError:
    return ValueError(f"{expression!r} may not stand in a formula: {reason}")
