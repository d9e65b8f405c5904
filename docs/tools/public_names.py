"""Every public name, where it is defined and whether it is documented; read from the source, nothing is imported."""

import ast
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "robust_rlhf_jax"
# Assignments carry no docstring, so that their line stands here.
CONSTANTS = {
    "ATTACKS": "Every attack by its name.",
    "CEILING": "The largest ε that `fit_reward` and `estimate_epsilon` consider when ε is None.",
    "DELIVERY_FEATURES": "Names of the reward features of `delivery_grid`, in the order of θ.",
    "METHODS": "Every planner that a sweep can run, by name: function, label, colour, whether it is ours.",
    "OURS": "The names of `METHODS` that are ours or the paper's.",
    "RIVALS": "Every rival by its name: other people's reward estimates, then a plain planner.",
    "EXPONENTS": "The power of ε in each bound of the paper's Table 1, by coverage assumption.",
    "FEATURISERS": "What makes features of texts, by the name that `--featuriser` takes.",
    "ISSUES": "Every issue type of an audit by its name.",
    "PAIR_ATTACKS": "Every attack on labelled differences by its name.",
    "Policy": "A policy: probabilities [H, S, A], or a mixture of policies.",
    "RAIL_FEATURES": "Names of the features of `load_rail_choices`, in the order of θ.",
    "CONTAINERS": "In what files rows come: modules that read and write.",
    "SCHEMAS": "How preferences are written in tables: modules that recognise and map.",
    "WORLDS": "The generated worlds that a benchmark runs on, by name.",
    "QUICK": "A benchmark of a minute, to see that it runs.",
    "REWARD_ESTIMATORS": "Reward estimators by name, behind one signature: `--estimator` of an audit takes any.",
}


class PublicName(NamedTuple):
    """A name that a package exports.

    `package`: "" for the top, else a subpackage; `home`: the module that defines it; `line`: its first sentence.
    """

    package: str
    name: str
    home: str
    line: str

    @property
    def shown(self) -> str:
        """What a user imports."""
        return ".".join(part for part in (PACKAGE, self.package, self.name) if part)

    @property
    def target(self) -> str:
        """Where the documentation is read from."""
        return f"{self.home}.{self.name}"


def packages() -> list[str]:
    """Subpackages and modules of the library and of the laboratory that say what they export."""
    found = []
    for wing in ("", "lab."):
        place = ROOT.joinpath(PACKAGE, *wing.split("."))
        found += [wing + path.parent.name for path in place.glob("*/__init__.py")]
        found += [wing + path.stem for path in place.glob("[a-z]*.py")]
    return sorted(name for name in found if exported(f"{PACKAGE}.{name}"))


def exported(module: str) -> list[str]:
    """A module's `__all__`, empty where it has none, and what registers itself in its folder (`listed`)."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
            return names + sorted(listed(module).keys() - set(names))
    return []


@cache
def listed(package: str) -> dict[str, str]:
    """Functions marked `@listed(...)` in the files of a package, each with its module."""
    files = sorted(ROOT.joinpath(*package.split(".")).glob("*.py"))
    modules = [f"{package}.{path.stem}" for path in files if path.stem != "__init__"]
    return {
        node.name: module
        for module in modules
        for node in tree(module).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(mark).startswith("listed(") for mark in node.decorator_list)
    }


def public_names(package: str = "") -> list[PublicName]:
    """The names that a package exports, modules excluded.

    **Raises:** ValueError for a name without documentation.
    """
    module = f"{PACKAGE}.{package}" if package else PACKAGE
    found = []
    for name in exported(module):
        home = defined_in(module, name)
        if home is not None:
            found.append(PublicName(package, name, home, first_sentence(home, name)))
    return found


def first_sentence(home: str, name: str) -> str:
    node = definition(home, name)
    text = (
        ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else CONSTANTS.get(name)
    )
    if not text:
        raise ValueError(
            f"{home}.{name} is public and has no docstring (constants: docs/tools/public_names.py)."
        )
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.;]) (?=[A-Z`{∑])", paragraph)[0].rstrip(";")


def signature(found: PublicName) -> str:
    """How a function is called or an object made, or what a constant is, in a fence; "" for protocols and the like."""
    node = definition(found.home, found.name)
    if isinstance(node, ast.FunctionDef):
        given = parameters(node.args)
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    elif isinstance(node, ast.ClassDef):
        # Fields of a NamedTuple, a dataclass or an Equinox module; a protocol, an enumeration and the like have none.
        fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
        given, returns = [ast.unparse(field) for field in fields] or constructor(node), ""
    else:
        value = textwrap.wrap(ast.unparse(node), 88, subsequent_indent="    ", break_long_words=False)
        return "\n".join(["```python", *value, "```"])
    if not given and not isinstance(node, ast.FunctionDef):
        return ""
    line = f"{found.name}({', '.join(given)}){returns}"
    if len(line) > 88:
        line = "\n".join([f"{found.name}(", *(f"    {part}," for part in given), f"){returns}"])
    return f"```python\n{line}\n```"


def constructor(node: ast.ClassDef) -> list[str]:
    """What the `__init__` of a class takes, where it has one."""
    made = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
    return [given for part in made for given in parameters(part.args)[1:]]


def parameters(arguments: ast.arguments) -> list[str]:
    """Each parameter with its annotation and default, `*` where the keywords begin."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    given = [parameter(a, d) for a, d in zip(plain, defaults, strict=True)]
    if arguments.vararg:
        given.append(f"*{parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        given.append("*")
    given += [parameter(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return given + ([f"**{parameter(arguments.kwarg, None)}"] if arguments.kwarg else [])


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    value = "" if default is None else f"{' = ' if annotation else '='}{ast.unparse(default)}"
    return f"{argument.arg}{annotation}{value}"


def is_constant(found: PublicName) -> bool:
    return not isinstance(definition(found.home, found.name), ast.FunctionDef | ast.ClassDef)


def defined_in(module: str, name: str) -> str | None:
    """The module that defines `name`, imports followed; None where `name` is a module itself."""
    if definition(module, name) is not None:
        return module
    for node in imports(module):
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                source = imported_from(module, node)
                is_module = source_file(f"{source}.{alias.name}") is not None
                return None if is_module else defined_in(source, alias.name)
    if name in listed(module):
        return listed(module)[name]
    raise ValueError(f"{module} exports {name}, which it neither defines nor imports.")


def imports(module: str) -> list[ast.ImportFrom]:
    """What stands at the top of a module, and under `if typing.TYPE_CHECKING` there."""
    body = tree(module).body
    inner = [node for block in body if isinstance(block, ast.If) for node in block.body]
    return [node for node in (*body, *inner) if isinstance(node, ast.ImportFrom)]


def imported_from(module: str, node: ast.ImportFrom) -> str:
    """The absolute module of `from … import`."""
    if not node.level:
        return node.module or ""
    is_package = ROOT.joinpath(*module.split("."), "__init__.py").is_file()
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def definition(module: str, name: str) -> ast.stmt | None:
    """The statement that defines `name` at the top of a module."""
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node
    return None


@cache
def tree(module: str) -> ast.Module:
    path = source_file(module)
    if path is None:
        raise ValueError(f"There is no module {module}.")
    return ast.parse(path.read_text(encoding="utf-8"))


def source_file(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
