"""Every row, and how it is run."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from typing import cast

from benchmarks.harness import Row

#: Row name -> module and function. Modules are imported when their row is run.
BENCHMARKS = {
    "import-time": ("benchmarks.import_time", "import_time"),
    "inspect-memory": ("benchmarks.inspect_memory", "inspect_memory"),
    "inspect-nodes": ("benchmarks.inspect_costs", "inspect_nodes"),
    "open-sparse": ("benchmarks.inspect_costs", "open_sparse"),
    "graph-read": ("benchmarks.graph_costs", "graph_read"),
    "graph-memory": ("benchmarks.graph_costs", "graph_memory"),
    "upload-touched": ("benchmarks.upload_speed", "upload_touched"),
    "upload-fresh": ("benchmarks.upload_speed", "upload_fresh"),
    "upload-small": ("benchmarks.upload_regions", "upload_small"),
    "upload-scattered": ("benchmarks.upload_regions", "upload_scattered"),
    "upload-cold": ("benchmarks.upload_cold", "upload_cold"),
    "upload-memory": ("benchmarks.upload_memory", "upload_memory"),
    "upload-digests": ("benchmarks.upload_digests", "upload_digests"),
    "upload-safetensors": ("benchmarks.upload_safetensors", "upload_safetensors"),
    "upload-second": ("benchmarks.second_load", "upload_second"),
    "malloc-free": ("benchmarks.runtime_costs", "malloc_free"),
    "map-unmap": ("benchmarks.runtime_costs", "map_unmap"),
    "device-copy": ("benchmarks.runtime_costs", "device_copy"),
    "many-live": ("benchmarks.runtime_costs", "many_live"),
    "table-call": ("benchmarks.runtime_costs", "table_call"),
    "face-call": ("benchmarks.runtime_costs", "face_call"),
    "face-small": ("benchmarks.runtime_costs", "face_small"),
    "var-assign": ("benchmarks.var_costs", "var_assign"),
    "var-assign-many": ("benchmarks.var_costs", "var_assign_many"),
    "var-get-addr": ("benchmarks.var_costs", "var_get_addr"),
    "var-loaded": ("benchmarks.var_costs", "var_loaded"),
    "var-constants": ("benchmarks.var_costs", "var_constants"),
    "var-to-bytes": ("benchmarks.var_costs", "var_to_bytes"),
    "var-from-bytes": ("benchmarks.var_costs", "var_from_bytes"),
    "var-memory": ("benchmarks.var_costs", "var_memory"),
    "resolve": ("benchmarks.resolution", "resolve"),
    "resolve-many": ("benchmarks.resolution", "resolve_many"),
    "resolve-threads": ("benchmarks.resolution", "resolve_threads"),
    "giant-pages": ("benchmarks.page_reads", "giant_pages"),
    "pass-growth": ("benchmarks.pass_costs", "pass_growth"),
    "memory-page": ("benchmarks.memory_costs", "memory_page"),
    "memory-touch": ("benchmarks.memory_costs", "memory_first_touch"),
    "memory-growth": ("benchmarks.memory_costs", "memory_growth"),
    "memory-random": ("benchmarks.memory_costs", "memory_random"),
    "format-4d": ("benchmarks.format_speed", "format_4d"),
    "format-4d-bytes": ("benchmarks.format_speed", "format_4d_bytes"),
    "format-matrix": ("benchmarks.format_speed", "format_matrix"),
    "format-cast": ("benchmarks.format_speed", "format_cast"),
    "format-memory": ("benchmarks.format_speed", "format_memory"),
}


def _run(name: str) -> Row:
    module, function = BENCHMARKS[name]
    return cast("Callable[[], Row]", getattr(import_module(module), function))()


def measure(name: str) -> Row:
    """Run a row in a process of its own, whose memory no other row has shaped."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_run, name).result()
