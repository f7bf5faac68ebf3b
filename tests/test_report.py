"""The HTML report: complete, escaped, self-contained, valid enough to be parsed without a repair."""

import base64
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

from rfsim.checks import RunError
from rfsim.report import write_report
from rfsim.version import __version__

VOID = {"meta", "img", "br", "hr", "link", "input"}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Check(NamedTuple):
    name: str
    statement: str
    predicted: float | str | None
    measured: float | str | None
    tolerance: float | None
    passed: bool
    seconds: float


class Page(HTMLParser):
    """Collects the elements and fails on a tag that is not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.cells, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if {"td", "th"} & set(self.open[-1:]):
            self.cells.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def text(self):
        return "".join(self.words)


@pytest.fixture
def record(tmp_path):
    png = tmp_path / "one.png"
    png.write_bytes(PIXEL)
    return {
        "name": "one",
        "title": "Title <one>",
        "alt": 'A picture with "quotes" & signs',
        "caption": "gap < clean & 2 > 1",
        "parameters": {"lr": 0.1, "kind": "<b>"},
        "seed": 7,
        "png": png,
    }


CHECKS = [
    Check("kappa", "kappa < 1 <script>alert(1)</script>", 0.5, 0.49999999999, 1e-9, True, 0.25),
    Check("slope", "q_N = vartheta & more", "0.25", None, None, False, 1.5),
    Check("limit", "tends to", float("nan"), float("inf"), 1e-3, True, 0.0),
]


def written(tmp_path, checks, figures):
    path = write_report(tmp_path / "report.html", checks, figures, scale="quick", seconds=12.6)
    assert path == tmp_path / "report.html"
    return path.read_text(encoding="utf-8")


def test_the_page_has_summary_table_and_figures(tmp_path, record):
    text = written(tmp_path, CHECKS, [record])
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert page.all("html")[0]["lang"] == "en"
    assert "2 of 3 checks passed" in page.text
    assert "Scale quick, 1 figures, 13 s." in page.text
    assert f"rfsim {__version__}" in page.text
    assert page.cells[:7] == ["name", "statement", "predicted", "measured", "tolerance", "passed", "seconds"]
    assert page.cells[7:14] == [
        "slope",
        "q_N = vartheta & more",
        "0.25",
        "–",
        "–",
        "FAILED",
        "1.5",
    ]  # failed ones first
    assert page.cells[14:21] == [
        "kappa", "kappa < 1 <script>alert(1)</script>", "0.5", "0.5", "1e-09", "passed", "0.25"
    ]  # fmt: skip
    assert page.cells[21:28] == ["limit", "tends to", "–", "–", "0.001", "passed", "0"]
    assert {attrs.get("scope") for attrs in page.all("th")} == {"col", "row"}


def test_pictures_are_inside_and_described(tmp_path, record):
    page = Page(written(tmp_path, [], [record]))
    (picture,) = page.all("img")
    kind, data = picture["src"].split(",", 1)
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == PIXEL
    assert picture["alt"] == record["alt"]
    assert "gap < clean & 2 > 1" in page.text
    assert "Title <one>" in page.text
    assert "seed 7" in page.text
    assert "lr: 0.1\nkind: <b>" in page.text
    assert "No checks were run." in page.text


def test_nothing_is_fetched_and_nothing_runs(tmp_path, record):
    text = written(tmp_path, CHECKS, [record])
    page = Page(text)
    assert page.all("script") == page.all("link") == page.all("iframe") == []
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text


def test_a_page_without_failures_says_so_and_mappings_count_too(tmp_path):
    page = Page(written(tmp_path, [CHECKS[0]._asdict()], []))
    assert "1 of 1 checks passed" in page.text
    assert "No figures were made." in page.text
    assert page.all("p")[0]["class"] == "summary"
    failed = Page(written(tmp_path, [CHECKS[1]], []))
    assert failed.all("p")[0]["class"] == "summary failed"


def test_what_cannot_be_read_or_written_is_an_error(tmp_path, record):
    with pytest.raises(RunError, match="cannot write"):
        write_report(tmp_path / "absent" / "report.html", [], [], scale="quick", seconds=0.0)
    record["png"] = Path(tmp_path / "gone.png")
    with pytest.raises(RunError, match=r"cannot read the picture .*gone\.png"):
        write_report(tmp_path / "report.html", [], [record], scale="quick", seconds=0.0)
    assert not (tmp_path / "report.html").exists()
