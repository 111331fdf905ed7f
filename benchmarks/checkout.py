"""Import this to find `lab`: a script of this folder that is run as a file sees this folder only, not the checkout."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
