"""Variables of OM2 packages, as their texts and initial bytes say; `gevar.runtime.Om2RTVarManager` takes them over."""

from gevar.om.om2_package import Om2Package
from gevar.runtime import RTVarResource
from gevar.runtime.om2_var_files import VAR_RESOURCE_FILE, VarMeta, read_var_resource, read_variables_config

VAR_WEIGHT_FILE = "data/variables/var_weight_data"


def om2_variables(package: Om2Package) -> RTVarResource:
    """Return the variables of a package; none without a text about them.

    Raises
    ------
    ModelFileError
        A text is not as it should be, or an entry cannot be read.
    """
    if VAR_RESOURCE_FILE not in package.entries:
        return RTVarResource()
    weights = package.read(VAR_WEIGHT_FILE) if VAR_WEIGHT_FILE in package.entries else b""
    return read_var_resource(package.read(VAR_RESOURCE_FILE), weights, package.file_of(VAR_RESOURCE_FILE))


def om2_model_variables(package: Om2Package, model_index: int) -> tuple[int, list[VarMeta]] | None:
    """Return graph id and variables of one model, by their numbers; None without a text about them.

    Raises
    ------
    ModelFileError
        As `om2_variables`.
    """
    name = f"data/variables/model_{model_index}_variables_config.json"
    if name not in package.entries:
        return None
    return read_variables_config(package.read(name), package.file_of(name))
