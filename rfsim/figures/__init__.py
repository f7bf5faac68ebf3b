"""Figures: one file each, that computes numbers, draws them, and says in a caption what was measured.

Every figure module has `title`, `alt` (one sentence for readers who cannot see it), `parameters(scale)`,
`compute(scale)`, `caption(data)` and `draw(data)`. Only `compute` does mathematics and only `draw` imports
matplotlib; what passes between them is the JSON side file, so a picture can be redrawn from its file alone.
"""

from rfsim.figures.gallery import FIGURES, SCALES, FigureRecord, names, run

__all__ = ["FIGURES", "SCALES", "FigureRecord", "names", "run"]
