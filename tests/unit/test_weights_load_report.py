"""What an upload did, and what held it up."""

import pytest

from gevar.weights import LoadSettings, UploadReport
from gevar.weights.load_report import StageTimes, report_of


@pytest.mark.parametrize(
    ("disk_bytes", "read_s", "staging_s", "check_s", "copy_s", "wanted"),
    [
        (0, 2.0, 1.0, 1.5, 1.5, "read"),
        (51, 2.0, 1.0, 1.5, 1.5, "disk"),
        (50, 2.0, 1.0, 1.5, 1.5, "read"),
        (100, 1.0, 1.1, 0.5, 0.5, "staging"),
        (100, 1.0, 1.1, 1.3, 1.2, "check"),
        (100, 1.0, 1.1, 1.2, 1.3, "copy"),
    ],
)
def test_what_took_most_time_is_named(
    disk_bytes: int, read_s: float, staging_s: float, check_s: float, copy_s: float, wanted: str
) -> None:
    times = {"read_s": read_s, "staging_s": staging_s, "check_s": check_s, "copy_s": copy_s}
    assert UploadReport(100, 1.0, 1, 10, read_bytes=100, disk_bytes=disk_bytes, **times).bottleneck == wanted


def test_an_upload_of_nothing_has_no_speed() -> None:
    report = UploadReport(0, 0.5, 1, 10)
    assert (report.bottleneck, report.gb_per_s) == ("", 0.0)
    assert UploadReport(3_000_000_000, 1.5, 1, 10).gb_per_s == 2.0


def test_readers_are_added_up() -> None:
    times = [StageTimes(10, 1, 5, 0.5, 0.25, 1.0, 2, 0.125), StageTimes(20, 2, 0, 1.0, 0.25, 2.0, 1, 0.5)]
    report = report_of(30, 3.0, LoadSettings(4, 4096, 3, True), times, ("O_DIRECT", "page cache"))
    assert report == UploadReport(30, 3.0, 2, 4096, 3, 30, 3, 5, 1.5, 0.5, 3.0, "O_DIRECT; page cache", 3, 0.625)
