"""`gevar verify FILE... [--digests SIDE]`: whether the bytes of weights can be read, and are those they should be."""

from bisect import bisect_right
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from acl_shim.errors import printable, size_text
from gevar.cli.output import bundle_option, print_json, shared_options, show_log, weight_dir_option
from gevar.errors import LoadError, ModelFileError, VariableError
from gevar.om.named_tensor import is_tensor_file
from gevar.om.source import ByteSource
from gevar.om.stored_bytes import Content, StreamedBytes, chunks_of, digest_of
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
    one of them. What SIDE does not list of a FILE beside it, or of the external weights of an OM model, is a finding.
    The exit code is 1 if anything is damaged.
    """
    show_log(debug)
    side = None if digests is None else _Side(digests)
    checked = [] if side is None else [side.compare(region) for region in side.regions]
    for file in files:
        checked += _tensors(file, weight_dir, bundle, side)
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


class _Side:
    """A side file: what it lists of the files beside it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = Path(path).resolve().parent
        self.regions = read_digests(path)
        self._listed = {(region.file, region.offset, region.length) for region in self.regions}
        self._damaged: set[str] = set()
        self._covered: dict[str, list[tuple[int, int]]] = {}  # start and end of what is listed, apart and in order
        for region in self.regions:
            runs, end = self._covered.setdefault(region.file, []), region.offset + region.length
            if runs and region.offset <= runs[-1][1]:
                runs[-1] = (runs[-1][0], max(runs[-1][1], end))
            else:
                runs.append((region.offset, end))

    def compare(self, region: RegionDigest) -> _Checked:
        """Compare a region with its digest."""
        path, reason = self.folder / region.file, ""
        name = f"{region.length} B at {region.offset}"
        try:
            source = ByteSource.of_file_in(self.folder, path)
            try:
                place = source.range(region.offset, region.length, "region")
                digest = digest_of(StreamedBytes.of_source(place, 0, region.length, "region")).hex()
            finally:
                source.close()
            if digest != region.digest:
                reason = f"has xxh3 {digest}, {region.digest} is listed"
        except ModelFileError as error:
            self._damaged.add(region.file)
            reason = str(error)
        return _Checked(str(path), name, region.length, reason)

    def is_said(self, path: Path) -> bool:
        """Tell whether a listed file that cannot be read has been found already."""
        return path.parent == self.folder and path.name in self._damaged

    def is_compared(self, data: Content) -> bool:
        """Tell whether bytes are a region that was compared with its digest."""
        place = _place(data)
        return place is not None and place[0].parent == self.folder and (place[0].name, *place[1:]) in self._listed

    def unlisted(self, file: Path, data: Content) -> str:
        """Return why bytes of a file are a finding, which are external, or of tensors beside the side file; else ""."""
        place = _place(data)
        if is_tensor_file(file):
            is_wanted = file.parent == self.folder
        else:
            is_wanted = place is not None and place[0] != file.resolve()
        if not is_wanted or not data.nbytes:
            return ""
        if place is None:
            return f"does not lie in the file as it is, so {self.path} cannot list it"
        path, offset, size_bytes = place
        runs = self._covered.get(path.name, []) if path.parent == self.folder else []
        index = bisect_right(runs, offset, key=lambda run: run[0]) - 1
        if index >= 0 and offset + size_bytes <= runs[index][1]:
            return ""
        return f"{self.path} lists no digest for its {size_bytes} B at {offset} of {path}; export the weights again"


def _place(data: Content) -> tuple[Path, int, int] | None:
    """Return file, offset and length of bytes that lie in a file as they are."""
    if isinstance(data, memoryview) or data.source is None:
        return None
    return Path(data.source.name).resolve(), data.source.base + data.offset, data.nbytes


def _tensors(file: str, weight_dir: str | None, bundle: bool, side: _Side | None) -> list[_Checked]:
    """Read the tensors of a file, but for those that were compared already."""
    found, path = [], Path(file).parent.resolve() / Path(file).name
    if side is not None and side.is_said(path):
        return []
    with open_weights(file, weight_dir, bundle=bundle) as source:
        for tensor in source.tensors():
            if side is not None and side.is_compared(tensor.data) and is_tensor_file(file):
                continue
            reason = "" if side is None else side.unlisted(path, tensor.data)
            try:
                for _ in chunks_of(tensor.data):
                    pass
            except (ModelFileError, LoadError, VariableError, ValueError) as error:
                reason = str(error)
            found.append(_Checked(file, tensor.name, tensor.data.nbytes, reason))
    return found
