"""Wire messages: `ge_ir`, `var_manager`, `task` and `flow_model` hold the message classes, `parse` reads them.

`tensor_descriptor` turns a wire tensor description into a `TensorDesc` and back. Nothing here imports protobuf before
the first message is used.
"""
