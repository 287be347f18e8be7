"""Words of the conditions in `docs/differences.md`: facts of a step's arguments and of the state before it.

Facts that start with `gevar_` are those of gevar's rules; where the two may differ all others are GE's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.golden.facts import Json
from tests.golden.var.careful_tables import CarefulManager
from tests.golden.var.ge_pool import ModelManager
from tests.golden.var.ge_state import Resource
from tests.golden.var.steps import Step

Fact = bool | int | str | Mapping[str, Json]
Facts = Mapping[str, Fact]
MEANING: Mapping[str, str] = {
    "initialised": "the manager is initialised",
    "gevar_initialised": "the same of gevar's",
    "session_differs": "the session id given is not that of the manager in the pool",
    "foreign_base": "the tables name another manager, whose logic base is another one",
    "changes_sizes": "the call changes sizes or base although it fails",
    "size": "size of the description in bytes",
    "memory_type": "kind of memory that is asked for",
    "op_type": "type of the node; empty where there is none",
    "key_known": "the key is registered",
    "key_collides": "the text of the key is that of another variable's key",
    "name_known": "the name has a current description",
    "same_form": "the description has format, data type and shape of the current one",
    "gevar_same_form": "the same by gevar's rules",
    "current_usable": "the current description has an address",
    "current_size": "size of the current description; -1 where it has no address",
    "gevar_own_size": "bytes of the block that the key stands for by gevar's rules; -1 for none",
    "gevar_current_size": "bytes that the current form has by gevar's rules; -1 for none",
    "gevar_key_known": "the key is registered by gevar's rules",
    "gevar_type_differs": "by gevar's rules the variable, or the block at the address, has another kind of memory",
    "place_holder_bad": "by gevar's rules the node is a place holder whose attributes are wrong",
    "place_holder_unsound": "the same, and GE takes it: it has no size, or its memory ends behind 64 bits",
    "kind_known": "there is such a kind of memory",
    "fits_window": "the output offset of the node lies in the variable memory, with all of the data",
    "replaces_block": "the node's place is the start of a block with another description, or of a place holder's",
    "shares": "a new name gets the block of an equal weight or of the same file slice",
    "gevar_shares": "the same by gevar's rules",
    "donor_size": "bytes of that block; -1 for none",
    "donor_type": "kind of memory of that block; -1 for none",
    "donor_length": "length attribute of the file constant that is shared; -1 for none",
    "length": "length attribute of a file constant; 0 where it is missing",
    "takes_space": "GE takes new space",
    "gevar_new_block": "by gevar's rules the variable needs new space",
    "revival_fails": "by gevar's rules the block is a place holder's of another process, and `place_holder_bad`",
    "in_the_way": "by gevar's rules the next place is taken by a variable that is known",
    "no_room": "by gevar's rules the new block has no room: the variable memory ends, or 63 bits do, or no pool",
    "overlaps": "by gevar's rules another variable's data lies at the place",
    "has_memory_manager": "there is a memory manager",
    "inner": "distance of the address from the start of the block it lies in; 0 for none",
    "place_holder": "by gevar's rules the address lies in a place holder",
    "place_holder_live": "by gevar's rules the memory of that place holder belongs to this process",
    "place_holder_addr": "the address in the memory of that place holder, inner offset included",
    "initial_hex": "the bytes that are read, from an initial value laid down at the start; absent where none are read",
    "in_place_holder": "by gevar's rules the address lies in that memory",
    "pool_block": "by gevar's rules the address lies in a variable whose memory is a pool's",
    "known_address": "the address lies in a variable",
    "gevar_known_address": "the same by gevar's rules",
    "asks_memory": "memory is asked for, since the variable has none on the device",
    "gets_memory": "memory is asked for, and there is some",
    "gevar_gets_memory": "by gevar's rules the variable has memory on the device, or gets some",
    "has_init": "the variable has an initial value",
    "init_fits": "that value fits the variable",
    "external": "there is external memory, and device memory of kind HBM is asked for",
    "in_region": "the address lies in the external memory, and that is large enough",
    "gevar_serves": "by gevar's rules the address has memory on the device, or some is asked for",
    "gevar_external": "the same for the device by gevar's rules",
    "region_short": "by gevar's rules the region does not reach the end of the variables",
    "expandable": "memory that grows is asked",
    "gevar_expandable": "the same for the device by gevar's rules",
    "flags_set": "something is called ready or loaded",
    "mixed_owners": "memory of several owners or kinds is freed",
    "gevar_ready": "by gevar's rules the variable is called ready",
    "gevar_loaded": "by gevar's rules the data is loaded",
    "nameless": "the node has no name",
    "has_offset": "the node has an output offset",
    "pool_known": "variables can be assigned in this kind of memory",
    "held": "somebody keeps the manager, which is initialised",
    "frees_unmanaged": "by gevar's rules there is device memory to free, and there is no memory manager",
    "has_description": "there is a description to renew with",
    "gevar_form_known": "by gevar's rules the variable is there in the new format already",
    "gevar_form_lost": "by gevar's rules the current description has no address",
    "ready_moves": "the form that is renewed was called ready",
    "name_mapped": "the name is kept under another",
    "graph_recorded": "a graph is recorded for the name, or for the one under which it is kept",
    "moves_graph": "another graph is recorded for the name",
    "refusal": "why gevar's rules refuse the message: 'version', 'number' (too large), 'kind' (of memory), 'key', "
    "'lonely' (an address in one map only), 'block', 'overlap', 'base' (another logic base), 'conflict' (with what is "
    "there); empty where they take it",
    "has_device": "the current device is known, or not asked for",
    "new_changed_names": "the message has names that a graph changed and that are not among its names yet",
    "new_place_holders": "the message has addresses of place holders that are not known yet",
    "new_pool_variables": "the message has variables in memory of a pool that are not known yet",
    "size_shrinks": "the message has fewer assigned bytes than the manager",
    "wire_collision": "two of gevar's keys have one text on the wire",
}
"""What each fact says."""


@dataclass(frozen=True)
class Asked:
    """A step that facts are asked of: as the two models will do it, with the managers that it goes to."""

    step: Step
    ge: ModelManager
    here: Step
    gevar: CarefulManager

    @property
    def res(self) -> Resource:
        """GE's tables, empty ones where there are none."""
        return self.ge.resource or Resource(0)

    @property
    def life(self) -> dict[str, Fact]:
        return {"initialised": self.ge.resource is not None, "gevar_initialised": self.gevar.resource is not None}


def careful(manager: object) -> CarefulManager:
    assert isinstance(manager, CarefulManager)
    return manager


def model(manager: object) -> ModelManager:
    assert isinstance(manager, ModelManager)
    return manager
