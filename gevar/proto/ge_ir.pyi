from collections.abc import Iterable, Mapping

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.message import Message

from gevar.proto.pool import ProtoFile

FILE: ProtoFile

class ShapeDef(Message):
    @property
    def dim(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        dim: Iterable[int] | None = ...,
    ) -> None: ...

class TensorDescriptor(Message):
    name: str
    dtype: int
    @property
    def shape(self) -> ShapeDef: ...
    layout: str
    @property
    def attr(self) -> MessageMap[str, AttrDef]: ...
    @property
    def attr_groups(self) -> AttrGroups: ...
    has_out_attr: bool
    size: int
    weight_size: int
    reuse_input: bool
    output_tensor: bool
    device_type: str
    input_tensor: bool
    real_dim_cnt: int
    reuse_input_index: int
    data_offset: int
    cmps_size: int
    cmps_tab: str
    cmps_tab_offset: int
    def __init__(
        self,
        *,
        name: str | None = ...,
        dtype: int | None = ...,
        shape: ShapeDef | None = ...,
        layout: str | None = ...,
        attr: Mapping[str, AttrDef] | None = ...,
        attr_groups: AttrGroups | None = ...,
        has_out_attr: bool | None = ...,
        size: int | None = ...,
        weight_size: int | None = ...,
        reuse_input: bool | None = ...,
        output_tensor: bool | None = ...,
        device_type: str | None = ...,
        input_tensor: bool | None = ...,
        real_dim_cnt: int | None = ...,
        reuse_input_index: int | None = ...,
        data_offset: int | None = ...,
        cmps_size: int | None = ...,
        cmps_tab: str | None = ...,
        cmps_tab_offset: int | None = ...,
    ) -> None: ...

class TensorDef(Message):
    @property
    def desc(self) -> TensorDescriptor: ...
    data: bytes
    def __init__(
        self,
        *,
        desc: TensorDescriptor | None = ...,
        data: bytes | None = ...,
    ) -> None: ...

class NamedAttrs(Message):
    name: str
    @property
    def attr(self) -> MessageMap[str, AttrDef]: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, AttrDef] | None = ...,
    ) -> None: ...

class AttrDef(Message):
    @property
    def list(self) -> AttrDef_ListValue: ...
    s: bytes
    i: int
    f: float
    b: bool
    bt: bytes
    @property
    def func(self) -> NamedAttrs: ...
    @property
    def td(self) -> TensorDescriptor: ...
    @property
    def t(self) -> TensorDef: ...
    @property
    def g(self) -> GraphDef: ...
    @property
    def list_list_int(self) -> AttrDef_ListListInt: ...
    dt: int
    @property
    def list_list_float(self) -> AttrDef_ListListFloat: ...
    expression: bytes
    def __init__(
        self,
        *,
        list: AttrDef_ListValue | None = ...,
        s: bytes | None = ...,
        i: int | None = ...,
        f: float | None = ...,
        b: bool | None = ...,
        bt: bytes | None = ...,
        func: NamedAttrs | None = ...,
        td: TensorDescriptor | None = ...,
        t: TensorDef | None = ...,
        g: GraphDef | None = ...,
        list_list_int: AttrDef_ListListInt | None = ...,
        dt: int | None = ...,
        list_list_float: AttrDef_ListListFloat | None = ...,
        expression: bytes | None = ...,
    ) -> None: ...

class AttrDef_ListValue(Message):
    @property
    def s(self) -> RepeatedScalarFieldContainer[bytes]: ...
    @property
    def i(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def f(self) -> RepeatedScalarFieldContainer[float]: ...
    @property
    def b(self) -> RepeatedScalarFieldContainer[bool]: ...
    @property
    def bt(self) -> RepeatedScalarFieldContainer[bytes]: ...
    @property
    def td(self) -> RepeatedCompositeFieldContainer[TensorDescriptor]: ...
    @property
    def t(self) -> RepeatedCompositeFieldContainer[TensorDef]: ...
    @property
    def g(self) -> RepeatedCompositeFieldContainer[GraphDef]: ...
    @property
    def na(self) -> RepeatedCompositeFieldContainer[NamedAttrs]: ...
    @property
    def dt(self) -> RepeatedScalarFieldContainer[int]: ...
    val_type: int
    def __init__(
        self,
        *,
        s: Iterable[bytes] | None = ...,
        i: Iterable[int] | None = ...,
        f: Iterable[float] | None = ...,
        b: Iterable[bool] | None = ...,
        bt: Iterable[bytes] | None = ...,
        td: Iterable[TensorDescriptor] | None = ...,
        t: Iterable[TensorDef] | None = ...,
        g: Iterable[GraphDef] | None = ...,
        na: Iterable[NamedAttrs] | None = ...,
        dt: Iterable[int] | None = ...,
        val_type: int | None = ...,
    ) -> None: ...

class AttrDef_ListListInt(Message):
    @property
    def list_list_i(self) -> RepeatedCompositeFieldContainer[AttrDef_ListListInt_ListInt]: ...
    def __init__(
        self,
        *,
        list_list_i: Iterable[AttrDef_ListListInt_ListInt] | None = ...,
    ) -> None: ...

class AttrDef_ListListInt_ListInt(Message):
    @property
    def list_i(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(
        self,
        *,
        list_i: Iterable[int] | None = ...,
    ) -> None: ...

class AttrDef_ListListFloat(Message):
    @property
    def list_list_f(self) -> RepeatedCompositeFieldContainer[AttrDef_ListListFloat_ListFloat]: ...
    def __init__(
        self,
        *,
        list_list_f: Iterable[AttrDef_ListListFloat_ListFloat] | None = ...,
    ) -> None: ...

class AttrDef_ListListFloat_ListFloat(Message):
    @property
    def list_f(self) -> RepeatedScalarFieldContainer[float]: ...
    def __init__(
        self,
        *,
        list_f: Iterable[float] | None = ...,
    ) -> None: ...

class AttributeDef(Message):
    s: bytes
    i: int
    f: float
    b: bool
    bt: bytes
    def __init__(
        self,
        *,
        s: bytes | None = ...,
        i: int | None = ...,
        f: float | None = ...,
        b: bool | None = ...,
        bt: bytes | None = ...,
    ) -> None: ...

class AttrGroups(Message):
    @property
    def other_group_def(self) -> OtherGroupDef: ...
    @property
    def attr_group_def(self) -> RepeatedCompositeFieldContainer[AttrGroupDef]: ...
    def __init__(
        self,
        *,
        other_group_def: OtherGroupDef | None = ...,
        attr_group_def: Iterable[AttrGroupDef] | None = ...,
    ) -> None: ...

class OtherGroupDef(Message):
    @property
    def attr(self) -> MessageMap[str, AttributeDef]: ...
    def __init__(
        self,
        *,
        attr: Mapping[str, AttributeDef] | None = ...,
    ) -> None: ...

class AttrGroupDef(Message):
    @property
    def tensor_attr_group(self) -> TensorDescAttrGroupsDef: ...
    @property
    def shape_env_attr_group(self) -> ShapeEnvAttrGroupsDef: ...
    def __init__(
        self,
        *,
        tensor_attr_group: TensorDescAttrGroupsDef | None = ...,
        shape_env_attr_group: ShapeEnvAttrGroupsDef | None = ...,
    ) -> None: ...

class TensorDescAttrGroupsDef(Message):
    @property
    def origin_symbol_shape(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def symbolic_value(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        origin_symbol_shape: Iterable[str] | None = ...,
        symbolic_value: Iterable[str] | None = ...,
    ) -> None: ...

class ShapeEnvAttrGroupsDef(Message):
    @property
    def symbol_to_value(self) -> ScalarMap[str, int]: ...
    @property
    def value_to_symbol(self) -> MessageMap[int, ShapeEnvAttrGroupsDef_Symbols]: ...
    @property
    def symbol_to_source(self) -> MessageMap[str, ShapeEnvAttrGroupsDef_Source]: ...
    @property
    def replacements(self) -> MessageMap[str, ShapeEnvAttrGroupsDef_Replacement]: ...
    @property
    def symbol_check_infos(self) -> RepeatedCompositeFieldContainer[ShapeEnvAttrGroupsDef_CheckInfo]: ...
    @property
    def symbol_assert_infos(self) -> RepeatedCompositeFieldContainer[ShapeEnvAttrGroupsDef_CheckInfo]: ...
    @property
    def shape_setting(self) -> ShapeEnvAttrGroupsDef_Setting: ...
    unique_sym_id: int
    def __init__(
        self,
        *,
        symbol_to_value: Mapping[str, int] | None = ...,
        value_to_symbol: Mapping[int, ShapeEnvAttrGroupsDef_Symbols] | None = ...,
        symbol_to_source: Mapping[str, ShapeEnvAttrGroupsDef_Source] | None = ...,
        replacements: Mapping[str, ShapeEnvAttrGroupsDef_Replacement] | None = ...,
        symbol_check_infos: Iterable[ShapeEnvAttrGroupsDef_CheckInfo] | None = ...,
        symbol_assert_infos: Iterable[ShapeEnvAttrGroupsDef_CheckInfo] | None = ...,
        shape_setting: ShapeEnvAttrGroupsDef_Setting | None = ...,
        unique_sym_id: int | None = ...,
    ) -> None: ...

class ShapeEnvAttrGroupsDef_Symbols(Message):
    @property
    def symbols(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        symbols: Iterable[str] | None = ...,
    ) -> None: ...

class ShapeEnvAttrGroupsDef_Source(Message):
    input_data_idx: int
    dim_idx: int
    def __init__(
        self,
        *,
        input_data_idx: int | None = ...,
        dim_idx: int | None = ...,
    ) -> None: ...

class ShapeEnvAttrGroupsDef_Replacement(Message):
    replace_expr: str
    rank: int
    def __init__(
        self,
        *,
        replace_expr: str | None = ...,
        rank: int | None = ...,
    ) -> None: ...

class ShapeEnvAttrGroupsDef_CheckInfo(Message):
    expr: str
    file: str
    line: int
    dfx: str
    def __init__(
        self,
        *,
        expr: str | None = ...,
        file: str | None = ...,
        line: int | None = ...,
        dfx: str | None = ...,
    ) -> None: ...

class ShapeEnvAttrGroupsDef_Setting(Message):
    specialize_zero_one: bool
    dynamic_mode: int
    def __init__(
        self,
        *,
        specialize_zero_one: bool | None = ...,
        dynamic_mode: int | None = ...,
    ) -> None: ...

class OpDef(Message):
    name: str
    type: str
    @property
    def input(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def attr(self) -> MessageMap[str, AttrDef]: ...
    @property
    def attr_groups(self) -> AttrGroups: ...
    has_out_attr: bool
    id: int
    stream_id: int
    @property
    def input_name(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def src_name(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def src_index(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def dst_name(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def dst_index(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def input_i(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def output_i(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def workspace(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def workspace_bytes(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def is_input_const(self) -> RepeatedScalarFieldContainer[bool]: ...
    @property
    def input_desc(self) -> RepeatedCompositeFieldContainer[TensorDescriptor]: ...
    @property
    def output_desc(self) -> RepeatedCompositeFieldContainer[TensorDescriptor]: ...
    @property
    def subgraph_name(self) -> RepeatedScalarFieldContainer[str]: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        type: str | None = ...,
        input: Iterable[str] | None = ...,
        attr: Mapping[str, AttrDef] | None = ...,
        attr_groups: AttrGroups | None = ...,
        has_out_attr: bool | None = ...,
        id: int | None = ...,
        stream_id: int | None = ...,
        input_name: Iterable[str] | None = ...,
        src_name: Iterable[str] | None = ...,
        src_index: Iterable[int] | None = ...,
        dst_name: Iterable[str] | None = ...,
        dst_index: Iterable[int] | None = ...,
        input_i: Iterable[int] | None = ...,
        output_i: Iterable[int] | None = ...,
        workspace: Iterable[int] | None = ...,
        workspace_bytes: Iterable[int] | None = ...,
        is_input_const: Iterable[bool] | None = ...,
        input_desc: Iterable[TensorDescriptor] | None = ...,
        output_desc: Iterable[TensorDescriptor] | None = ...,
        subgraph_name: Iterable[str] | None = ...,
    ) -> None: ...

class GraphDef(Message):
    name: str
    @property
    def input(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def output(self) -> RepeatedScalarFieldContainer[str]: ...
    @property
    def op(self) -> RepeatedCompositeFieldContainer[OpDef]: ...
    @property
    def attr(self) -> MessageMap[str, AttrDef]: ...
    @property
    def attr_groups(self) -> AttrGroups: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        input: Iterable[str] | None = ...,
        output: Iterable[str] | None = ...,
        op: Iterable[OpDef] | None = ...,
        attr: Mapping[str, AttrDef] | None = ...,
        attr_groups: AttrGroups | None = ...,
    ) -> None: ...

class ModelDef(Message):
    name: str
    version: int
    custom_version: str
    @property
    def graph(self) -> RepeatedCompositeFieldContainer[GraphDef]: ...
    @property
    def attr(self) -> MessageMap[str, AttrDef]: ...
    @property
    def attr_groups(self) -> AttrGroups: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        version: int | None = ...,
        custom_version: str | None = ...,
        graph: Iterable[GraphDef] | None = ...,
        attr: Mapping[str, AttrDef] | None = ...,
        attr_groups: AttrGroups | None = ...,
    ) -> None: ...
