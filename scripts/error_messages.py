"""Every message of the code: what its ``raise`` and ``warnings.warn`` statements say.

The source is read as a syntax tree, and an ellipsis stands for what a statement fills in. A text
that a function puts together is followed into that function, and a text that a private function
is handed is followed to its callers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "deeptobit"
GAP = "…"

Texts = tuple[str, ...]  # what an expression can say: one text, or one for each case
Scope = Mapping[str, Callable[[], Texts]]  # what the parameters of a function say, when asked


@dataclass(frozen=True)
class Message:
    """What one statement says to the user.

    Attributes
    ----------
    text : str
        What it says, with an ellipsis for what varies.
    kind : str
        Class of the exception or warning.
    room : str
        Package or module directly below ``deeptobit`` in which it stands.
    method : str
        Public method around it; empty if there is none.
    path : Path
        File in which it stands.
    line : int
        Line on which the statement begins.
    """

    text: str
    kind: str
    room: str
    method: str
    path: Path
    line: int


def read_messages(package: Path = PACKAGE) -> list[Message]:
    """All messages of a package, by file and line.

    A statement that only passes on the text of another error is none.
    """
    house = _House(package)
    messages = [
        Message(text, kind, house.room(path), _public_method(around), path, statement.lineno)
        for path in house.modules
        for statement, around in _statements(house.modules[path].tree)
        for kind, text in house.modules[path].spoken(statement, around)
    ]
    return [message for message in messages if re.search(r"[a-z]", message.text)]


def _statements(
    node: ast.AST, around: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[ast.Raise | ast.Call, tuple[ast.AST, ...]]]:
    """Every ``raise`` and every call of ``warnings.warn``, with the definitions around it."""
    if isinstance(node, ast.Raise) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
    ):
        yield node, around
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        around = (*around, node)
    for child in ast.iter_child_nodes(node):
        yield from _statements(child, around)


def _public_method(around: tuple[ast.AST, ...]) -> str:
    match around:
        case (ast.ClassDef(), ast.FunctionDef(name=name)) if not name.startswith("_"):
            return name
    return ""


class _House:
    """All modules of a package; a function is found by its name."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.modules = {path: _Module(self, path) for path in sorted(package.rglob("*.py"))}

    def room(self, path: Path) -> str:
        """``deeptobit.metrics`` for every file below it."""
        first = path.relative_to(self.package).parts[0].removesuffix(".py")
        return self.package.name if first == "__init__" else f"{self.package.name}.{first}"

    def home(self, name: str, asked_by: _Module, n_arguments: int | None = None) -> _Module | None:
        """The module that defines a name, or a function of so many arguments.

        It is the one that asks, or else the only one that does.
        """
        if asked_by.defines(name, n_arguments):
            return asked_by
        homes = [module for module in self.modules.values() if module.defines(name, n_arguments)]
        return homes[0] if len(homes) == 1 else None


class _Module:
    """One file: its functions and constants, and what its expressions say."""

    def __init__(self, house: _House, path: Path) -> None:
        self.house = house
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        bodies = [self.tree.body, *(owner.body for owner in classes)]
        self.functions = {
            node.name: node for body in bodies for node in body if isinstance(node, ast.FunctionDef)
        }
        self.calls: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self.calls.setdefault(_last_name(node.func), []).append(node)
        self.constants = {
            node.targets[0].id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }

    def defines(self, name: str, n_arguments: int | None) -> bool:
        """Whether a function of so many arguments has this name, or a constant where none are."""
        if n_arguments is None:
            return name in self.constants
        return name in self.functions and len(_parameters(self.functions[name])) == n_arguments

    def spoken(
        self, statement: ast.Raise | ast.Call, around: tuple[ast.AST, ...]
    ) -> Iterator[tuple[str, str]]:
        """Class and text of what a statement says; of a text and its continuation, the latter."""
        said = [
            (kind, re.sub(rf"{GAP}+", GAP, " ".join(text.split())))
            for scope in self._scopes(around)
            for kind, text in (
                self._warning(statement, scope)
                if isinstance(statement, ast.Call)
                else self._exception(statement.exc, scope)
            )
        ]
        for kind, text in dict.fromkeys(said):
            if not any(other.startswith(text) for _, other in said if other != text):
                yield kind, text

    def _warning(self, call: ast.Call, scope: Scope) -> Iterator[tuple[str, str]]:
        given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "category")]
        kind = _last_name(given[0]) if given else "UserWarning"
        for text in self._texts(call.args[0], scope):
            yield kind, text

    def _exception(self, raised: ast.expr | None, scope: Scope) -> Iterator[tuple[str, str]]:
        call = raised
        if isinstance(raised, ast.Attribute):  # a property
            call = ast.Call(raised, [], [])
        if not isinstance(call, ast.Call):
            return
        name = _last_name(call.func)
        if name[:1].isupper():
            for text in self._texts(call.args[0], scope) if call.args else ():
                yield name, text
            return
        home = self.house.home(name, self, _n_arguments(call))
        if home is None:
            raise LookupError(
                f"{name}() makes an exception, and is not defined once in the package"
            )
        inner = self._bound(home.functions[name], call, scope)
        for result in _results(home.functions[name]):
            yield from home._exception(result, inner)

    def _scopes(self, around: tuple[ast.AST, ...]) -> list[Scope]:
        """What callers hand to the private function around a statement: sentences, not words."""
        match around:
            case (*_, ast.FunctionDef(name=name) as function) if name.startswith("_"):
                given = [_arguments(function, call) for call in self.calls.get(name, [])]
                return [
                    {word: partial(self._texts, said, {}) for word, said in words.items()}
                    for words in map(_only_sentences, given)
                ] or [{}]
        return [{}]

    def _bound(self, function: ast.FunctionDef, call: ast.Call, scope: Scope) -> Scope:
        given = _arguments(function, call)
        return {name: partial(self._texts, value, scope) for name, value in given.items()}

    def _texts(self, expression: ast.expr, scope: Scope) -> Texts:
        """Everything that an expression can say."""
        match expression:
            case ast.Constant(value=str(text)):
                return (text,)
            case ast.JoinedStr(values=parts):
                return self._joined(parts, scope)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], scope)
            case ast.FormattedValue(value=ast.Name() | ast.Subscript() as value):
                return self._texts(value, scope)
            case ast.Name(id=name) if name in scope:
                return scope[name]()
            case ast.Name(id=name):
                return self._either(self._constant(name), scope)
            case ast.IfExp(body=one, orelse=other):
                return self._either([one, other], scope)
            case ast.BoolOp(values=cases):
                return self._either(cases, scope)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._either(self._constant(name), scope)
            case ast.Call():
                return self._called(expression, scope)
        return (GAP,)

    def _called(self, call: ast.Call, scope: Scope) -> Texts:
        """What a call says: of a method of text, of a table of texts, or of a function of ours."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr="get"):
                return self._either([*self._constant(name), *call.args[1:]], scope)
            case ast.Attribute(value=text, attr="format"):
                (filled,) = self._joined(call.args, scope)
                return tuple(known.replace("{}", filled) for known in self._texts(text, scope))
            case ast.Attribute(value=text, attr="rstrip"):
                return self._texts(text, scope)
        name = _last_name(call.func)
        home = self.house.home(name, self, _n_arguments(call))
        if home is None:
            return (GAP,)
        function = home.functions[name]
        return home._either(_results(function), self._bound(function, call, scope))

    def _constant(self, name: str) -> list[ast.expr]:
        """The text of a constant, or the texts of a table."""
        home = self.house.home(name, self)
        match home.constants.get(name) if home else None:
            case ast.Dict(values=values):
                return values
            case ast.Constant(value=str()) | ast.JoinedStr() as text:
                return [text]
        return []

    def _joined(self, parts: list[ast.expr], scope: Scope) -> Texts:
        cases = product(*(self._texts(part, scope) for part in parts))
        return tuple("".join(case) for case in cases)

    def _either(self, cases: list[ast.expr], scope: Scope) -> Texts:
        return tuple(text for case in cases for text in self._texts(case, scope)) or (GAP,)


def _last_name(function: ast.expr) -> str:
    """``ValueError`` of itself, ``BadParameter`` of ``typer.BadParameter``."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _n_arguments(call: ast.Call) -> int:
    return len(call.args) + len(call.keywords)


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    named = {word.arg: word.value for word in call.keywords if word.arg is not None}
    return dict(zip(_parameters(function), call.args, strict=False)) | named


def _only_sentences(arguments: dict[str, ast.expr]) -> dict[str, ast.expr]:
    return {
        name: value
        for name, value in arguments.items()
        if isinstance(value, ast.Constant | ast.JoinedStr) and " " in ast.unparse(value)
    }


def _results(function: ast.FunctionDef) -> list[ast.expr]:
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return [node.value for node in returns if node.value is not None]
