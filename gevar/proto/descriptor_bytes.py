"""Tensor descriptions to bytes and back, each distinct one once: a model has few for its many variables."""

from gevar.proto.encoding import varint
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types.tensor_desc import TensorDesc


def _fields(desc: TensorDesc) -> tuple[object, ...]:
    """All fields but the attributes, which cannot be hashed; `attrgetter` takes three times as long."""
    return (
        desc.dtype,
        desc.format,
        desc.shape,
        desc.origin_format,
        desc.origin_shape,
        desc.origin_dtype,
        desc.size,
        desc.weight_size,
        desc.data_offset,
        desc.real_dim_cnt,
        desc.reuse_input,
        desc.reuse_input_index,
        desc.output_tensor,
        desc.input_tensor,
        desc.device_type,
        desc.cmps_size,
        desc.cmps_tab,
        desc.cmps_tab_offset,
        desc.attr_groups,
    )


class DescriptorEncoder:
    """Writes descriptions as the message `TensorDescriptor` with its length before it, in canonical form.

    The wire form is that of `gevar.proto.encoding`, a character for each byte.

    Attributes
    ----------
    known : dict
        What was written, by the `id` of the description: a look-up takes less than a call.

    The descriptions must live as long as the encoder. Thread safety: none; make one for each thread.
    """

    def __init__(self) -> None:
        self.known: dict[int, str] = {}
        self._by_fields: dict[tuple[object, ...], str] = {}
        self._last_fields: tuple[object, ...] = ()
        self._last = ""

    def encode(self, desc: TensorDesc) -> str:
        """Return a description in wire form.

        Raises
        ------
        ModelFileError
            `attr_groups` is no message `AttrGroups`.
        ValueError
            A number or text does not fit its field.
        """
        known = self.known.get(id(desc))
        if known is not None:
            return known
        if desc.attrs:
            known = _delimited(desc)
        else:
            fields = _fields(desc)
            if fields == self._last_fields:  # neighbours often are alike, and to compare is faster than to hash
                known = self._last
            else:
                known = self._by_fields.get(fields) or self._by_fields.setdefault(fields, _delimited(desc))
                self._last_fields, self._last = fields, known
        self.known[id(desc)] = known
        return known


def _delimited(desc: TensorDesc) -> str:
    data = tensor_desc_to_proto(desc).SerializeToString(deterministic=True)
    return varint(len(data)) + data.decode("latin-1")


class DescriptorDecoder:
    """Reads descriptions from the bytes of the message `TensorDescriptor`; equal bytes give one description.

    Attributes
    ----------
    known : dict
        What was read, by its bytes: a look-up takes less than a call.

    Thread safety: none; make one for each thread.
    """

    def __init__(self) -> None:
        self.known: dict[bytes, TensorDesc] = {}

    def decode(self, data: bytes) -> TensorDesc:
        """Return the description in a message.

        Raises
        ------
        ModelFileError
            The bytes are no `TensorDescriptor`, or an attribute of it is not UTF-8 text.
        """
        known = self.known.get(data)
        if known is None:
            from gevar.proto.ge_ir import TensorDescriptor
            from gevar.proto.parse import parse_message

            known = self.known[data] = tensor_desc_from_proto(parse_message(TensorDescriptor, data))
        return known
