"""Makes the pack importable as the engine does it: the pack's folder is the root of its imports."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "policies"), str(HERE)]
