"""Messages of package domi: the task list of a model.

Only the fields that loading needs have names; the others stay in the message as unknown fields. Every message of the
table below is an attribute of this module (`task.ModelTaskDef`), made at its first use; the stub file beside this one
holds the types.

Source: GE source, graph_metadef/proto/task.proto.
"""

from gevar.proto.pool import ProtoFile, message_class

FILE = ProtoFile(
    name="task.proto",
    package="domi",
    messages={
        "ModelTaskDef": [
            (1, "version", "string"),
            (9, "attr", "map<string, string>"),
            (10, "task", "repeated TaskDef"),
            (11, "memory_size", "uint64"),
            (12, "stream_num", "uint32"),
            (13, "event_num", "uint32"),
            (14, "weight_size", "uint64"),
            (15, "op", "repeated bytes"),
            (16, "base_addr", "uint64"),
            (17, "weight_addr", "uint64"),
            (18, "batch_num", "uint32"),
        ],
        "TaskDef": [(1, "id", "uint32"), (2, "type", "uint32"), (10, "stream_id", "uint32")],
    },
    enums={},
)


def __getattr__(name: str) -> type:
    found = globals()[name] = message_class(FILE, name)
    return found
