"""`gevar extract FILE -o OUT.safetensors|npz`: the weights of a model in a file that other tools read."""

import click

from acl_shim.errors import printable, size_text
from gevar.cli.output import bundle_option, print_json, shape_text, shared_options, show_log, weight_dir_option
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.session.weight_sources import open_weights


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o", "--output", required=True, type=click.Path(), metavar="OUT", help="The .safetensors or .npz file to write."
)
@weight_dir_option
@bundle_option
@shared_options
def extract(file: str, output: str, weight_dir: str | None, bundle: bool, as_json: bool, debug: bool) -> None:
    """Take the weights out of FILE: of an OM model constants, external ones too, and what variables start with.

    FILE may also be a safetensors file, an index of several, an npz, npy or ONNX file, or one of external weights.

    Storage formats stay as they are. A type that the other file does not have is written as raw bytes.
    """
    show_log(debug)
    with open_weights(file, weight_dir, bundle=bundle) as source:
        tensors = source.tensors()
        raw = write_tensors(output, tensors)
    size_bytes = sum(tensor.data.nbytes for tensor in tensors)
    if as_json:
        rows = [
            {
                "name": tensor.name,
                "dtype": tensor.dtype.name,
                "shape": tensor.shape,
                "size_bytes": tensor.data.nbytes,
                "raw": tensor.name in raw,
            }
            for tensor in tensors
        ]
        print_json({"file": file, "output": output, "tensors": rows})
        return
    print(f"wrote    {len(tensors)} tensors, {size_text(size_bytes)}, to {printable(output)}")
    for name, tensor in raw.items():
        print(f"raw      {printable(name)}: bytes of {_raw_text(tensor)}")


def _raw_text(tensor: NamedTensor) -> str:
    return f"{tensor.dtype.name} {shape_text(tensor.shape)}"
