"""Functions in pyACL's manner, made from the table of calls when they are looked up."""

from collections.abc import Callable, Sequence

from acl_shim._acl import ffi
from acl_shim.loader import open_runtime
from acl_shim.runtime import Runtime

from ._calls import BY_MODULE, Row
from ._kinds import Call, Int, Out
from ._values import number

Function = Callable[..., object]
"""A function in pyACL's manner: out values first, the code last; the bare code where there are none."""


_opened: Runtime | None = None


def runtime() -> Runtime:
    """Return the runtime of the backend that ``GEVAR_ACL`` names, opened where it is not."""
    global _opened
    if _opened is None or _opened.closed:
        _opened = open_runtime()
    return _opened


def _signature(row: Row) -> str:
    return f"{row.name}({', '.join(name for kind in row.kinds for name in kind.takes)})"


def _completed(row: Row, given: tuple[object, ...], takes: int) -> tuple[object, ...]:
    """Return the arguments with the defaults of those left out."""
    left_out = takes - len(given)
    if not 0 <= left_out <= len(row.defaults):
        raise TypeError(f"{_signature(row)} takes {takes} arguments, not {len(given)}")
    return (*given, *row.defaults[len(row.defaults) - left_out :])


def _function_of_numbers(row: Row, kinds: Sequence[Int | Out], takes: int) -> Function:
    """Return the function of a row whose parameters and out values are numbers: the same without a `Call`."""
    steps = [(None, kind.takes[0], kind.mask) if isinstance(kind, Int) else (kind.c_type, "", 0) for kind in kinds]
    new, c_name = ffi.new, row.c_name

    def function(*given: object) -> object:
        values = iter(given if len(given) == takes else _completed(row, given, takes))
        arguments: list[object] = []
        cells = []
        for c_type, name, mask in steps:
            if c_type is None:
                arguments.append(number(next(values), name) & mask)
            else:
                cells.append(cell := new(c_type))
                arguments.append(cell)
        code = getattr(runtime().api, c_name)(*arguments)
        return (*[cell[0] for cell in cells], code) if cells else code

    return function


def _function_of_kinds(row: Row, takes: int) -> Function:
    """Return the function of a row with parameters of any kind."""
    c_name = row.c_name
    steps = [kind.add for kind in row.kinds]

    def function(*given: object) -> object:
        if len(given) != takes:
            given = _completed(row, given, takes)
        call = Call(given)
        for add in steps:
            add(call)
        code = getattr(runtime().api, c_name)(*call.arguments) if call.refusal is None else call.refusal
        for finish in call.finish:
            finish(code)
        return (*[output() for output in call.outputs], code) if call.outputs else code

    return function


def make_function(row: Row) -> Function:
    """Return the function of a row; it calls whatever backend is open then."""
    takes = sum(len(kind.takes) for kind in row.kinds)
    numbers = [kind for kind in row.kinds if isinstance(kind, Int | Out)]
    whole = len(numbers) == len(row.kinds)
    function = _function_of_numbers(row, numbers, takes) if whole else _function_of_kinds(row, takes)
    function.__name__ = row.name
    function.__qualname__ = f"{row.module}.{row.name}"
    function.__doc__ = f"{_signature(row)}: `{row.c_name}` in pyACL's manner."
    return function


class Face:
    """The functions of one module, those that the open library has.

    Thread safety: any thread may use it.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._rows = BY_MODULE[module]
        self._made: dict[str, Function] = {}

    def names(self) -> list[str]:
        """Return the names of the functions that the library has."""
        return [name for name, row in self._rows.items() if runtime().supports(row.c_name)]

    def function(self, name: str) -> Function:
        """Return a function by its name.

        Raises
        ------
        AttributeError
            There is no such function, or the library lacks it.
        """
        if name in self._made:
            return self._made[name]
        row = self._rows.get(name)
        if row is None:
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}")
        if not runtime().supports(row.c_name):
            raise AttributeError(f"{self._module}.{name} is not there: {runtime().path} has no {row.c_name}")
        return self._made.setdefault(name, make_function(row))
