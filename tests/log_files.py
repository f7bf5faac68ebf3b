"""Small logs for tests: a loss, files of named columns, and the lines that a reader told."""

import numpy as np


def curve(step):
    """A loss that falls like a power of the step."""
    return 3.0 + 8.0 * np.maximum(step, 1.0) ** -0.4


def write_columns(path, **columns):
    """A CSV file of these columns; returns its path."""
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]), encoding="utf-8")
    return path


def lines_with(run, *words):
    """Findings of a run that hold all of the words."""
    return [line for line in run.findings if all(word in line for word in words)]
