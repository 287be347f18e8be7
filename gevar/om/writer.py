"""Writing an OM file in the newest dialect (G3), with wide tables: a model made by hand, or a file in parsed form.

Source: GE source, base/common/helper/om_file_helper.cc and model_helper.cc.
"""

import os
from pathlib import Path

from gevar.om.atomic_file import write_atomically
from gevar.om.attr_names_writer import compress as compress_names
from gevar.om.external_weights_writer import ExternalWeightMode, ExternalWeightsWriter, movable_nodes
from gevar.om.model_spec import OmModelSpec
from gevar.om.partition_writer import model_body, om_file
from gevar.om.root_model import GeRootModel
from gevar.om.root_model_writer import root_model_blob
from gevar.om.spec_writer import spec_header, spec_parts
from gevar.om.stored_bytes import Blob


def write_om(
    path: str | os.PathLike[str],
    model: OmModelSpec | GeRootModel,
    *,
    compress: bool = False,
    external_weight: ExternalWeightMode = 0,
    weight_dir: str | os.PathLike[str] | None = None,
    padded_sha256: bool = True,
) -> None:
    """Write an OM file.

    The file is for its owner only (0600). The same model gives the same bytes. Data that are `SparseBytes` become holes
    in the file; of streamed data a few mebibytes are in memory at a time.

    Parameters
    ----------
    path
        The file; one that exists is replaced.
    model
        What to write: a model from `OmBuilder`, or a file in parsed form from `GeRootModel.from_om`.
    compress
        Whether attribute names become numbers. A file in parsed form says so itself.
    external_weight
        Where the bytes of constants go: 0 into the file, 1 into a file for each content, 2 into one file, as GE's
        option `ge.externalWeight`. Only for a model from `OmBuilder`.
    weight_dir
        Folder for external weights; by default `weight` beside the file, where a loader looks for them, and which must
        be no link then.
    padded_sha256
        Whether a byte of a SHA-256 in names of external weights has two digits, whatever it is. Without, one below 16
        has one digit, as GE's source has it; for tools that look for such names.

    Raises
    ------
    ValueError
        A reader would refuse the model: its message would exceed protobuf's 2 GiB, its inputs and outputs 16 MiB, its
        kernels their number or the length of a name, its partitions their number or 4 GiB. Or the variables need more
        room than the model gives them, data inside the message or in an external file are sparse, or the models of a
        bundle disagree on a variable. Or the path is one of the files of external weights. Or an option has another
        value, or does not go with a file in parsed form.
    GraphError
        A graph contradicts itself.
    OSError, ModelFileError
        The file cannot be written, or data cannot be read.

    Notes
    -----
    After failure: `path` and the folder of weights are as they were before; nothing else is left. The file appears
    under its name complete, after its weights.
    Thread safety: may be called from several threads, also for one path; the last to finish wins.
    """
    target = Path(path)
    if external_weight not in (0, 1, 2):
        raise ValueError(f"external weight mode is {external_weight!r}; give 0, 1 or 2")
    if isinstance(model, GeRootModel):
        if compress or external_weight:
            raise ValueError(
                "a file in parsed form is written as it is; set its is_compressed, or build the model anew"
            )
        write_atomically(target, root_model_blob(model).write_to)
        return
    if not external_weight or not movable_nodes(model):
        write_atomically(target, _blob(model, compress=compress).write_to)
        return
    folder = target.parent / "weight" if weight_dir is None else Path(weight_dir)
    is_given = weight_dir is not None
    with ExternalWeightsWriter(
        folder, external_weight, prefix=target.stem, follow_link=is_given, padded_sha256=padded_sha256
    ) as weights:
        blob = _blob(weights.move_out(model), compress=compress)
        weights.check_apart(target)
        write_atomically(target, blob.write_to, before_naming=weights.write_meta, after_naming=weights.commit)


def _blob(model: OmModelSpec, *, compress: bool) -> Blob:
    message, partitions = spec_parts(model)
    if compress:
        compress_names([message])
    return om_file(spec_header(model), [model_body(message, partitions)])
