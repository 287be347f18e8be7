"""One object for each open runtime: the same each time, none for a runtime that was closed."""

import threading
from typing import cast

from acl_shim import Runtime
from gevar.memory.per_runtime import PerRuntime
from tests.helpers.child import expect_output


class _Runtime:
    closed = False


def test_each_runtime_has_its_own() -> None:
    made: list[Runtime] = []
    shared = PerRuntime(lambda runtime: made.append(runtime) or len(made))
    one, two = (cast(Runtime, _Runtime()) for _ in range(2))
    assert [shared.of(one), shared.of(two), shared.of(one), shared.of(two)] == [1, 2, 1, 2]
    assert made == [one, two]


def test_many_threads_get_the_same() -> None:
    shared, runtime = PerRuntime(lambda _: object()), cast(Runtime, _Runtime())
    start, found = threading.Barrier(8), []

    def ask() -> None:
        start.wait()
        found.append(shared.of(runtime))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_a_closed_runtime_is_forgotten() -> None:
    code = """
        import gc, weakref
        from acl_shim import open_runtime
        from gevar import Session
        runtime = open_runtime("host")
        with Session(runtime):
            pass
        runtime.close()
        closed = weakref.ref(runtime)
        del runtime
        with Session(backend="host") as session:
            session.init_var_memory(0)
            gc.collect()
            print(closed() is None)
    """
    expect_output(code, "True")
