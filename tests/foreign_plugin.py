"""A plugin of mypy: refuses `minigts.foreign.Foreign` where Python takes any object and makes text of it.

That is in f-strings (which mypy sees as `'{:{}}'.format(word, '')`), `str.format`, `format()`, `str()` and `print()`.
`repr()` and `{word!r}` are allowed: they give a bounded line of ASCII. It also refuses `stdout` and `stderr` of a
failed command's error, which are for users' programs: here they are `out` and `err`.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import CallExpr, MemberExpr, StrExpr
from mypy.plugin import AttributeContext, FunctionContext, MethodContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

FOREIGN = "minigts.foreign.Foreign"
FUNCTIONS = (
    *("builtins.str", "builtins.print", "builtins.format", "json.dumps"),
    *("typer._click.utils.echo", "typer._click.termui.secho"),
)
LOGGED = tuple(f"logging.Logger.{name}" for name in ("debug", "info", "warning", "error", "exception", "critical"))
OF_USERS = {
    "minigts.errors.CommandFailed.stdout": "out",
    "minigts.errors.CommandFailed.stderr": "err",
}
DOORS = "pass it through a door of minigts.foreign"


def is_foreign(kind: Type) -> bool:
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        return any(map(is_foreign, proper.items))
    return isinstance(proper, Instance) and proper.type.has_base(FOREIGN)


def _refuse(context: FunctionContext | MethodContext, where: str) -> Type:
    if any(is_foreign(kind) for kinds in context.arg_types for kind in kinds):
        context.api.fail(f"a stranger's words in {where}: {DOORS}", context.context)
    return context.default_return_type


def _in_function(context: FunctionContext) -> Type:
    return _refuse(context, "str(), print() or format()")


def _in_format(context: MethodContext) -> Type:
    call = context.context
    if isinstance(call, CallExpr) and isinstance(call.callee, MemberExpr):
        template = call.callee.expr
        if isinstance(template, StrExpr) and template.value.startswith(("{!r", "{!a")):
            return context.default_return_type
    return _refuse(context, "an f-string or str.format")


def _in_percent(context: MethodContext) -> Type:
    return _refuse(context, "a % format")


def _in_log(context: MethodContext) -> Type:
    return _refuse(context, "a log")


def _of_users(context: AttributeContext) -> Type:
    context.api.fail("stdout and stderr of a failed command are for users' programs: take out or err", context.context)
    return context.default_attr_type


class ForeignPlugin(Plugin):
    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _in_function if fullname in FUNCTIONS else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname in LOGGED:
            return _in_log
        return {"builtins.str.format": _in_format, "builtins.str.__mod__": _in_percent}.get(fullname)

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return _of_users if fullname in OF_USERS else None


def plugin(_version: str) -> type[Plugin]:
    return ForeignPlugin
