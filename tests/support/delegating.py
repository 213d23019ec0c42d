"""What stands before an object in a test, and passes on whatever it does not answer itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self


class Delegating:
    """Passes on by the subclass's `__getattr__`. It has the attributes of the first argument's class: since Python 3.12
    `isinstance` looks for a protocol's members without `__getattr__`.
    https://docs.python.org/3/whatsnew/3.12.html#typing"""

    def __new__(cls, real: object, *_: Any, **__: Any) -> Self:
        passed = {
            name: _method(name) if callable(member) else property(_attribute(name))
            for name, member in inspect.getmembers_static(type(real))
            if not name.startswith("_") and not hasattr(cls, name) and name not in getattr(cls, "__annotations__", {})
        }
        made: Self = object.__new__(type(cls.__name__, (cls,), passed))
        return made

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError


def _attribute(name: str) -> Callable[[Any], Any]:
    return lambda self: self.__getattr__(name)


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args, **named: self.__getattr__(name)(*args, **named)
