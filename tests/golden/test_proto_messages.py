"""Manager states that the running GE wrote: bytes, readable form and our messages agree."""

import base64
import json
from collections.abc import Iterator

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from gevar.proto import var_manager
from gevar.proto.parse import parse_message
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from tests.helpers.descriptors import descriptors
from tests.helpers.shared import shared_path

MESSAGES: dict[str, type[Message]] = {
    "VarManagerToSerial": var_manager.VarManagerInfo,
    "VarDescInfoToSerial": var_manager.VarDescInfo,
}


def written(file: str) -> Iterator[tuple[str, type[Message], bytes, dict[str, object]]]:
    """Yield each message that GE wrote in a file: where it stands, its class, its bytes and its readable form."""
    document = json.loads(shared_path(f"golden/{file}").read_text())
    for sequence in document["sequences"]:
        for number, step in enumerate(sequence["steps"]):
            if "bytes_b64" in step["result"]:
                place = f"{sequence['name']} step {number}"
                data = base64.b64decode(step["result"]["bytes_b64"])
                yield place, MESSAGES[step["op"]], data, step["result"]["message"]


@pytest.mark.parametrize("file", ["var_manager_valid.json", "var_manager.json"])
def test_bytes_and_readable_form_are_one_message(file: str) -> None:
    seen = 0
    for place, cls, data, readable in written(file):
        message = parse_message(cls, data)
        assert json_format.ParseDict(readable, cls()) == message, place
        assert json_format.MessageToDict(message, preserving_proto_field_name=True) == readable, place
        seen += 1
    assert seen >= 50


@pytest.mark.parametrize("file", ["var_manager_valid.json", "var_manager.json"])
def test_map_entries_sorted_by_key_give_the_same_bytes(file: str) -> None:
    for place, cls, data, _ in written(file):
        again = parse_message(cls, data).SerializeToString(deterministic=True)
        assert parse_message(cls, again) == parse_message(cls, data), place
        assert len(again) == len(data), place


@pytest.mark.parametrize("file", ["var_manager_valid.json", "var_manager.json"])
def test_descriptions_come_back_as_they_are(file: str) -> None:
    seen = 0
    for place, cls, data, _ in written(file):
        for td in descriptors(parse_message(cls, data)):
            if "origin_format_for_int" in td.attr:  # every descriptor that GE itself makes
                assert tensor_desc_to_proto(tensor_desc_from_proto(td)) == td, place
                seen += 1
    assert seen >= 600
