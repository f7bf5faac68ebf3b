"""Progress of long work: one line on stderr, and only when somebody is watching a terminal."""

import sys
import time


class Progress:
    """A line `label: done/total` that is rewritten at most five times a second."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self.label, self.total = label, total
        self.shown = sys.stderr.isatty()
        self.last = 0.0

    def __call__(self, done: int | str) -> None:
        """Show how far the work is: a number of finished items, or the name of the item that starts now."""
        now = time.monotonic()
        if self.shown and (isinstance(done, str) or now - self.last > 0.2):
            self.last = now
            told = f"{done}" if self.total is None or isinstance(done, str) else f"{done}/{self.total}"
            sys.stderr.write(f"\r\x1b[K{self.label}: {told}")
            sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
