"""`gevar inspect FILE`: what is in an OM file, without loading it and without a device."""

from collections.abc import Iterator, Mapping
from typing import cast

import click

from acl_shim.errors import printable, size_text
from gevar.cli.output import (
    bundle_option,
    drop_empty,
    origin_text,
    print_json,
    print_table,
    shape_text,
    shared_options,
    show_log,
)
from gevar.om import open_om
from gevar.om.facts import Json, om_facts
from gevar.om.om2_package import is_om2, open_om2

Facts = Mapping[str, Json]


@click.command()
@click.argument("file", type=click.Path())
@bundle_option
@shared_options
def inspect(file: str, bundle: bool, as_json: bool, debug: bool) -> None:
    """Show what is in the OM model FILE: header, partitions, nodes, constants, variables.

    No device is used and no byte of the weights is read.
    """
    show_log(debug)
    is_package = is_om2(file)
    if is_package:
        from gevar.session.om2_facts import om2_facts

        with open_om2(file) as package:
            facts = om2_facts(package)
    else:
        with open_om(file, kind="bundle" if bundle else "model") as om:
            facts = om_facts(om)
    if as_json:
        print_json({"file": file, **facts})
        return
    print(f"file      {printable(file)}, {size_text(cast(int, facts['size']))}")
    if is_package:
        _print_om2(facts)
    else:
        _print_om(facts)


def _print_om2(facts: Facts) -> None:
    entries = list(_list(facts["entries"]))
    print(f"dialect   OM2 package, {facts['model_num']} models, {len(entries)} entries")
    for what, reason in _facts(facts["not_supported"]).items():
        print(f"not used  {printable(f'{what}: {reason}')}")
    for index, model in enumerate(_list(facts["models"])):
        print(f"\nMODEL {index}")
        rows = [
            (str(one["name"]), str(one["type"]), str(one["file_name"]), str(one["offset"]), str(one["size"]))
            for one in _list(model["consts"])
        ]
        columns = [("constant", "left"), ("type", "left"), ("file", "left"), ("offset", "right"), ("bytes", "right")]
        print_table(columns, rows)
    names = ("name", "type", "dtype", "format", "size", "logic_addr")
    columns = [(name.replace("_addr", "al address"), "left") for name in names]
    print_table(columns, [tuple(str(one[name]) for name in names) for one in _list(facts["variables"])])


def _print_om(facts: Facts) -> None:
    header = _facts(facts["header"])
    platform = header["platform_version"] or "not given"
    print(f"dialect   {facts['dialect']}, version {header['version']:#x}, {facts['table_entry_bytes']} B a table entry")
    print(f"model     {printable(str(header['name']))}, platform {printable(str(platform))}")
    for index, model in enumerate(_list(facts["models"])):
        print(f"\nMODEL {index}")
        _print_model(model)
    for submodel in _list(facts.get("submodels")):
        print(f"\nSUB-MODEL {printable(str(submodel['name']))} {printable(str(submodel['model_type']))}")
        if "header" in submodel:
            _print_om(submodel)
        else:
            print(f"not in this file: {printable(str(submodel['om_data_file_path'] or 'only a graph'))}")


def _print_model(model: Facts) -> None:
    columns = [("partition", "left"), ("type", "right"), ("file offset", "right"), ("size", "right")]
    rows = [
        (str(part["name"]), str(part["type"]), str(part["file_offset"]), size_text(cast(int, part["mem_size"])))
        for part in _list(model["partitions"])
    ]
    print_table(columns, rows)
    if "model_def" not in model:
        return
    for graph in _list(_facts(model["model_def"])["graphs"]):
        types = ", ".join(f"{printable(name)} {count}" for name, count in sorted(_facts(graph["types"]).items()))
        print(f"graph {printable(str(graph['name']))}: {graph['ops']} nodes: {types}")
    _print_constants(_facts(model["consts"]))
    _print_variables(_list(model["variables"]))
    if "kernels" in model:
        kernels = _facts(model["kernels"])
        state = ", damaged" if kernels["bad"] else ""
        print(f"kernels: {kernels['count']} in {size_text(cast(int, kernels['size']))}{state}")


def _print_constants(consts: Facts) -> None:
    rows = list(_list(consts["list"]))
    total = sum(cast(int, row["size"]) for row in rows)
    print(f"constants: {consts['total']}, {size_text(total)}")
    columns = [("constant", "left"), ("data type", "left"), ("format", "left"), ("shape", "left")]
    columns += [("bytes in", "left"), ("offset", "right"), ("bytes", "right")]
    table = [
        (
            *(str(row[key]) for key in ("name", "dtype", "layout")),
            shape_text(cast("list[int]", row["shape"] or [])),
            str(row["storage"]),
            "-" if row["offset"] is None else str(row["offset"]),
            str(row["size"]),
        )
        for row in rows
    ]
    if table:
        print_table(columns, table)


def _print_variables(variables: Iterator[Facts]) -> None:
    columns = [("variable", "left"), ("kind", "left"), ("data type", "left"), ("format", "left"), ("shape", "left")]
    columns += [("origin", "left"), ("logical address", "right"), ("bytes", "right"), ("padding", "right")]
    table = [
        (
            *(str(row[key]) for key in ("name", "type", "dtype", "format")),
            shape_text(cast("list[int]", row["shape"])),
            origin_text(
                (str(row["format"]), cast("list[int]", row["shape"])),
                (str(row["origin_format"]), cast("list[int] | None", row["origin_shape"])),
            ),
            "-" if row["logic_addr"] is None else f"{row['logic_addr']:#x}",
            str(row["size"]),
            str(row["padding_bytes"] or ""),
        )
        for row in variables
    ]
    print(f"variables: {len(table)}")
    if table:
        print_table(*drop_empty(columns, table))


def _facts(value: Json) -> Facts:
    return cast(Facts, value)


def _list(value: Json) -> Iterator[Facts]:
    return iter(cast("list[Facts]", value or []))
