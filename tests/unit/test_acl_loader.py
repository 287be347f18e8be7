"""Choice of the library: search, refusals with reasons, one runtime per library."""

import logging
import os
from pathlib import Path

import acl_shim._acl
import pytest

from acl_shim import loader, open_runtime
from acl_shim.errors import Attempt, BackendUnavailableError, StateError
from tests.helpers.child import expect_output
from tests.helpers.fake_acl import fake_library

ELSEWHERE = "libnobodyhasthis.so"


@pytest.fixture(autouse=True)
def no_cann(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what this machine has: each test says where a library is."""
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "GEVAR_ACL", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(loader, "_HOMES", ())
    monkeypatch.setattr(loader, "_by_request", {})


@pytest.fixture
def no_bare_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bare names find nothing."""
    monkeypatch.setattr(loader, "_LIBRARY_NAMES", (ELSEWHERE,))


def attempts(backend: str) -> dict[str, Attempt]:
    """Return why a backend is refused, by path."""
    with pytest.raises(BackendUnavailableError) as caught:
        open_runtime(backend)
    return {attempt.path: attempt for attempt in caught.value.tried}


class TestNpu:
    @pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
    @pytest.mark.parametrize("folder", ["lib64", "runtime/lib64", f"{os.uname().machine}-linux/lib64"])
    @pytest.mark.parametrize("name", ["libascendcl.so", "libacl_rt.so"])
    def test_it_is_found_where_a_variable_points(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, folder: str, name: str
    ) -> None:
        library = fake_library(tmp_path / folder / name, devices=3)
        monkeypatch.setenv(variable, str(tmp_path))
        runtime = open_runtime("npu")
        assert (runtime.backend, runtime.path, runtime.version) == ("npu", library, None)
        assert runtime.reason == f"backend='npu': {library} reports 3 devices"
        assert runtime.device_count() == 3
        assert runtime.soc_name() == "Ascend-made-here"

    def test_it_is_found_in_a_usual_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(loader, "_HOMES", ("~/nothing", "~/Ascend"))
        monkeypatch.setenv("HOME", str(tmp_path))
        library = fake_library(tmp_path / "Ascend/lib64/libascendcl.so")
        assert open_runtime("npu").path == library

    def test_it_is_found_by_name_on_the_loaders_path(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libacl_rt.so", devices=2)
        code = """
            from acl_shim import open_runtime
            runtime = open_runtime()
            print(runtime.backend, runtime.path, runtime.reason)
        """
        wanted = f"npu {library} default backend='auto': {library} reports 2 devices"
        expect_output(code, wanted, LD_LIBRARY_PATH=str(tmp_path), GEVAR_ACL="")

    def test_a_loaded_host_runtime_of_the_same_name_does_not_hide_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        name = "libsamename.so"
        monkeypatch.setattr(loader, "_LIBRARY_NAMES", (name,))
        host = open_runtime(str(fake_library(tmp_path / "host" / name, host=True, soname=name)))
        assert attempts("npu")[name].reason == "is the host runtime, not an NPU's library"
        library = fake_library(tmp_path / "npu" / name, soname=name, devices=4)
        monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere::{library.parent}")
        runtime = open_runtime("npu")
        assert (runtime.path, runtime.device_count()) == (library, 4)
        assert host.device_count() == 1

    def test_a_library_that_serves_wins_over_one_that_does_not(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        fake_library(tmp_path / "one/lib64/libascendcl.so", devices=0)
        good = fake_library(tmp_path / "two/lib64/libascendcl.so", devices=1)
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "one"))
        monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path / "two"))
        assert open_runtime("npu").path == good

    def test_without_one_every_place_has_its_reason(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_bare_names: None
    ) -> None:
        monkeypatch.setattr(loader, "_LIBRARY_NAMES", (ELSEWHERE, "a.so", "b.so", "c.so", "d.so", "e.so", "f.so"))
        home = tmp_path / "home"
        folder = home / "lib64"
        fake_library(folder / "a.so", devices=0)
        fake_library(folder / "b.so", count_code=507899)
        fake_library(folder / "c.so", without=("aclrtMalloc", "aclrtFree"))
        fake_library(folder / "d.so", host=True)
        (folder / "e.so").write_text("no library" * 99)
        fake_library(folder / "f.so", without=loader.NEEDED)
        empty = tmp_path / "empty"
        empty.mkdir()
        monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
        monkeypatch.setattr(loader, "_HOMES", (str(empty), str(tmp_path / "absent")))
        tried = attempts("npu")
        assert tried[ELSEWHERE].reason.startswith("cannot open shared object file")
        assert tried["ASCEND_TOOLKIT_HOME"].reason == "is not set"
        assert tried[f"{folder}/a.so"].reason == "reports no device"
        assert tried[f"{folder}/b.so"].reason == "aclrtGetDeviceCount returned 507899 ACL_ERROR_RT_DRV_INTERNAL_ERROR"
        assert tried[f"{folder}/c.so"] == Attempt(
            f"{folder}/c.so", "lacks aclrtMalloc, aclrtFree", ("aclrtMalloc", "aclrtFree")
        )
        assert tried[f"{folder}/d.so"].reason == "is the host runtime, not an NPU's library"
        assert tried[f"{folder}/e.so"].reason == "invalid ELF header"
        assert tried[f"{folder}/f.so"].reason == "is no ACL library"
        assert tried[str(empty)].reason == "has no ACL library"
        assert tried[str(tmp_path / "absent")].reason == "no such folder"

    def test_the_message_is_one_line_with_a_clause_per_place(
        self, monkeypatch: pytest.MonkeyPatch, no_bare_names: None
    ) -> None:
        monkeypatch.setattr(loader, "_HOMES", ("/nowhere/Ascend",))
        with pytest.raises(BackendUnavailableError) as caught:
            open_runtime("npu")
        assert str(caught.value) == (
            "backend='npu': no NPU's library serves, install CANN or ask for 'host'; tried"
            f" {ELSEWHERE}: cannot open shared object file: No such file or directory;"
            " ASCEND_HOME_PATH: is not set; ASCEND_TOOLKIT_HOME: is not set; /nowhere/Ascend: no such folder"
        )

    @pytest.mark.parametrize("function", loader.NEEDED)
    def test_each_needed_function_is_needed(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_bare_names: None, function: str
    ) -> None:
        library = fake_library(tmp_path / "lib64" / ELSEWHERE, without=(function,))
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
        assert attempts("npu")[str(library)].missing == (function,)

    def test_a_home_named_twice_is_tried_once(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_bare_names: None
    ) -> None:
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
        monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path))
        with pytest.raises(BackendUnavailableError) as caught:
            open_runtime("npu")
        assert [attempt.path for attempt in caught.value.tried] == [ELSEWHERE, str(tmp_path)]


class TestAuto:
    def test_an_npu_wins(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        library = fake_library(tmp_path / "lib64/libacl_rt.so")
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
        with caplog.at_level(logging.INFO, "acl_shim"):
            assert open_runtime("auto").path == library
        assert [record.levelname for record in caplog.records] == ["INFO"]
        assert str(library) in caplog.text

    def test_else_the_host_runtime_and_the_log_says_so_once(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_bare_names: None, caplog: pytest.LogCaptureFixture
    ) -> None:
        library = fake_library(tmp_path / "libascendcl.so", host=True)
        monkeypatch.setattr(loader, "host_library", lambda: library)
        runtime = open_runtime("auto")
        assert open_runtime() is runtime
        assert open_runtime("auto") is runtime
        assert (runtime.backend, runtime.path, runtime.version) == ("host", library, "made here")
        assert runtime.reason == "backend='auto': none of 3 places has an NPU's library with a device"
        assert [(record.levelname, record.name) for record in caplog.records] == [("WARNING", "acl_shim")]
        assert f"took the host runtime {library}" in caplog.text

    def test_without_a_host_runtime_either_it_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_bare_names: None
    ) -> None:
        monkeypatch.setattr(loader, "host_library", lambda: tmp_path / "gone.so")
        assert list(attempts("auto")) == [str(tmp_path / "gone.so")]


class TestHost:
    def test_it_lies_beside_the_extension_module(self) -> None:
        folder = Path(acl_shim._acl.__file__).resolve().parent
        assert loader.host_library() == folder / "hostacl" / "libascendcl.so"

    def test_where_it_is_missing_the_message_says_what_to_do(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(loader, "host_library", lambda: tmp_path / "gone.so")
        with pytest.raises(BackendUnavailableError, match="the library does not serve, install gevar again; tried /"):
            open_runtime("host")

    def test_a_host_runtime_under_another_name_is_one(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libanything.so", host=True)
        runtime = open_runtime(str(library))
        assert (runtime.backend, runtime.version, runtime.reason) == ("host", "made here", f"backend='{library}'")


class TestPath:
    def test_a_cards_library_by_path_is_an_npu(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libmine.so")
        assert open_runtime(str(library)).backend == "npu"

    def test_a_path_may_start_at_home_or_here(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libmine.so")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        runtime = open_runtime("~/libmine.so")
        assert runtime.path == library
        assert open_runtime("libmine.so") is runtime
        assert open_runtime("./libmine.so") is runtime

    def test_a_link_leads_to_the_same_runtime(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libmine.so")
        link = tmp_path / "liblink.so"
        link.symlink_to(library)
        assert open_runtime(str(link)) is open_runtime(str(library))

    def test_two_libraries_are_two_runtimes(self, tmp_path: Path) -> None:
        first = open_runtime(str(fake_library(tmp_path / "lib1.so", devices=1)))
        second = open_runtime(str(fake_library(tmp_path / "lib2.so", devices=2)))
        assert first is not second
        assert (first.device_count(), second.device_count()) == (1, 2)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("/nowhere/libx.so", "cannot open shared object file: No such file or directory"),
            ("/", "cannot read file data"),
        ],
    )
    def test_a_path_that_is_no_library_is_refused_in_one_line(self, text: str, reason: str) -> None:
        with pytest.raises(BackendUnavailableError) as caught:
            open_runtime(text)
        assert str(caught.value).startswith(
            f"backend='{text}': the library does not serve, name another; tried {text}: {reason}"
        )
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("/dev/zero", "is a device, pipe or socket"),
            ("/" + "x" * 300, "File name too long"),
            ("x" * 300, "give 'auto', 'npu', 'host' or the path of a library"),
            ("./a\0b", "is no name of a file: embedded null byte"),
            ("./a\ud800", "is no name of a file"),
            ("~nobody of this name/lib.so", "cannot open shared object file"),
            ("./a\n\x1b[2J", r"a\n\x1b[2J: cannot open shared object file"),
        ],
    )
    def test_a_path_that_no_library_can_have(self, text: str, reason: str) -> None:
        with pytest.raises(BackendUnavailableError) as caught:
            open_runtime(text)
        assert reason in str(caught.value)
        assert str(caught.value).isprintable()

    def test_nothing_waits_for_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "lib.so")
        with pytest.raises(BackendUnavailableError, match="is a device, pipe or socket"):
            open_runtime(str(tmp_path / "lib.so"))

    def test_a_library_of_something_else_is_refused(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libc.so", without=loader.NEEDED)
        assert attempts(str(library))[str(library)].reason == "is no ACL library"

    def test_a_library_without_devices_is_refused(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libnone.so", devices=0)
        assert attempts(str(library))[str(library)].reason == "reports no device"

    @pytest.mark.parametrize("text", ["nup", "NPU", "cuda", " host"])
    def test_a_word_that_is_no_backend_is_refused_with_the_choice(self, text: str) -> None:
        with pytest.raises(BackendUnavailableError) as caught:
            open_runtime(text)
        assert str(caught.value) == f"backend={text!r}: give 'auto', 'npu', 'host' or the path of a library"
        assert caught.value.tried == ()


class TestEnvironment:
    def test_the_variable_names_the_backend(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libmine.so")
        monkeypatch.setenv("GEVAR_ACL", str(library))
        runtime = open_runtime()
        assert runtime.path == library
        assert runtime.reason == f"GEVAR_ACL='{library}'"

    def test_the_argument_wins(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("GEVAR_ACL", "nonsense")
        library = fake_library(tmp_path / "libmine.so")
        assert open_runtime(str(library)).path == library

    def test_a_wrong_text_names_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GEVAR_ACL", "nup")
        with pytest.raises(BackendUnavailableError, match="GEVAR_ACL='nup': give 'auto'"):
            open_runtime()


class TestLifeOfARuntime:
    def test_a_closed_runtime_is_opened_anew(self, tmp_path: Path) -> None:
        library = str(fake_library(tmp_path / "libmine.so"))
        first = open_runtime(library)
        assert first in loader.opened()
        first.close()
        assert first not in loader.opened()
        second = open_runtime(library)
        assert second is not first
        assert second.device_count() == 1

    def test_a_closed_runtime_refuses_every_call(self, tmp_path: Path) -> None:
        runtime = open_runtime(str(fake_library(tmp_path / "libmine.so")))
        device = runtime.device()
        runtime.close()
        runtime.close()
        assert runtime.closed
        for call in (runtime.device_count, runtime.soc_name, runtime.device, runtime.start, device.mem_info):
            with pytest.raises(StateError, match="was closed; open it again with open_runtime"):
                call()

    def test_a_runtime_shows_what_it_is(self, tmp_path: Path) -> None:
        library = fake_library(tmp_path / "libmine.so")
        runtime = open_runtime(str(library))
        assert repr(runtime) == f"<Runtime npu {library}>"
        assert repr(runtime.device()) == f"<Device 0 of <Runtime npu {library}>>"
