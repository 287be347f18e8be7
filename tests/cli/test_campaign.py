"""`scripts/campaign`: the full-size campaigns, here with few examples."""

import re
import stat
from pathlib import Path

import pytest

from tests.helpers import campaigns, om_campaign
from tests.helpers.shared import REPOSITORY

ROW = re.compile(r"\| (\w+) \| \d{4}-\d\d-\d\d \| (\d+) \| \d+\.\d \| (passed|FAILED): (.*) \|")


def row(capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str, str]:
    """Return name, seed, verdict and result of the last line."""
    lines = capsys.readouterr().out.strip().splitlines()
    found = ROW.fullmatch(lines[-1])
    assert found, lines
    assert f"campaign {found[1]}, seed {found[2]}" in lines
    return found[1], found[2], found[3], found[4]


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_om_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["om", "--count", "40", "--seed", "11"]) == 0
    name, seed, verdict, result = row(capsys)
    assert (name, seed, verdict) == ("om", "11", "passed")
    told = r"(\d+) damaged OM files: (\d+) read, (\d+) refused; \d+ of those read were loaded; \d+ swollen .* memory"
    counts = re.fullmatch(told, result)
    assert counts
    assert int(counts[1]) == int(counts[2]) + int(counts[3]) >= 40


def test_graphs_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["graphs", "--count", "3", "--seed", "11"]) == 0
    name, seed, verdict, result = row(capsys)
    assert (name, seed, verdict) == ("graphs", "11", "passed")
    assert re.fullmatch(r"\d+ programs \(\d+ with 0 roads.*\), each in six sessions: all numbers as in numpy", result)


def test_var_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["var", "--count", "40", "--seed", "11"]) == 0
    name, seed, verdict, result = row(capsys)
    assert (name, seed, verdict) == ("var", "11", "passed")
    counts = re.fullmatch(r"(\d+) damaged states: (\d+) restored, (\d+) refused", result)
    assert counts
    assert int(counts[1]) == int(counts[2]) + int(counts[3]) >= 40


def test_memory_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["memory", "--count", "5", "--seed", "11"]) == 0
    expected = "5 runs of up to 40 steps each by allocators, and as many by sessions"
    assert row(capsys) == ("memory", "11", "passed", expected)


def test_export_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["export", "--count", "2", "--seed", "11"]) == 0
    name, seed, verdict, result = row(capsys)
    assert (name, seed, verdict) == ("export", "11", "passed")
    assert re.match(r"2 kills \(.*\), \d ended before; \d+ models and \d+ listed regions were looked at", result)
    assert re.search(r"; 50 exports of any model \(\d+ in mode 1, .*\), all as the rules say$", result)


def test_weights_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["weights", "--count", "200", "--seed", "11"]) == 0
    name, seed, verdict, result = row(capsys)
    assert (name, seed, verdict) == ("weights", "11", "passed")
    assert re.fullmatch(r"200 examples: exports \(.*\); options \(.*\); records \(.* found\)", result)


def test_tensor_files_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["tensor_files", "--seed", "4", "--count", "100"]) == 0
    name, number, verdict, result = row(capsys)
    assert (name, number, verdict) == ("tensor_files", "4", "passed")
    assert result.startswith("100 examples: external weights (")


def test_upload_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaigns.main(["upload", "--count", "20", "--seed", "11"]) == 0
    name, seed, verdict, result = row(capsys)
    assert (name, seed, verdict) == ("upload", "11", "passed")
    assert re.match(r"20 uploads: .*good \d+", result)


def test_full_number_and_new_seed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[int, int | None]] = []

    def damage(examples: int, seed: int | None) -> om_campaign.Campaign:
        asked.append((examples, seed))
        return om_campaign.Campaign()

    monkeypatch.setattr(om_campaign, "run", damage)
    for _ in range(2):
        assert campaigns.main(["om"]) == 0
    assert [examples for examples, _ in asked] == [om_campaign.FULL_EXAMPLES] * 2
    assert asked[0][1] != asked[1][1]
    assert row(capsys)[1] == str(asked[1][1])


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_a_number_of_examples_is_above_0(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        campaigns.main(["om", "--count", count])
    assert ended.value.code == 2
    assert f"{count!r} is no number above 0" in capsys.readouterr().err


def test_finding_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def damage(examples: int, seed: int | None) -> om_campaign.Campaign:
        raise IndexError(f"{examples} {seed}\nmore")

    monkeypatch.setattr(om_campaign, "run", damage)
    assert campaigns.main(["om", "--seed", "3"]) == 1
    assert row(capsys)[2:] == ("FAILED", f"IndexError: {om_campaign.FULL_EXAMPLES} 3")


def test_acl_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    builds: list[tuple[str, str]] = []

    def build(folder: Path, sanitizers: str) -> Path:
        builds.append((folder.name, sanitizers))
        made = tmp_path / folder.name
        made.mkdir(exist_ok=True)
        for name in campaigns.FUZZERS:
            program(made / name, f'echo "{name} $*" >> {log}; echo said; [ "{name} $3" != "$FAIL_IN" ]')
        return made

    monkeypatch.setattr(campaigns, "build_fuzzers", build)
    monkeypatch.setattr(campaigns, "model_files", lambda: [Path("a.om"), Path("b.om")])
    assert campaigns.main(["acl", "--seed", "9"]) == 0
    assert builds == [("native-asan", "address,undefined"), ("native-tsan", "thread")]
    assert log.read_text().splitlines() == [
        f"{name} 200000 9 {profile} {threads}" + (" a.om b.om" if name == "fuzz_models" else "")
        for threads in (1, 4)
        for name in ("fuzz", "fuzz_streams", "fuzz_tasks", "fuzz_models")
        for profile in ("strict", "card")
    ]
    verdict, result = row(capsys)[2:]
    assert verdict == "passed"
    assert result.startswith("200000 calls of fuzz and fuzz_streams and fuzz_tasks and fuzz_models under address,")
    monkeypatch.setenv("FAIL_IN", "fuzz_tasks card")
    assert campaigns.main(["acl", "--seed", "9", "--count", "7"]) == 1
    verdict, result = row(capsys)[2:]
    assert verdict == "FAILED"
    assert result == f"{tmp_path}/native-asan/fuzz_tasks 7 9 card 1 ended with 1"


def test_what_a_failing_command_says_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaigns.run([str(program(tmp_path / "good", "echo quiet"))])
    assert capsys.readouterr().out == ""
    with pytest.raises(campaigns.CampaignFailed, match="ended with 3"):
        campaigns.run([str(program(tmp_path / "bad", "echo out; echo err >&2; exit 3"))])
    assert capsys.readouterr().out == "out\nerr\n"


def test_unknown_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        campaigns.main(["everything"])
    assert ended.value.code == 2
    assert "om" in capsys.readouterr().err


def test_last_results_are_written_down() -> None:
    text = (REPOSITORY / "docs" / "campaigns.md").read_text()
    found = {match[1]: match for match in ROW.finditer(text)}
    assert found.keys() == campaigns.CAMPAIGNS.keys()
    assert {match[3] for match in found.values()} == {"passed"}
