"""`python -m rfsim`."""

import sys

from rfsim.cli import main

sys.exit(main())
