"""Makes the pack importable as the engine does it: the pack's folder is the root of its imports."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where the stacks of the tests are.
os.environ.pop("AWS_DEFAULT_REGION", None)
os.environ |= {"AWS_REGION": "us-east-1", "ARM_LOCATION": "westus2"}
sys.path[:0] = [str(HERE.parents[1] / "policies"), str(HERE)]
