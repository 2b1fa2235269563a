"""What a variant's code is, as twelve hexadecimal digits: a measured time is worth something only for the code it was measured on.

Standard library only; the sources are read, not imported, so that machines without torch or Triton get the same digits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

PACKAGE = "tftune.kernels"
ROOT = Path(__file__).parent
SHARED = ("compile",)
"""Modules that are not followed: how any kernel is compiled is no part of one."""


@dataclass(frozen=True)
class _Module:
    """One source file: what it defines at its top, and what its names of this package stand for."""

    definitions: dict[str, tuple[ast.stmt, ...]]
    imported: dict[str, tuple[str, str]]
    """Local name: module, and the name there ("" where the local name is the module itself)."""


class _Essence(ast.NodeTransformer):
    """What a program does: no bare strings (docstrings), no empty piece that Python 3.12 puts at the end of a format."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        node.values = [piece for piece in node.values if not (isinstance(piece, ast.Constant) and piece.value == "")]
        return self.generic_visit(node)


@cache
def kernel_hash(op: str, variant: str, root: Path = ROOT) -> str:
    """Twelve hexadecimal digits of every function and constant that the functions of `<root>/<op>/<variant>.py` reach.

    Names imported from tftune.kernels are followed, function by function, but not into SHARED modules; comments, docstrings and layout do
    not count, decorators, signatures and module constants do. The same on every Python. Annotations count but are not followed: a type
    is no code of the kernel. Raises ValueError where there is no such file.
    """
    start = f"{op}.{variant}"
    if not (root / op / f"{variant}.py").exists():
        known = sorted(file.stem for file in (root / op).glob("*.py") if file.stem != "__init__")
        raise ValueError(f"{op} has no source file {variant}.py; the files of {root / op} are {', '.join(known) or 'none'}")
    functions = [name for name, nodes in _module(start, root).definitions.items() if not isinstance(nodes[0], ast.Assign | ast.AnnAssign)]
    reached: dict[tuple[str, str], str] = {}
    waiting = [(start, name) for name in functions]
    while waiting:
        module, name = waiting.pop()
        if (module, name) not in reached:
            nodes = _module(module, root).definitions[name]
            found = sorted({pair for node in nodes for pair in _references(module, node, root)})
            reached[module, name] = " ".join([*map(canonical, nodes), repr(found)])
            waiting += [target for _, target in found]
    text = "\n".join(f"{module}:{name} {code}" for (module, name), code in sorted(reached.items()))
    return sha256(text.encode()).hexdigest()[:12]


def canonical(node: object) -> str:
    """A syntax tree as text that no Python version changes: `ast.dump` shows fields that newer versions added, and `ast.unparse`
    quotes f-strings one way in 3.11 and another in 3.12. Absent and empty fields are left out here.
    """
    if isinstance(node, ast.AST):
        fields = [f"{name}={canonical(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({', '.join(fields)})"
    return f"[{', '.join(canonical(item) for item in node)}]" if isinstance(node, list) else repr(node)


@cache
def _module(name: str, root: Path) -> _Module:
    """The module of that dotted name below the package; "" is the package itself."""
    file = _file(name, root)
    if file is None:
        raise ValueError(f"there is no source file of {name} below {root}")
    tree = _Essence().visit(ast.parse(file.read_text(encoding="utf-8"), str(file)))
    definitions: dict[str, tuple[ast.stmt, ...]] = {}
    for statement in _top_statements(tree.body):
        for defined in _defined(statement):
            definitions[defined] = (*definitions.get(defined, ()), statement)
    imported = {local: found for node in ast.walk(tree) for local, found in _imports(node, name, file, root)}
    return _Module(definitions, imported)


def _file(name: str, root: Path) -> Path | None:
    folder = root.joinpath(*name.split(".")) if name else root
    return next((file for file in (folder.with_suffix(".py"), folder / "__init__.py") if file.exists()), None)


def _top_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under a top-level `if`, `try` or `with` among them."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With):
            inner = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
            handlers = [handler.body for handler in getattr(statement, "handlers", [])]
            yield from _top_statements([inside for block in (*inner, *handlers) for inside in block])
        else:
            yield statement


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _imports(node: ast.AST, module: str, file: Path, root: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The local names that one import statement binds to this package, and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.startswith(f"{PACKAGE}."):
                yield alias.asname or alias.name, (alias.name[len(PACKAGE) + 1 :], "")
    elif isinstance(node, ast.ImportFrom) and (source := _source(node, module, file)) is not None:
        for alias in node.names:
            if alias.name == "*":
                raise ValueError(f"{file} line {node.lineno} imports *: name what it uses, so that its kernels can be hashed")
            below = f"{source}.{alias.name}".lstrip(".")
            yield alias.asname or alias.name, (below, "") if _file(below, root) else (source, alias.name)


def _source(node: ast.ImportFrom, module: str, file: Path) -> str | None:
    """The module below the package that `from ... import` names, or None where it is outside."""
    if node.level:
        parts = module.split(".") if file.stem == "__init__" else module.split(".")[:-1]
        return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
    full = f"{node.module}."
    return full[len(PACKAGE) + 1 : -1] if full.startswith(f"{PACKAGE}.") else None


def _references(module: str, node: ast.AST, root: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that a piece of code uses outside annotations, each with the definition that it stands for."""
    named = isinstance(node, ast.Name | ast.Attribute) and _dotted(node)
    if named and (target := _resolve(module, named, root)) and target[0] not in SHARED:
        yield named, target
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            children = value if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST):
                    yield from _references(module, child, root)


def _dotted(node: ast.expr) -> str:
    """`a.b.c` as text; "" where it does not start with a name."""
    if isinstance(node, ast.Attribute):
        start = _dotted(node.value)
        return start and f"{start}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _resolve(module: str, dotted: str, root: Path) -> tuple[str, str] | None:
    """Where `dotted`, as written in `module`, is defined; None for a local name, a builtin, or another package."""
    here = _module(module, root)
    if dotted in here.definitions:
        return module, dotted
    for local in (dotted, dotted.rpartition(".")[0]):
        if local in here.imported:
            source, name = here.imported[local]
            wanted = name or dotted[len(local) + 1 :]
            return _resolve(source, wanted, root) if wanted and _file(source, root) else None
    return None
