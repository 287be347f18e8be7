"""`gevar passes GRAPH`: what the passes around variables make of a graph, step by step."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypedDict

import click

from acl_shim.errors import printable
from gevar.cli.output import print_json, shared_options, show_log
from gevar.compile import CompilePass, PassContext, PassManager, PassRecord, compile_passes
from gevar.compile.graph_file import read_graph_file
from gevar.compile.graph_lines import changed_lines, graph_lines
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.variable_op_pass import road_text
from gevar.errors import GevarError
from gevar.graph import ComputeGraph
from gevar.var import SessionVersion, VarManager


class _Step(TypedDict):
    """What one pass did: its runs, what changed, and the graph afterwards."""

    name: str
    records: list[PassRecord]
    changed: list[str]
    after: list[str]


class _Watch:
    """Takes down the graph after each pass."""

    def __init__(self, graph: ComputeGraph, context: PassContext) -> None:
        self._graph, self._context = graph, context
        self._lines = graph_lines(graph)
        self.before = list(self._lines.values())
        self.steps: list[_Step] = []

    def after(self, one: CompilePass, _: ComputeGraph) -> None:
        """Take down what a pass has done; it is the callback of the pass manager."""
        seen = sum(len(step["records"]) for step in self.steps)
        lines = graph_lines(self._graph)
        changed = changed_lines(self._lines, lines)
        records = self._context.log.records[seen:]
        self.steps.append(_Step(name=one.name, records=records, changed=changed, after=list(lines.values())))
        self._lines = lines


@click.command()
@click.argument("graph", type=click.Path())
@click.option("--until", metavar="PASS", help="Stop after this pass.")
@click.option("--diff", is_flag=True, help="Show only the nodes that a pass changed, not the whole graph after it.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of GE; may be given again.")
@shared_options
def passes(graph: str, until: str | None, diff: bool, options: tuple[str, ...], as_json: bool, debug: bool) -> None:
    """Run the passes around variables on GRAPH and show what each of them does, and refuses.

    GRAPH is an OM model (of several the first; no bundle), or a ModelDef or GraphDef message, in wire form or as text.
    The file is not changed. The session is a new one, which knows no variable yet.
    """
    show_log(debug)
    chosen = _until(compile_passes(_options(options)), until)
    found = read_graph_file(graph)
    manager = VarManager(0)
    manager.init(SessionVersion.CLOUD_VERSION, session_id=0)
    context = PassContext(manager, GraphRebuildStateCtrl())
    watch = _Watch(found, context)
    try:
        PassManager(chosen).run(found, context, after_pass=watch.after)
    except GevarError:
        if not as_json:
            _print_steps(found.name, watch, diff)
        raise
    names = sorted(name for name in context.changed_names)
    roads = {name: road_text(manager.get_trans_road(name) or ()) for name in names}
    if as_json:
        print_json(_facts(graph, watch, roads, diff))
        return
    _print_steps(found.name, watch, diff)
    print(f"\nROADS: {len(roads)}")
    for name, road in roads.items():
        print(f"  {printable(name)}: {printable(road)}")


def _until(chosen: list[CompilePass], until: str | None) -> list[CompilePass]:
    names = [one.name for one in chosen]
    if until is None:
        return chosen
    if until in names:
        return chosen[: names.index(until) + 1]
    if any(one.name == until for one in compile_passes()):
        reason = f"{until} is switched off by the options"
    else:
        near = get_close_matches(until.lower(), {name.lower(): name for name in names}, n=1, cutoff=0.5)
        reason = f"no pass {until!r}" + "".join(f", {name} is near" for name in names if name.lower() in near)
    raise click.BadParameter(f"{reason}; these run: {', '.join(names)}", param_hint="--until")


def _options(words: tuple[str, ...]) -> dict[str, str]:
    for word in words:
        missing = "value" if "=" not in word else "name" if word.startswith("=") else None
        if missing is not None:
            raise click.BadParameter(f"{word!r} has no {missing}; give NAME=VALUE", param_hint="--option")
    return dict(word.split("=", 1) for word in words)


def _print_steps(name: str, watch: _Watch, diff: bool) -> None:
    print(f"GRAPH {printable(name)}: {len(watch.before)} nodes")
    for line in () if diff else watch.before:
        print(f"  {printable(line)}")
    for step in watch.steps:
        elapsed_ms = sum(record.elapsed_s for record in step["records"]) * 1e3
        print(f"\n{step['name']}: {len(step['changed'])} lines differ, {elapsed_ms:.1f} ms")
        for record in step["records"]:
            for line in list(record.lines())[1:]:
                print(f"{printable(line)}")
        for line in step["changed"] if diff else step["after"] if step["changed"] else ():
            print(f"    {printable(line)}")


def _facts(file: str, watch: _Watch, roads: Mapping[str, str], diff: bool) -> dict[str, object]:
    """Put together the JSON; with `--diff` without the whole graphs."""
    steps = [
        {
            "pass": step["name"],
            "elapsed_s": sum(record.elapsed_s for record in step["records"]),
            "changes": [text for record in step["records"] for text in record.changes],
            "warnings": [text for record in step["records"] for text in record.warnings],
            "refusals": [
                {"subject": refusal.subject, "reason": refusal.reason}
                for record in step["records"]
                for refusal in record.refusals
            ],
            "diff": step["changed"],
            **({} if diff else {"graph": step["after"]}),
        }
        for step in watch.steps
    ]
    return {"file": file, **({} if diff else {"graph": watch.before}), "passes": steps, "roads": dict(roads)}
