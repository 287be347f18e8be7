"""`gevar relocate FILE -o OUT.om`: a model in another folder, its external weights beside it or inside."""

import click

from acl_shim.errors import printable, size_text
from gevar.cli.output import bundle_option, model_output_option, print_json, shared_options, show_log, weight_dir_option
from gevar.session.relocation import KINDS, ExternalWeightKind, relocate_model


@click.command()
@click.argument("file", type=click.Path())
@model_output_option
@weight_dir_option
@click.option(
    "--to-dir", type=click.Path(), metavar="DIR", help="Folder that they go to. Default: weight beside OUT.om."
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(KINDS),
    default="file",
    show_default=True,
    help="What external weights become: files again, or Const or Constant nodes with their bytes in the model.",
)
@bundle_option
@shared_options
def relocate(
    file: str,
    output: str,
    weight_dir: str | None,
    to_dir: str | None,
    kind: ExternalWeightKind,
    bundle: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Write the model FILE to another path, and copy its external weights to the folder weight beside that.

    The bytes are compared with the digests beside them, and what is in the folder already must be equal. Nothing of
    FILE is removed.
    """
    show_log(debug)
    if kind != "file" and to_dir is not None:
        raise click.UsageError(f"--to-dir is for files, and --as {kind} has the bytes in the model; leave one out")
    done = relocate_model(file, output, weight_dir=weight_dir, target_weight_dir=to_dir, kind=kind, as_bundle=bundle)
    if as_json:
        names = [str(path) for path in done.files]
        print_json(
            {"file": file, "output": output, "weights": done.nodes, "files": names, "size_bytes": done.size_bytes}
        )
        return
    where = f"in files of {size_text(done.size_bytes)}" if kind == "file" else "in the model"
    print(f"wrote    {printable(output)}, {done.nodes} external weights {where}")
