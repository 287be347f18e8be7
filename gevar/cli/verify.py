"""`gevar verify FILE... [--digests SIDE]`: whether the bytes of weights can be read, and are those they should be."""

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from acl_shim.errors import printable, size_text
from gevar.cli.output import bundle_option, print_json, shared_options, show_log, weight_dir_option
from gevar.errors import LoadError, ModelFileError, VariableError
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import StreamedBytes, chunks_of, digest_of
from gevar.om.weight_digests import RegionDigest, read_digests
from gevar.session.weight_sources import open_weights

_FINDING = 1


@dataclass(frozen=True, slots=True)
class _Checked:
    """What was found of a tensor or region; `reason` is empty when it is sound."""

    file: str
    name: str
    size_bytes: int
    reason: str = ""


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE…")
@click.option("--digests", type=click.Path(), metavar="SIDE", help="Digests of regions, as export writes them.")
@weight_dir_option
@bundle_option
@shared_options
@click.pass_context
def verify(
    context: click.Context,
    files: tuple[str, ...],
    digests: str | None,
    weight_dir: str | None,
    bundle: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Read the weights of FILE… whole: OM, safetensors (or an index of several), npz, npy, ONNX, external weights.

    With --digests every region that SIDE lists is compared with its digest; its files lie beside it, and FILE may be
    one of them. The exit code is 1 if anything is damaged.
    """
    show_log(debug)
    checked: list[_Checked] = []
    listed: set[Path] = set()
    if digests is not None:
        folder, regions = Path(digests).resolve().parent, read_digests(digests)
        listed = {folder / region.file for region in regions}
        checked += [_region(folder, region) for region in regions]
    for file in files:
        if Path(file).parent.resolve() / Path(file).name not in listed:
            checked += _tensors(file, weight_dir, bundle)
    bad = [one for one in checked if one.reason]
    if as_json:
        size_bytes = sum(one.size_bytes for one in checked)
        print_json({"checked": len(checked), "size_bytes": size_bytes, "damaged": [asdict(one) for one in bad]})
    else:
        for one in bad:
            print(printable(f"damaged  {one.file}: {one.name}: {one.reason}"))
        sound = sum(one.size_bytes for one in checked if not one.reason)
        print(f"verified {len(checked) - len(bad)} of {len(checked)} sound, {size_text(sound)}")
    if bad:
        context.exit(_FINDING)


def _tensors(file: str, weight_dir: str | None, bundle: bool) -> list[_Checked]:
    """Read the tensors of a file."""
    found = []
    with open_weights(file, weight_dir, bundle=bundle) as source:
        for tensor in source.tensors():
            reason = ""
            try:
                for _ in chunks_of(tensor.data):
                    pass
            except (ModelFileError, LoadError, VariableError, ValueError) as error:
                reason = str(error)
            found.append(_Checked(file, tensor.name, tensor.data.nbytes, reason))
    return found


def _region(folder: Path, region: RegionDigest) -> _Checked:
    """Compare a region with its digest."""
    path, reason = folder / region.file, ""
    name = f"{region.length} B at {region.offset}"
    try:
        source = ByteSource.of_file_in(folder, path)
        try:
            place = source.range(region.offset, region.length, "region")
            digest = digest_of(StreamedBytes.of_source(place, 0, region.length, "region")).hex()
        finally:
            source.close()
        if digest != region.digest:
            reason = f"has xxh3 {digest}, {region.digest} is listed"
    except ModelFileError as error:
        reason = str(error)
    return _Checked(str(path), name, region.length, reason)
