"""`gevar build SOURCE -o OUT.om`: an OM model from the weights of a file."""

from pathlib import Path
from typing import cast

import click

from acl_shim.errors import printable, size_text
from gevar.cli.output import bundle_option, model_output_option, print_json, shared_options, show_log
from gevar.om.external_weights_writer import ExternalWeightMode
from gevar.om.weights_model import KINDS, WeightKind, weights_model
from gevar.session.weight_sources import open_weights


@click.command()
@click.argument("source", type=click.Path())
@model_output_option
@click.option(
    "--external-weight",
    type=click.Choice(["0", "1", "2"]),
    default="0",
    show_default=True,
    help="Constants: 0 inside the model, 1 each content in a file, 2 all in one file, in the folder weight beside it.",
)
@click.option(
    "--as", "kind", type=click.Choice(KINDS), default="const", show_default=True, help="What a weight becomes."
)
@click.option("--name", default=None, help="Name of the model. Default: that of the source without its ending.")
@click.option("--compress", is_flag=True, help="Write attribute names as numbers, as ATC does.")
@bundle_option
@shared_options
def build(
    source: str,
    output: str,
    external_weight: str,
    kind: WeightKind,
    name: str | None,
    compress: bool,
    bundle: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Make an OM model from the weights in SOURCE: safetensors, an index of several, npz, npy, ONNX, OM or external.

    Each tensor becomes a node of the model and one of its outputs. The model computes nothing: it is for trying out
    how weights are stored, loaded and shared.
    """
    show_log(debug)
    if kind == "variable" and external_weight != "0":
        raise click.UsageError("--external-weight is for constants, and --as variable makes none; leave one out")
    with open_weights(source, bundle=bundle) as weights:
        tensors = weights.tensors()
        net = weights_model(name or Path(source).stem, tensors, kind)
        net.write(output, compress=compress, external_weight=cast(ExternalWeightMode, int(external_weight)))
    weight_bytes, file_bytes = sum(tensor.data.nbytes for tensor in tensors), Path(output).stat().st_size
    if as_json:
        rows = [
            {"name": tensor.name, "dtype": tensor.dtype.name, "shape": tensor.shape, "size_bytes": tensor.data.nbytes}
            for tensor in tensors
        ]
        print_json({"file": output, "size_bytes": file_bytes, "kind": kind, "tensors": rows})
        return
    print(f"read     {len(tensors)} tensors, {size_text(weight_bytes)}, from {printable(source)}")
    print(f"wrote    {printable(output)}, {size_text(file_bytes)}")
