"""What may stand in a formula: arithmetic and known functions of columns, and nothing else."""

import ast
import sys
from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np

CONTRASTS = frozenset({"Treatment", "Sum", "Helmert", "Diff", "Poly"})
BASES = frozenset({"poly", "bs", "cr", "cc", "cs"})  # their second argument is a number of columns
FUNCTIONS = BASES | {
    *("C", "I", "Q", "log", "log2", "log10", "exp", "exp2", "center", "scale", "standardize")
}
_OF_ONE = ("abs", "sign", "square", "sqrt", "cbrt", "sin", "cos", "arctan", "tanh")
_LOGARITHMS = ("log", "log1p", "log2", "log10", "exp", "expm1")
NUMPY_FUNCTIONS = frozenset({*_OF_ONE, *_LOGARITHMS, "maximum", "minimum", "clip"})
# One argument more would be where the result is written.
_ARGUMENTS = dict.fromkeys([*_OF_ONE, *_LOGARITHMS, "exp2"], 1)
_ARGUMENTS |= {"maximum": 2, "minimum": 2, "clip": 3}
_LIMITS_OF_CLIP = {"a_min", "a_max", "min", "max"}
_KNOWN = FUNCTIONS | {f"np.{name}" for name in NUMPY_FUNCTIONS}
_HARMLESS = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Load, ast.keyword),
    *(ast.UnaryOp, ast.Compare, ast.unaryop, ast.cmpop),
)
_ARITHMETIC = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.BitAnd, ast.BitOr, ast.BitXor),
)
_LARGEST_POWER = 100
_MOST_COLUMNS = 100  # of one spline or polynomial


def columns_read(
    expression: str, columns: Container[str], texts: Container[str] = ()
) -> tuple[str, ...]:
    """The columns that an expression reads; one that is more than known functions is refused.

    Arithmetic acts on numbers: columns of texts may be compared and encoded, not multiplied.

    Examples
    --------
    >>> columns_read("np.log(age ** 2) + Q('education years')", ["age", "education years"])
    ('age', 'education years')
    >>> columns_read("__import__('os').getcwd()", ["age"])
    Traceback (most recent call last):
        ...
    ValueError: "__import__('os').getcwd()" may not stand in a formula: \
"__import__('os').getcwd" is neither a column nor a known function
    >>> columns_read("I(age ** 9 ** 9)", ["age"])
    Traceback (most recent call last):
        ...
    ValueError: 'I(age ** 9 ** 9)' may not stand in a formula: the power of '9 ** 9' is not a \
number up to 100
    """
    if "`" in expression:
        raise _refusal(expression, "inside a function a quoted column is written Q('name')")
    try:
        tree = ast.parse(expression, mode="eval")
        read = tuple(dict.fromkeys(_read(tree, expression, columns)))
        _check_texts(tree, expression, [name for name in read if name in texts])
        return read
    except SyntaxError as error:
        raise _refusal(expression, error.msg) from None
    except (RecursionError, MemoryError):
        raise _refusal(expression, "it is nested too deeply") from None


def _read(node: ast.AST, expression: str, columns: Container[str]) -> Iterator[str]:
    parts: Sequence[ast.AST] = ()
    match node:
        case ast.Name(id=name) if name in columns:
            yield name
        case ast.Name(id=name) if name in CONTRASTS | FUNCTIONS:
            raise _refusal(expression, f"{name} is a function; what does it act on?")
        case ast.Call(func=ast.Name(id="C"), args=[first, *others]):
            _check_contrast(node, expression)
            others += [keyword.value for keyword in node.keywords]
            parts = [first, *(part for each in others for part in _within_contrast(each))]
        case ast.Call(func=ast.Name(id=name)) if name in CONTRASTS:
            raise _refusal(expression, f"{name} says how C encodes categories: C(column, {name})")
        case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))]) if (
            name in columns and '"' not in name
        ):
            yield name
        case ast.Call(func=ast.Name(id="Q")):
            why = 'Q takes the name of one column, in quotes, without " in it'
            raise _refusal(expression, why)
        case ast.Call() if ast.unparse(node.func) in _KNOWN:
            _check_arguments(node, expression)
            _check_columns_made(node, expression)
            parts = [*node.args, *node.keywords]
        case ast.BinOp():
            _check_arithmetic(node, expression, columns)
            parts = [node.left, node.right]
        case ast.Constant(value=str(text)) if '"' in text:
            raise _refusal(expression, 'a text with " in it; rename the level or the column')
        case ast.Constant(value=value) if not _harmless(value):
            raise _refusal(expression, f"{shown(str(value))} is neither a number nor a text")
        case _ if isinstance(node, _HARMLESS):
            parts = list(ast.iter_child_nodes(node))
        case _:
            unknown = ast.unparse(node.func if isinstance(node, ast.Call) else node)
            raise _refusal(expression, f"{unknown!r} is neither a column nor a known function")
    for part in parts:
        yield from _read(part, expression, columns)


def _harmless(value: object) -> bool:
    """Whether a constant is a text, or a number that fits into a float."""
    return isinstance(value, str | float | None) or (
        isinstance(value, int) and abs(value) <= sys.float_info.max
    )


def _within_contrast(node: ast.AST) -> list[ast.AST]:
    """What is to be read of ``Sum``, or of ``Treatment('A')``, beside its name."""
    match node:
        case ast.Name(id=name) if name in CONTRASTS:
            return []
        case ast.Call(func=ast.Name(id=name)) if name in CONTRASTS:
            return [*node.args, *node.keywords]
    return [node]


def _check_contrast(call: ast.Call, expression: str) -> None:
    """Refuse a number or a column where ``C`` takes the name of a contrast."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "contrasts"]
    for asked in (*call.args[1:2], *named):
        text = ast.unparse(asked.func if isinstance(asked, ast.Call) else asked)
        if text not in CONTRASTS:
            raise _refusal(expression, f"{text} is none of {', '.join(sorted(CONTRASTS))}")


def _check_arithmetic(node: ast.BinOp, expression: str, columns: Container[str]) -> None:
    """Refuse arithmetic that takes for ever or fills the memory."""
    if not isinstance(node.op, _ARITHMETIC):
        raise _refusal(expression, "it has an operator other than + - * / // % ** & | ^")
    for side in (node.left, node.right):
        if isinstance(side, ast.List | ast.Tuple) or isinstance(_literal(side), str):
            raise _refusal(expression, f"{ast.unparse(side)!r} is no number")
    if isinstance(node.op, ast.Pow):
        power = _literal(node.right)
        if power is None and not any(_read(node.right, expression, columns)):
            power = np.inf  # a power of powers
        if isinstance(power, int | float) and not abs(power) <= _LARGEST_POWER:
            text = ast.unparse(node.right)
            why = f"the power of {text!r} is not a number up to {_LARGEST_POWER}"
            raise _refusal(expression, why)
        if _literal(node.left) is None and not any(_read(node.left, expression, columns)):
            raise _refusal(expression, f"write {ast.unparse(node)!r} as a number")


def _check_texts(tree: ast.AST, expression: str, texts: Sequence[str]) -> None:
    """Refuse arithmetic with a text, which is repeated where a number is multiplied."""
    waiting = [(tree, False)] if texts else []
    while waiting:
        node, summed = waiting.pop()
        name = node.value if isinstance(node, ast.Constant) else getattr(node, "id", None)
        if summed and name in texts:
            raise _refusal(expression, f"{name!r} holds texts, and arithmetic takes numbers")
        summed = not isinstance(node, ast.Compare) and (summed or isinstance(node, ast.BinOp))
        waiting += [(part, summed) for part in ast.iter_child_nodes(node)]


def _check_arguments(call: ast.Call, expression: str) -> None:
    """Refuse a place to write to, or a choice of rows, among the arguments of a function."""
    function = ast.unparse(call.func)
    most = _ARGUMENTS.get(function.removeprefix("np."), np.inf)
    named = {str(keyword.arg) for keyword in call.keywords}
    hidden = {name for name in named if name.startswith("_")}
    if len(call.args) > most or hidden or (most < np.inf and named - _LIMITS_OF_CLIP):
        raise _refusal(expression, f"{function} has an argument that it may not have here")


def _check_columns_made(call: ast.Call, expression: str) -> None:
    """Refuse splines and polynomials of thousands of columns."""
    if ast.unparse(call.func) not in BASES:
        return
    named = [keyword.value for keyword in call.keywords if keyword.arg in ("df", "degree")]
    for asked in (*call.args[1:2], *named):
        count = _literal(asked)
        if not isinstance(count, int) or not 0 < count <= _MOST_COLUMNS:
            text = ast.unparse(asked)
            raise _refusal(expression, f"{text!r} is not a number of columns, 1 to {_MOST_COLUMNS}")


def _literal(node: ast.AST) -> Any:
    """The value of a number or text as it is written, with its sign; None for anything else."""
    match node:
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=value)):
            return value
        case ast.Constant(value=value):
            return value
    return None


def _refusal(expression: str, reason: str) -> ValueError:
    return ValueError(f"{shown(expression)} may not stand in a formula: {reason}")


def shown(text: str) -> str:
    """The text in quotes; of a long one, its beginning."""
    return repr(text) if len(text) <= 80 else f"{text[:60]!r} …"
