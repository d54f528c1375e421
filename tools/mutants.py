"""The mutants of a rule module: each rule broken in one place, on its syntax tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SWAPPED = {
    "nabla": "delta",
    "removed": "added",
    "bag_nabla": "bag_delta",
    "stored_nabla": "stored_delta",
    "Semi": "Anti",
    "Left": "Right",
    "deserted": "engaged",
    "padded": "padded_left",
    "NEW": "OLD",
    "plus": "minus",
    "inner": "outer",
    "Plus": "Monus",
    "Min": "Max",
    "disjoint": "contained",
}
SWAPPED |= {b: a for a, b in SWAPPED.items()}
WHOLE = ("nabla", "delta", "removed", "added", "bag_nabla", "bag_delta")  # swapped all at once too
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# calls whose arguments at these places are exchanged
PAIRS = dict.fromkeys(
    "Semi Anti Join Left Right Full Product Plus Monus Min Max Pair".split(), (0, 1)
)
PAIRS |= {"times": (1, 2), "_again": (1, 2), "deserted": (0, 1), "engaged": (0, 1), "_sum": (0, 1)}
PAIRS |= {"flip": (1, 2), "Statement": (1, 2), "_loyal": (0, 1)}
STATES = ("sub", "add", "mod")  # c.sub(s) becomes s


@dataclass(frozen=True)
class Mutant:
    """A module with one place changed: where, how, and the whole new source."""

    module: str
    function: str
    case: str
    change: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.module} | {self.function} | {self.case} | {self.change}"


def mutants(module: str, source: str) -> list[Mutant]:
    """All mutants of a module."""
    found: list[Mutant] = []
    names: Counter[str] = Counter()
    tree = ast.parse(source)
    for function in _functions(tree):
        for case, body in _places(function):
            for change, undo in _changes(function, case, body):
                text = ast.unparse(_imported(tree))
                undo()
                key = f"{function.name} {case} {change}"
                names[key] += 1
                numbered = change if names[key] == 1 else f"{change} #{names[key]}"
                found.append(Mutant(module, function.name, case, numbered, text))
    unchanged = ast.unparse(_imported(tree))
    return [m for m in found if m.source != unchanged]


def _imported(tree: ast.Module) -> ast.Module:
    """The module with the names that dropped rules need."""
    extra = ast.parse(
        "from viewkeeper.algebra.nodes import Anti, Empty as _Empty, Left, Max, Min, Monus, Plus\n"
        "from viewkeeper.algebra.nodes import NEW, OLD, Right, Semi\n"
        "from viewkeeper.algebra.changes.propagation import Pair as _Pair, padded, padded_left\n"
    ).body
    at = 2 if isinstance(tree.body[0], ast.Expr) else 1  # after the docstring and __future__
    return ast.Module(body=[*tree.body[:at], *extra, *tree.body[at:]], type_ignores=[])


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from (n for n in node.body if isinstance(n, ast.FunctionDef))


def _places(function: ast.FunctionDef) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The cases of a function's match, and the rest of its statements."""
    rest: list[ast.stmt] = []
    for statement in function.body:
        if isinstance(statement, ast.Match):
            for case in statement.cases:
                if not _refuses(case.body):
                    guard = f" if {ast.unparse(case.guard)}" if case.guard else ""
                    yield ast.unparse(case.pattern) + guard, case.body
        elif not isinstance(statement, ast.Expr):
            rest.append(statement)
    yield "-", rest


def _refuses(body: list[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Raise) or "assert_never" in ast.unparse(last)


Undo = Callable[[], None]


def _changes(
    function: ast.FunctionDef, case: str, body: list[ast.stmt]
) -> Iterator[tuple[str, Undo]]:
    yield from _dropped(function, case, body)
    yield from _whole_swap(body)
    for node in _nodes(body):
        yield from _returned(function, node)
        yield from _operators(node)
        yield from _named(node)
        yield from _exchanged(node)


def _nothing(function: ast.FunctionDef) -> ast.expr | None:
    """The result of a function that does nothing: ∅ of the right shape, or None."""
    returns = ast.unparse(function.returns) if function.returns else ""
    first = function.args.args[0].arg if function.args.args else ""
    if "None" in returns and "Query" in returns:
        return ast.Constant(None)
    query = first if first in ("q", "s", "change", "constraint") else ""
    if first == "self" and len(function.args.args) > 1:
        query = "query" if function.name == "pre" else ""
    if not query:
        return None
    text = {"Query": f"_Empty({query}.scope)"}
    text["Pair"] = f"_Pair({text['Query']}, {text['Query']})"
    return ast.parse(text[returns], mode="eval").body if returns in text else None


def _dropped(
    function: ast.FunctionDef, case: str, body: list[ast.stmt]
) -> Iterator[tuple[str, Undo]]:
    nothing = _nothing(function)
    if nothing is None or not body:
        return
    target = body if case != "-" else function.body
    if case == "-" and any(isinstance(s, ast.Match) for s in target):
        return
    last = target[-1]
    same = ("Empty(q.scope)", "Pair(Empty(q.scope), Empty(q.scope))", "None")
    if isinstance(last, ast.Return) and last.value and ast.unparse(last.value) in same:
        return
    kept = list(target)
    target[:] = [ast.Return(nothing)]
    yield "dropped", lambda: target.__setitem__(slice(None), kept)


def _returned(function: ast.FunctionDef, node: ast.AST) -> Iterator[tuple[str, Undo]]:
    """Each result of a law becomes None."""
    if not isinstance(node, ast.Return) or node.value is None:
        return
    nothing = _nothing(function)
    if not (isinstance(nothing, ast.Constant) and nothing.value is None):
        return
    value = node.value
    choices = [value]
    if isinstance(value, ast.IfExp):
        choices = [v for v in (value.body, value.orelse) if ast.unparse(v) != "None"]
    for choice in choices:
        if ast.unparse(choice) == "None":
            continue
        text = ast.unparse(choice)
        yield f"no {text}", _replace(node, choice, ast.Constant(None))


def _whole_swap(body: list[ast.stmt]) -> Iterator[tuple[str, Undo]]:
    """∇ and Δ exchanged all over the place."""
    found = [n for n in _nodes(body) if _name(n) in WHOLE]
    names = {_name(n) for n in found}
    if not any(SWAPPED[n] in names for n in names):
        return
    for n in found:
        _rename(n, SWAPPED[_name(n)])

    def undo() -> None:
        for n in found:
            _rename(n, SWAPPED[_name(n)])

    yield "∇ ↔ Δ", undo


def _operators(node: ast.AST) -> Iterator[tuple[str, Undo]]:
    """Each operand dropped; - becomes +, & becomes |, and back."""
    for field, child in list(_children(node)):
        if not isinstance(child, ast.BinOp) or type(child.op) not in OPERATORS:
            continue
        text = ast.unparse(child)
        for side in ("left", "right"):
            other = child.left if side == "right" else child.right
            yield f"without the {side} of {text}", _put(node, field, child, other)
        op = child.op
        child.op = OPERATORS[type(op)]()
        yield f"other operator in {text}", lambda child=child, op=op: setattr(child, "op", op)


def _named(node: ast.AST) -> Iterator[tuple[str, Undo]]:
    """∇ for Δ, ⋉ for ▷, old for new: one at a time."""
    name = _name(node)
    if name in SWAPPED and not isinstance(getattr(node, "ctx", None), ast.Store):
        text = ast.unparse(node)
        _rename(node, SWAPPED[name])
        yield f"{SWAPPED[name]} for {text}", lambda: _rename(node, name)


def _exchanged(node: ast.AST) -> Iterator[tuple[str, Undo]]:
    """S and T exchanged in a call; a state of S replaced by S."""
    if not isinstance(node, ast.Call):
        return
    text = ast.unparse(node)
    name = _name(node.func)
    if name in PAIRS and len(node.args) > PAIRS[name][1]:
        i, j = PAIRS[name]

        def exchange() -> None:
            node.args[i], node.args[j] = node.args[j], node.args[i]

        if ast.unparse(node.args[i]) != ast.unparse(node.args[j]):
            exchange()
            yield f"exchanged in {text}", exchange
    if name in (*STATES, "_mod") and isinstance(node.func, (ast.Attribute, ast.Name)):
        func, args = node.func, node.args
        node.func, node.args = ast.Name("(lambda *x: x[-1])"), list(args)
        yield f"unchanged instead of {text}", lambda: _restore(node, func, args)


def _restore(node: ast.Call, func: ast.expr, args: list[ast.expr]) -> None:
    node.func, node.args = func, args


# ── trees ──


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, without types and patterns."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.AnnAssign):
            below: list[ast.AST] = [node.value] if node.value else []
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            below = list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]
        elif isinstance(node, ast.match_case):
            below = list(node.body)
        elif (isinstance(node, ast.Call) and _name(node.func) == "isinstance") or isinstance(
            node, ast.Assert
        ):
            below = []
        else:
            below = list(ast.iter_child_nodes(node))
        stack.extend(reversed(below))


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, (ast.AnnAssign, ast.FunctionDef, ast.Assert)):
        if isinstance(node, ast.AnnAssign) and node.value:
            yield "value", node.value
        return
    if isinstance(node, ast.Call) and _name(node.func) == "isinstance":
        return
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                yield field, child


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _rename(node: ast.AST, name: str) -> None:
    if isinstance(node, ast.Name):
        node.id = name
    elif isinstance(node, ast.Attribute):
        node.attr = name


def _put(node: ast.AST, field: str, old: ast.AST, new: ast.AST) -> Undo:
    """Puts another child in the place of one; gives what puts it back."""
    value = getattr(node, field)
    if isinstance(value, list):
        at = next(i for i, v in enumerate(value) if v is old)
        value[at] = new
        return lambda: value.__setitem__(at, old)
    setattr(node, field, new)
    return lambda: setattr(node, field, old)


def _replace(statement: ast.Return, old: ast.expr, new: ast.expr) -> Undo:
    value = statement.value
    if value is old:
        return _put(statement, "value", old, new)
    assert isinstance(value, ast.IfExp)
    return _put(value, "body" if value.body is old else "orelse", old, new)
