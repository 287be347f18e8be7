"""One model of an OM file: its partitions, and what is decoded from them when it is asked for."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from google.protobuf.message import DecodeError

from gevar.errors import ModelFileError
from gevar.graph import Model
from gevar.om.allowance import CONST_BYTES, VARIABLE_BYTES, Allowance, FileAllowance
from gevar.om.attr_names import AttrNames, AttrTable, attr_table
from gevar.om.attr_value import PlainValue, plain_value
from gevar.om.consts import ConstNode, const_node
from gevar.om.graph import OmGraph, load_order, om_graphs
from gevar.om.inout_info import InOutInfo, read_inout_info
from gevar.om.kernel_store import CUSTOM_OP_ITEM_MAGIC, KERNEL_ITEM_MAGIC, KernelStore, read_kernel_store
from gevar.om.model_def import DecodedModelDef, decode_head, decode_model_def, graph_parts
from gevar.om.node import CONST_TYPES, VARIABLE_TYPES, NodeReader, OmNode
from gevar.om.op_def import WHAT, merge_piece, put_back, whole_op
from gevar.om.partition import Partition, PartitionType
from gevar.om.so_store import SoItem, read_so_store
from gevar.om.source import ByteSource
from gevar.proto import ge_ir, task
from gevar.status import ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED as _PARTITION_FAILED
from gevar.status import ACL_ERROR_GE_EXEC_LOAD_TASK_PARTITION_FAILED


class OmModel:
    """A model of an OM file. MODEL_DEF is decoded once, at the first use of anything in it.

    Everything that decodes raises `ModelFileError` with the place of the damage, and `StateError` after the file was
    closed; what was decoded before stays usable.

    Attributes
    ----------
    source : ByteSource
        The OM file (or nested OM) that `Partition.file_offset` counts in.
    index : int
        Place among the models of the file; 0 is the root.
    partitions : list of Partition
        In table order.

    Thread safety: any thread may read.
    """

    def __init__(
        self,
        source: ByteSource,
        index: int,
        partitions: list[Partition],
        root: "OmModel | None",
        *,
        allowance: FileAllowance,
        mobile: bool = False,
        weights_elsewhere: bool = False,
    ) -> None:
        self.source = source
        self.index = index
        self.partitions = partitions
        self._root = root
        self._mobile = mobile
        self._weights_elsewhere = weights_elsewhere
        self._file_allowance = allowance
        stored = self.partition(PartitionType.MODEL_DEF)
        allowance.add(0 if stored is None else stored.mem_size)

    def partition(self, number: PartitionType) -> Partition | None:
        """Return the first partition of a type, None without one (in dialect M: for every type from 3 on)."""
        if self._mobile and number > PartitionType.TASK_INFO:
            return None
        return next((partition for partition in self.partitions if partition.type == number), None)

    def partition_source(self, number: PartitionType) -> ByteSource | None:
        """Return the bytes of the first partition of a type, None without one."""
        found = self.partition(number)
        return None if found is None else self.source.range(found.file_offset, found.mem_size, number.name)

    @property
    def weights(self) -> Partition | None:
        """The weights partition (WEIGHTS_DATA)."""
        return self.partition(PartitionType.WEIGHTS_DATA)

    @property
    def name(self) -> str:
        """Name in the model definition."""
        return self._decoded.message.name

    @property
    def version(self) -> int:
        """Version in the model definition."""
        return self._decoded.message.version

    @property
    def custom_version(self) -> str:
        """Platform version in the model definition."""
        return self._decoded.message.custom_version

    @property
    def is_compressed(self) -> bool:
        """Whether the model has a table of attribute names of its own."""
        return self._own_table is not None

    @property
    def attrs(self) -> Mapping[str, ge_ir.AttrDef]:
        """Attributes of the model itself, without `tasks`; do not change them."""
        return self._decoded.message.attr

    def attr(self, name: str) -> PlainValue | None:
        """Return the plain value of a model attribute, None where it is absent or of another kind."""
        return plain_value(self.attrs[name]) if name in self.attrs else None

    def int_attr(self, name: str, default: int = 0) -> int:
        """Return a numeric model attribute; an absent one reads `default`, as in GE."""
        return self.attrs[name].i if name in self.attrs else default

    def model_def(self) -> ge_ir.ModelDef:
        """Return the whole model definition with plain attribute names; a new message at each call.

        The attribute `tasks` is left out, it repeats the TASK_INFO partition. Inline data that everything else leaves
        in the file is read in, so the message may be large.
        """
        self.check_decodes()
        try:
            message = ge_ir.ModelDef.FromString(self._decoded.message.SerializeToString())
        except (DecodeError, RecursionError) as error:  # nested deeper than any operator alone
            raise self._fail(f"it does not decode: {error}") from error
        for (graph_index, op_index), apart in self._decoded.apart.items():
            put_back(message.graph[graph_index].op[op_index], self._model_def_source, apart)
        restore = self._names.restorer()
        for graph in message.graph:
            for op in graph.op:
                restore(op)
        return message

    def graph_ir(self) -> Model:
        """Return the whole model definition as a graph to work with, with plain attribute names; new at each call.

        Operators are decoded one by one, so the model never lies in memory as a message too. What `model_def` says of
        `tasks` and of inline data is true here.

        Raises
        ------
        ModelFileError
            A part does not decode, or a compressed name has no place in the tables.
        GraphError
            A graph contradicts itself, as `Model.from_proto`.
        """
        source = self._model_def_source
        try:
            allowance = self._allowance.anew()
            head = decode_head(source, allowance)
            names = self._attr_names(attr_table(head.attr, self._fail, allowance))
            parts = (
                (graph, (whole_op(source, names, op, apart, self._fail) for op, apart in ops))
                for graph, ops in graph_parts(source, allowance)
            )
            return Model.from_parts(head, parts, allowance.take)
        except ModelFileError as error:
            error.status = error.status or _PARTITION_FAILED
            raise

    @cached_property
    def graphs(self) -> tuple[OmGraph, ...]:
        """The root graph and then its subgraphs, as stored."""
        reader = NodeReader(self._model_def_source, self._names, self._allowance, self._fail)
        return om_graphs(self._decoded, reader)

    def check_decodes(self) -> None:
        """Decode all of every operator, and forget it; else that is done when one is asked for.

        Raises
        ------
        ModelFileError
            One does not decode.
        """
        for graph in self.graphs:
            for node in graph.nodes:
                node.check_decodes()

    def nodes(self) -> Iterator[OmNode]:
        """Yield the nodes of all graphs in load order, a subgraph's directly after the node that owns it."""
        return load_order(self.graphs)

    def variable_nodes(self) -> list[OmNode]:
        """Return the nodes of type Variable, Constant, FileConstant and ConstPlaceHolder in load order.

        Raises
        ------
        ModelFileError
            What they stand for would take more memory than the model may.

        Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc.
        """
        found = [node for node in self.nodes() if node.type in VARIABLE_TYPES]
        self._allowance.check(VARIABLE_BYTES * len(found), f"{len(found)} variables")
        return found

    def const_nodes(self) -> list[ConstNode]:
        """Return the nodes of type Const and Constant, graph by graph as stored, with the place of their bytes.

        Raises
        ------
        ModelFileError
            The bytes of one do not lie inside the weights partition, a compressed name has no place in the tables, or
            they would take more memory than the model may.
        """
        nodes = [node for graph in self.graphs for node in graph.nodes if node.type in CONST_TYPES]
        self._allowance.check(CONST_BYTES * len(nodes), f"{len(nodes)} constants")
        return [self.const_node(node) for node in nodes]

    def const_node(self, node: OmNode) -> ConstNode:
        """Return the place of the bytes of one node of type Const or Constant of this model."""
        weights = self.partition_source(PartitionType.WEIGHTS_DATA)
        return const_node(node, self._model_def_source, weights, weights_elsewhere=self._weights_elsewhere)

    def attr_name_rounds(self, *, exact: bool = True) -> int:
        """Return the largest number of tables that any attribute name of an operator goes through: 0, 1 or 2.

        Parameters
        ----------
        exact
            Whether every operator is looked at; else it is what the tables allow.

        Raises
        ------
        ModelFileError
            A compressed name has no place in the tables.
        """
        if not exact:
            return self._names.most_rounds
        return max((node.attr_name_rounds() for graph in self.graphs for node in graph.nodes), default=0)

    def kernel_store(self, number: PartitionType = PartitionType.TBE_KERNELS) -> KernelStore | None:
        """Return the items of TBE_KERNELS, CUST_AICPU_KERNELS or CUSTOM_OPS, None without that partition."""
        found = self.partition(number)
        if found is None:
            return None
        magic = CUSTOM_OP_ITEM_MAGIC if number == PartitionType.CUSTOM_OPS else KERNEL_ITEM_MAGIC
        return read_kernel_store(self.source, found.file_offset, found.mem_size, number.name, magic=magic)

    def so_items(self) -> tuple[SoItem, ...]:
        """Return the shared objects kept in the model; none without a SO_BINS partition."""
        found = self.partition(PartitionType.SO_BINS)
        return () if found is None else read_so_store(self.source, found.file_offset, found.mem_size)

    def inout_info(self) -> InOutInfo | None:
        """Return the inputs and outputs that MODEL_INOUT_INFO lists, None without that partition."""
        found = self.partition(PartitionType.MODEL_INOUT_INFO)
        return None if found is None else read_inout_info(self.source, found.file_offset, found.mem_size)

    def task_def(self) -> task.ModelTaskDef | None:
        """Return the decoded TASK_INFO partition, None without one; in dialect M it may hold another format."""
        source = self.partition_source(PartitionType.TASK_INFO)
        if source is None:
            return None
        message = task.ModelTaskDef()
        try:
            merge_piece(message, source, 0, source.size_bytes, PartitionType.TASK_INFO.name)
        except ModelFileError as error:
            error.status = ACL_ERROR_GE_EXEC_LOAD_TASK_PARTITION_FAILED
            raise
        return message

    @cached_property
    def _model_def_source(self) -> ByteSource:
        source = self.partition_source(PartitionType.MODEL_DEF)
        if source is None:
            raise self.source.error(0, WHAT, f"model {self.index} has no MODEL_DEF partition", status=_PARTITION_FAILED)
        return source

    @cached_property
    def _decoded(self) -> DecodedModelDef:
        try:
            return decode_model_def(self._model_def_source, self._allowance)
        except ModelFileError as error:
            error.status = error.status or _PARTITION_FAILED
            raise

    @cached_property
    def _own_table(self) -> AttrTable | None:
        return attr_table(self.attrs, self._fail, self._allowance)

    @cached_property
    def _names(self) -> AttrNames:
        return self._attr_names(self._own_table)

    def _attr_names(self, own_table: AttrTable | None) -> AttrNames:
        root_table = None if self._root is None else self._root._own_table
        tables = tuple(table for table in (own_table, root_table) if table is not None)
        return AttrNames(tables, self._fail, self._allowance)

    @cached_property
    def _allowance(self) -> Allowance:
        return Allowance(self._file_allowance.share(self._model_def_source.size_bytes), self._fail)

    def _fail(self, reason: str) -> ModelFileError:
        return self._model_def_source.error(0, WHAT, reason, status=_PARTITION_FAILED)
