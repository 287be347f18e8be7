"""Which FileConstants of a session are ready: those of loaded models, as long as the memory with their bytes is there.

Source: GE source, runtime/v1/graph/load/model_manager/davinci_model.cc, InitFileConstant; VarManager::SetVarIsReady.
Differs: edge 18 of docs/differences.md: nothing is ready without its memory.
"""

import threading
from collections import Counter

from gevar.types import DeviceId, TensorDesc
from gevar.var import VarManager
from gevar.var.var_key import VarKey


class ReadyWeights:
    """Counts the models that have a FileConstant, by its name, format and type.

    Parameters
    ----------
    var_manager
        Where it is told.

    Thread safety: all methods, from any thread.
    """

    def __init__(self, var_manager: VarManager) -> None:
        self._var_manager = var_manager
        self._lock = threading.Lock()
        self._models: Counter[tuple[DeviceId, VarKey]] = Counter()

    def add(self, name: str, desc: TensorDesc, device_id: DeviceId) -> None:
        """Call a FileConstant ready, whose bytes a model has brought or found."""
        with self._lock:
            self._models[device_id, VarKey(name, desc.format, desc.dtype)] += 1
            self._var_manager.set_var_is_ready(name, desc, device_id, is_elsewhere=True)

    def remove(self, name: str, desc: TensorDesc, device_id: DeviceId) -> None:
        """Take a model away that is closed; without one, the FileConstant is not ready."""
        key = device_id, VarKey(name, desc.format, desc.dtype)
        with self._lock:
            self._models[key] -= 1
            if not self._models[key]:
                del self._models[key]
                self._var_manager.set_var_is_not_ready(name, desc, device_id)
