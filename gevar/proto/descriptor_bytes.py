"""Tensor descriptions to bytes and back, each distinct one once: a model has few for its many variables."""

from collections.abc import Iterable

from gevar.proto.encoding import varint
from gevar.proto.tensor_descriptor import tensor_desc_from_proto, tensor_desc_to_proto
from gevar.types.tensor_desc import TensorDesc


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

    def encode(self, desc: TensorDesc) -> str:
        """Return a description in wire form; raises as `encode_all`."""
        return self.encode_all((desc,))[0]

    def encode_all(self, descs: Iterable[TensorDesc]) -> list[str]:
        """Return many descriptions in wire form.

        Raises
        ------
        ModelFileError
            `attr_groups` is no message `AttrGroups`.
        ValueError
            A number or text does not fit its field.
        """
        known, by_fields = self.known, self._by_fields
        last_fields: tuple[object, ...] = ()
        last, texts = "", []
        for desc in descs:
            if id(desc) in known:
                texts.append(known[id(desc)])
                continue
            if desc.attrs:
                known[id(desc)] = text = _delimited(desc)
                texts.append(text)
                continue
            fields = (  # all but the attributes, which cannot be hashed; `attrgetter` takes three times as long
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
            if fields != last_fields:  # neighbours often are alike, and to compare is faster than to hash
                last_fields, last = fields, by_fields.get(fields) or by_fields.setdefault(fields, _delimited(desc))
            known[id(desc)] = last
            texts.append(last)
        return texts


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
