"""The model cache: compiled models on disk, each with the variables that it is right for.

Source: GE source, compiler/graph/build/model_cache.cc, ModelCache.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from acl_shim.errors import printable
from gevar.compile.graph_rebuild_state_ctrl import GraphRebuildStateCtrl
from gevar.compile.model_cache_digest import mark_source, other_source, source_digests
from gevar.compile.model_cache_files import GRAPH_COMPILER_CACHE_DIR, GRAPH_KEY, CacheEntry, CacheFiles
from gevar.compile.model_cache_load import (
    assign_addresses,
    map_batch_names,
    other_form,
    read_model,
    set_ids,
    set_weight_paths,
)
from gevar.compile.model_cache_match import VarDescs, read_var_match_info, refresh, var_match_info
from gevar.graph import ComputeGraph
from gevar.om import GeRootModel
from gevar.om.root_model_writer import root_model_blob
from gevar.types import TensorDesc
from gevar.var import VarManager

if TYPE_CHECKING:
    from gevar.proto.var_manager import VarDescInfo

EXTERNAL_WEIGHT_DIR: Final = "ge.externalWeightDir"
"""Option: directory of external weights; by default `weight` in the cache, which no link leads out of."""
_WEIGHT: Final = "weight"
_log = logging.getLogger("gevar.compile")


class ModelCache:
    """Cached models of one graph, from before it is compiled until its model is stored; use it with `with`.

    The cache is on where the options name a directory and a key. While the object lives it has the key for itself: the
    next one that wants it waits, in this process or another, and then finds what this one stored.

    Parameters
    ----------
    root_graph
        The graph that is to be compiled; its `graph_id` is recorded.
    var_manager
        Variables of the session, initialised.
    rebuild_ctrl
        Rebuild control of the session.
    options
        Options of the session and of the graph, by GE's names: `ge.graph_compiler_cache_dir`, `ge.graph_key`,
        `ge.externalWeightDir`, and those of `switches`.

    Raises
    ------
    ModelFileError
        The directory is not there, or the key cannot begin a file name (status PARAM_INVALID); configuration, index or
        lock of the cache are not as they should be, a file of an entry or the weight directory leads out of the cache,
        or the model of an entry is missing (status FAILED). It names the file.
    StateError
        The manager is not initialised (status INTERNAL_ERROR).
    GraphError
        The options exclude each other (status GE_GRAPH_OPTIONS_INVALID).

    After failure: nothing is locked, nothing has changed.
    Thread safety: one object belongs to one thread; others that want its key wait. A thread that has the key and asks
    for it once more waits for ever.

    Source: GE source, compiler/graph/build/model_cache.cc, ModelCache.

    Examples
    --------
    >>> from gevar.var import SessionVersion
    >>> vm = VarManager(1)
    >>> vm.init(SessionVersion.CLOUD_VERSION, session_id=1)
    >>> with ModelCache(ComputeGraph("main"), vm, GraphRebuildStateCtrl(), {}) as cache:
    ...     cache.is_enabled, cache.try_load_model_from_cache()
    (False, None)
    """

    def __init__(
        self,
        root_graph: ComputeGraph,
        var_manager: VarManager,
        rebuild_ctrl: GraphRebuildStateCtrl,
        options: Mapping[str, str],
    ) -> None:
        self._graph = root_graph
        self._vm = var_manager
        self._ctrl = rebuild_ctrl
        self._files: CacheFiles | None = None
        folder, key = options.get(GRAPH_COMPILER_CACHE_DIR, ""), options.get(GRAPH_KEY, "")
        if folder and key:
            self._before: VarDescInfo = var_manager.var_desc_info_to_serial()
            self._digests = source_digests(root_graph, options)
            self._files = CacheFiles(Path(folder), key)
            try:
                self._weight_dir = Path(options.get(EXTERNAL_WEIGHT_DIR) or self._files.inside(_WEIGHT, _WEIGHT))
            except BaseException:
                self.close()
                raise

    @property
    def is_enabled(self) -> bool:
        """Whether models are looked up and stored."""
        return self._files is not None

    @property
    def weight_dir(self) -> Path | None:
        """Directory where the external weights of cached models are to lie; None where the cache is off."""
        return self._weight_dir if self.is_enabled else None

    def close(self) -> None:
        """Let others have the key; a second call does nothing, and the cache is off afterwards."""
        if self._files is not None:
            self._files.close()
            self._files = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def try_load_model_from_cache(self) -> GeRootModel | None:
        """Return a stored model that is right for the variables of the session; None where it must be compiled.

        The variables become what compiling the graph would have made of them, and have their memory; rebuild control is
        told of those that changed. The model has the ids of session and graph, the addresses of the variables, and its
        external weights in `weight_dir`. Large parts of it stay in the file.

        Raises
        ------
        ModelFileError
            Descriptions or model of an entry cannot be read or used; names the file (status FAILED where GE tells one).
        VariableError
            A variable is there in the format that it is to get already (status PARAM_INVALID).

        After failure: variables and rebuild control are as before.
        Source: GE source, compiler/graph/build/model_cache.cc, ModelCache::TryLoadModelFromCache.
        Differs: rows old-form, moved-tasks, other-weights, other-road, lost-side-file, changed-already and
        weights-in-place of docs/differences.md; the log tells of entries that are passed over.
        """
        if self._files is None:
            return None
        model = None
        try:
            for entry in self._files.entries:
                model = self._try_load(entry)
                if model is not None:
                    break
        finally:
            if model is None:
                self._before = self._vm.var_desc_info_to_serial()
        return model

    def _try_load(self, entry: CacheEntry) -> GeRootModel | None:
        """Load the model of an entry, if it is right."""
        if entry.var_descs is None:
            return self._load(entry, {}, None)
        if not os.path.lexists(entry.var_descs):
            _log.info("%s is not loaded: %r is not there", printable(str(entry.model)), entry.var_descs.name)
            return None
        before, after = read_var_match_info(entry.var_descs)
        if after.match(self._vm):
            return self._load(entry, after.cur_descs, None)
        return self._load(entry, before.cur_descs, after) if before.match(self._vm) else None

    def _load(self, entry: CacheEntry, matched: Mapping[str, TensorDesc], after: VarDescs | None) -> GeRootModel | None:
        """Load a model, and do to the variables what compiling did, where descriptions after it are given."""
        model = read_model(entry.model)
        changed: tuple[str, ...] = ()
        try:
            if name := other_source(model, self._digests):
                raise _UnusableError(f"it was made with another {name!r} than there is now")
            if after is not None and (name := after.other_road(self._vm)):
                raise _UnusableError(f"variable {name!r} went another road in this session")
            with self._vm.transaction():
                map_batch_names(model, self._vm)
                if name := other_form(model, matched, self._vm):
                    raise _UnusableError(f"variable {name!r} is in another form than in its graph")
                if after is not None and entry.var_descs is not None:
                    changed = refresh(entry.var_descs, after, self._vm, self._graph.graph_id)
                set_ids(model, self._graph, self._vm.session_id)
                set_weight_paths(model, self._weight_dir)
                if not assign_addresses(entry.model, model, self._vm):
                    raise _UnusableError("variables lie elsewhere in this session than its tasks say")
        except _UnusableError as error:
            _log.info("%s is not loaded: %s", printable(str(entry.model)), error)
            return None
        for name in changed:
            self._ctrl.set_state_changed(name)
        return model

    def try_cache_model(self, model: GeRootModel) -> Path | None:
        """Store the model that the graph was compiled to, with the variables before and now.

        The model gets an attribute that tells what it was made of.

        Returns
        -------
        Path or None
            The file; None where the cache is off, or `cache.conf` says `cache_debug_mode`.

        Raises
        ------
        ModelFileError
            A file cannot be written, or the index is not what it should be; names the file (status FAILED).
        ValueError, GraphError
            A reader would refuse the model, as `write_om`.

        After failure: the cache is as before. A process that is killed at any moment leaves the entries as they were,
        or with the new one.
        Source: GE source, compiler/graph/build/model_cache.cc, ModelCache::TryCacheModel.
        Differs: row free-second of docs/differences.md.
        """
        files = self._files
        if files is None or files.debug_mode:
            return None
        mark_source(model, self._digests)
        var_descs = var_match_info(self._before, self._vm, self._graph.graph_id)
        return files.save(root_model_blob(model).write_to, var_descs).model


class _UnusableError(Exception):
    """Takes back what was done for a model that cannot be used in this session."""
