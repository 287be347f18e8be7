"""Facts of a step that asks about a variable by name, renews it, or records what graphs did to it."""

from gevar.types import TensorDesc
from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.fact_words import Asked, Fact, Facts
from tests.golden.var.facts_register import key_collides
from tests.golden.var.ge_state import Resource
from tests.golden.var.ge_variables import ND_OUTPUT


def look_facts(asked: Asked) -> Facts:
    step, gevar = asked.step, asked.gevar
    desc, res = step.maybe_tensor, asked.res
    return {
        **asked.life,
        "key_collides": desc is not None and key_collides(res, step.name, desc),
        "gevar_key_known": gevar.is_var_exist(step.name, desc),
    }


def ready_facts(asked: Asked) -> Facts:
    """Whether a flag of another variable has the text of this one's key."""
    step, gevar = asked.step, asked.gevar
    res, key = asked.res, gevar.triple(step.name, step.tensor)
    text, others = res.key(step.name, step.tensor), gevar.device(step.device).ready - {key}
    return {
        **asked.life,
        "key_collides": any(f"{name}{fmt}_{kind}" == text for name, fmt, kind in others),
        "gevar_ready": key in gevar.device(step.device).ready,
    }


def renew_facts(asked: Asked) -> Facts:
    step, gevar = asked.step, asked.gevar
    res = asked.res
    op = step.op if "op" in step.args else None
    desc = step.maybe_tensor or (op.outputs[0] if op is not None and op.outputs else ND_OUTPUT)
    current = res.cur_descs.get(res.key_name(step.name))
    renewed = None if current is None else current.replace(format=desc.format)
    return {
        **asked.life,
        "has_description": "tensor" in step.args or op is not None,
        "name_known": current is not None,
        "current_usable": current is not None and res.key(step.name, current) in res.records,
        "key_collides": renewed is not None and key_collides(res, step.name, renewed),
        **_gevar_renewal(gevar, step.name, desc),
    }


def _gevar_renewal(gevar: CarefulManager, name: str, desc: TensorDesc) -> dict[str, Fact]:
    """Whether the new form is there already, and whether a flag has to move with the old one."""
    res = gevar.resource or Resource(0)
    current = res.cur_descs.get(res.key_name(name))
    if current is None:
        return {"gevar_form_known": False, "gevar_form_lost": False, "ready_moves": False}
    old, new = gevar.triple(name, current), gevar.triple(name, current.replace(format=desc.format))
    usable = old in gevar.tables.entries and new != old
    return {
        "gevar_form_known": usable and new in gevar.tables.entries,
        "gevar_form_lost": old not in gevar.tables.entries,
        "ready_moves": usable and any(old in one.ready for one in gevar.on.values()),
    }


def graphs_facts(asked: Asked) -> Facts:
    step = asked.step
    res = asked.res
    graph_id = res.changed.get(step.name)
    return {
        **asked.life,
        "name_mapped": res.key_name(step.name) != step.name,
        "graph_recorded": step.name in res.changed or res.key_name(step.name) in res.changed,
        "moves_graph": graph_id is not None and graph_id != step.graph_id,
    }
