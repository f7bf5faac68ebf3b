"""Files -> text: plain or compressed by gzip, UTF-8 or UTF-16 with its mark, comments on top of a table left out."""

import codecs
import gzip
import re
import zlib
from pathlib import Path

from rfsim.checks import InputError

_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NUMBERS = re.compile(r"[\d\s.,;|eE+-]*\d[\d\s.,;|eE+-]*")


def stem(path: Path) -> str:
    """Name of the file without its folder and ending; of `run.csv.gz` it is `run`."""
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem


def text_of(path: str | Path) -> str:
    """The text of a file.

    Raises
    ------
    InputError : if the file cannot be read or unpacked, or is no text.
    """
    try:
        held = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"log {path} cannot be read ({error.strerror or error}); give the path of a file") from error
    try:
        held = gzip.decompress(held) if held.startswith(_GZIP) else held
        return held.decode("utf-16" if held.startswith(_UTF16) else "utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"log {path} is compressed and cannot be unpacked ({error}); give a whole file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"log {path} is not UTF-8 text; export it as CSV, TSV, JSON lines or JSON") from error


def uncommented(lines: list[str]) -> tuple[list[str], list[str]]:
    """Lines of a table with those on top that begin with # made blank, and the line that says so.

    If numbers follow at once, the last comment is the header, as some tools write it, and only loses its #.
    """
    top = next((at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
    comments = [at for at in range(top) if lines[at].strip()]
    if not comments:
        return lines, []
    kept = ["" if at < top else line for at, line in enumerate(lines)]
    if _NUMBERS.fullmatch(lines[top]):
        at = comments.pop()
        kept[at] = lines[at].lstrip().lstrip("#")
    return kept, [f"{len(comments)} lines of comment on top: left out"] if comments else []
