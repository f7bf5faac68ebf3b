"""`python -m rfsim.cli`."""

import sys

from rfsim.cli import main

sys.exit(main())
