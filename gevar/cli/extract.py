"""`gevar extract FILE.om -o OUT.safetensors|npz`: the weights of a model in a file that other tools read."""

import click

from acl_shim.errors import size_text
from gevar.cli.output import print_json, printable, shape_text, shared_options, show_log
from gevar.cli.tensor_contents import TensorContent, tensor_contents
from gevar.om import OmFile, open_om
from gevar.om.named_tensor import NamedTensor, write_tensors
from gevar.om.stored_bytes import are_equal


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o", "--output", required=True, type=click.Path(), metavar="OUT", help="The .safetensors or .npz file to write."
)
@click.option("--weight-dir", type=click.Path(), help="Folder of external weights. Default: weight beside FILE.")
@click.option("--bundle", is_flag=True, help="Read the file as a bundle of models.")
@shared_options
def extract(file: str, output: str, weight_dir: str | None, bundle: bool, as_json: bool, debug: bool) -> None:
    """Take the weights out of the OM model FILE: constants, external ones too, and what variables start with.

    Storage formats stay as they are. A type that the other file does not have is written as raw bytes.
    """
    show_log(debug)
    with open_om(file, kind="bundle" if bundle else "model") as om:
        tensors = named_tensors(om, weight_dir)
        raw = write_tensors(output, tensors)
    size_bytes = sum(tensor.data.nbytes for tensor in tensors)
    if as_json:
        rows = [
            {
                "name": tensor.name,
                "dtype": tensor.dtype.name,
                "shape": tensor.shape,
                "size": tensor.data.nbytes,
                "raw": tensor.name in raw,
            }
            for tensor in tensors
        ]
        print_json({"file": file, "output": output, "tensors": rows})
        return
    print(f"wrote    {len(tensors)} tensors, {size_text(size_bytes)}, to {printable(output)}")
    for name, tensor in raw.items():
        print(f"raw      {printable(name)}: bytes of {_raw_text(tensor)}")


def named_tensors(om: OmFile, weight_dir: str | None) -> list[NamedTensor]:
    """Return the tensors of a file that have bytes, by unique names.

    A tensor that several models of the file have is there once; one that only has the name of another gets the name
    of its model in front.

    Raises
    ------
    ModelFileError, VariableError, LoadError
        As `gevar.cli.tensor_contents.tensor_contents`.
    """
    found: dict[str, NamedTensor] = {}
    for content in tensor_contents(om, weight_dir):
        if content.data is None:
            continue
        name, number = content.name, 1
        tensor = _named(content, name)
        while (known := found.get(tensor.name)) is not None and not _same(known, tensor):
            suffix = f"/{number}" if number > 1 else ""
            tensor = _named(content, f"{content.tensor.model.name}/{name}{suffix}")
            number += 1
        found.setdefault(tensor.name, tensor)
    return list(found.values())


def _named(content: TensorContent, name: str) -> NamedTensor:
    assert content.data is not None  # the caller looked
    desc = content.tensor.desc
    return NamedTensor(name, desc.dtype, desc.shape, content.data)


def _same(one: NamedTensor, other: NamedTensor) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and are_equal(one.data, other.data)


def _raw_text(tensor: NamedTensor) -> str:
    return f"{tensor.dtype.name} {shape_text(tensor.shape)}"
