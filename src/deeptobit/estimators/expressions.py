"""What may stand in a formula: arithmetic and known functions of columns, and nothing else."""

import ast
import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
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
_NO_ARITHMETIC = (ast.LShift, ast.RShift, ast.MatMult)
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
    reader = _Reader(expression, columns, texts)
    if "`" in expression:
        raise reader.refusal("inside a function a quoted column is written Q('name')")
    try:
        return tuple(dict.fromkeys(reader.read(ast.parse(expression, mode="eval"))))
    except SyntaxError as error:
        raise reader.refusal(error.msg) from None
    except (RecursionError, MemoryError):
        raise reader.refusal("it is nested too deeply") from None


@dataclass(frozen=True)
class _Reader:
    """One walk over an expression: what may stand there is read, anything else refused.

    Parameters
    ----------
    expression : str
    columns, texts : containers of str
        All columns of the data, and those that hold texts.
    """

    expression: str
    columns: Container[str]
    texts: Container[str]

    def refusal(self, reason: str) -> ValueError:
        """The error that names the expression."""
        return ValueError(f"{shown(self.expression)} may not stand in a formula: {reason}")

    def read(self, node: ast.AST, *, in_sum: bool = False) -> Iterator[str]:
        """The columns in a node; within arithmetic (``in_sum``) they hold numbers."""
        parts: Sequence[ast.AST] = ()
        match node:
            case (
                ast.Name(id=name)
                | ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=str(name))])
            ) if name in self.columns and '"' not in name:
                if in_sum and name in self.texts:
                    raise self.refusal(f"{name!r} holds texts, and arithmetic takes numbers")
                yield name
            case ast.Name(id=name) if name in CONTRASTS | FUNCTIONS:
                raise self.refusal(f"{name} is a function; what does it act on?")
            case ast.Call(func=ast.Name(id="C"), args=[first, *contrasts]):
                parts = [first, *self.of_contrasts(contrasts, node.keywords)]
            case ast.Call(func=ast.Name(id=name)) if name in CONTRASTS:
                raise self.refusal(f"{name} says how C encodes categories: C(column, {name})")
            case ast.Call(func=ast.Name(id="Q")):
                raise self.refusal('Q takes the name of one column, in quotes, without " in it')
            case ast.Call() if ast.unparse(node.func) in _KNOWN:
                self.check_arguments(node, ast.unparse(node.func))
                parts = [*node.args, *node.keywords]
            case ast.BinOp():
                self.check_arithmetic(node)
                parts, in_sum = [node.left, node.right], True
            case ast.Constant(value=str(text)) if '"' in text:
                raise self.refusal('a text with " in it; rename the level or the column')
            case ast.Constant(value=str() | float() | None):
                pass
            case ast.Constant(value=number):
                if not isinstance(number, int) or abs(number) > sys.float_info.max:
                    raise self.refusal(f"{shown(str(number))} is neither a number nor a text")
            case _ if isinstance(node, _HARMLESS):
                parts = list(ast.iter_child_nodes(node))
                in_sum = in_sum and not isinstance(node, ast.Compare)
            case _:
                unknown = ast.unparse(node.func if isinstance(node, ast.Call) else node)
                raise self.refusal(f"{unknown!r} is neither a column nor a known function")
        for part in parts:
            yield from self.read(part, in_sum=in_sum)

    def of_contrasts(
        self, contrasts: list[ast.expr], keywords: list[ast.keyword]
    ) -> Iterator[ast.AST]:
        """What is to be read of ``Sum``, or of ``Treatment('A')``, and of other arguments."""
        yield from (each.value for each in keywords if each.arg != "contrasts")
        for asked in (*contrasts, *(each.value for each in keywords if each.arg == "contrasts")):
            name = ast.unparse(asked.func if isinstance(asked, ast.Call) else asked)
            if name not in CONTRASTS:
                raise self.refusal(f"{name} is none of {', '.join(sorted(CONTRASTS))}")
            yield from (*getattr(asked, "args", ()), *getattr(asked, "keywords", ()))

    def check_arithmetic(self, node: ast.BinOp) -> None:
        """Refuse arithmetic that takes for ever or fills the memory."""
        if isinstance(node.op, _NO_ARITHMETIC):
            raise self.refusal("it has an operator other than + - * / // % ** & | ^")
        for side in (node.left, node.right):
            if isinstance(side, ast.List | ast.Tuple) or isinstance(_literal(side), str):
                raise self.refusal(f"{ast.unparse(side)!r} is not a number")
        sides = ("base", node.left, sys.float_info.max), ("power", node.right, _LARGEST_POWER)
        for what, side, most in sides if isinstance(node.op, ast.Pow) else ():
            value = _literal(side)
            if isinstance(value, int | float) and abs(value) <= most:
                continue
            if value is not None or not any(self.read(side)):  # a power of powers
                text = ast.unparse(side)
                raise self.refusal(f"the {what} of {text!r} is not a number up to {most:g}")

    def check_arguments(self, call: ast.Call, function: str) -> None:
        """Refuse a place to write to or a choice of rows, and splines of thousands of columns."""
        most = _ARGUMENTS.get(function.removeprefix("np."), np.inf)
        named = {str(keyword.arg): keyword.value for keyword in call.keywords}
        hidden = {name for name in named if name.startswith("_")}
        if len(call.args) > most or hidden or (most < np.inf and named.keys() - _LIMITS_OF_CLIP):
            raise self.refusal(f"{function} has an argument that is not allowed in a formula")
        asked = [*call.args[1:2], *(named[name] for name in ("df", "degree") if name in named)]
        for each in asked if function in BASES else ():
            count = _literal(each)
            if not isinstance(count, int) or not 0 < count <= _MOST_COLUMNS:
                why = f"{ast.unparse(each)!r} is not a number of columns, 1 to {_MOST_COLUMNS}"
                raise self.refusal(why)


def _literal(node: ast.AST) -> Any:
    """The value of a number or text as it is written, with its sign; None for anything else."""
    match node:
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=value)):
            return value
        case ast.Constant(value=value):
            return value
    return None


def shown(text: str) -> str:
    """The text in quotes; of a long one, its beginning."""
    return repr(text) if len(text) <= 80 else f"{text[:60]!r} …"
