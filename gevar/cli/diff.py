"""`gevar diff A B`: what changed between two OM files, or the weights of any two files.

The exit codes are those of diff: 0 nothing changed, 1 something did, 2 trouble.
"""

from dataclasses import asdict

import click

from acl_shim.errors import printable
from gevar.cli.model_changes import ADDED, REMOVED, Change, model_changes, tensor_changes
from gevar.cli.output import bundle_option, print_json, shared_options, show_log
from gevar.cli.run import error_text
from gevar.errors import GevarError
from gevar.om import open_om
from gevar.om.named_tensor import is_tensor_file
from gevar.om.om_file import Kind
from gevar.session.weight_sources import open_weights

_DIFFERENT, _TROUBLE = 1, 2
_SIGNS = {ADDED: "+", REMOVED: "-"}


class _TroubleError(click.ClickException):
    """A file cannot be compared."""

    exit_code = _TROUBLE


@click.command()
@click.argument("first", metavar="A.om", type=click.Path())
@click.argument("second", metavar="B.om", type=click.Path())
@click.option(
    "--weight-dir",
    nargs=2,
    type=click.Path(),
    metavar="DIR DIR",
    help="Folders of external weights. Default: weight beside A and B.",
)
@bundle_option
@shared_options
@click.pass_context
def diff(
    context: click.Context,
    first: str,
    second: str,
    weight_dir: tuple[str, str] | None,
    bundle: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Say what changed from A.om to B.om: nodes, addresses of variables, weights by digest, other parts.

    How a file is written is no change: its dialect, names as numbers, the order and place of bytes. The exit code is 0
    if nothing changed, 1 if something did, 2 if a file cannot be read.

    If A or B is a safetensors file, an index of several, an npz, npy or ONNX file, or one of external weights, only
    weights are compared, by name.
    """
    show_log(debug)
    folders = weight_dir or (None, None)
    kind: Kind = "bundle" if bundle else "model"
    try:
        if is_tensor_file(first) or is_tensor_file(second):
            with (
                open_weights(first, folders[0], bundle=bundle) as before,
                open_weights(second, folders[1], bundle=bundle) as after,
            ):
                changes = list(tensor_changes(before, after))
        else:
            with open_om(first, kind=kind) as one, open_om(second, kind=kind) as other:
                changes = list(model_changes(one, other, first_weights=folders[0], second_weights=folders[1]))
    except (GevarError, OSError, ValueError) as error:
        raise _TroubleError(error_text(error)) from error
    if as_json:
        print_json({"first": first, "second": second, "equal": not changes, "changes": list(map(asdict, changes))})
    else:
        _print(changes)
    if changes:
        context.exit(_DIFFERENT)


def _print(changes: list[Change]) -> None:
    for change in changes:
        texts = [text for text in (change.before, change.after) if text]
        detail = f": {' -> '.join(texts)}" if texts else ""
        sign = _SIGNS.get(change.how, "~")
        print(printable(f"{sign} {change.what:<9} {change.model}: {change.name}{detail}"))
    print(f"{len(changes)} changes" if changes else "equal")
