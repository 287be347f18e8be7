"""Messages of a flow model: the list of its sub-models, each of which may hold a whole OM file.

Fields about deployment and scheduling (relation, priorities, resources, extension attributes) have no names here;
they stay in the message as unknown fields. Every message of the table below is an attribute of this module
(`flow_model.SubmodelDef`), made at its first use; the stub file beside this one holds the types.

Source: GE source, graph_metadef/proto/flow_model.proto.
"""

from gevar.proto.ge_ir import FILE as GE_IR_FILE
from gevar.proto.pool import ProtoFile, message_class

FILE = ProtoFile(
    name="flow_model.proto",
    package="ge.flow_model.proto",
    messages={
        "FlowModelDef": [(1, "model_name", "string"), (3, "submodel_name", "repeated string")],
        "SubmodelDef": [
            (1, "model_name", "string"),
            (2, "model_type", "string"),
            (3, "om_data", "bytes"),
            (4, "graph", ".ge.proto.GraphDef"),
            (9, "om_data_file_path", "string"),
            (10, "is_builtin_udf", "bool"),
        ],
    },
    enums={},
    imports=(GE_IR_FILE,),
)


def __getattr__(name: str) -> type:
    found = globals()[name] = message_class(FILE, name)
    return found
