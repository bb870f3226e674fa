"""Makes the pack importable as the engine does it: the pack's folder is the root of its imports."""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where the stacks of the tests are, as their configuration would say it.
os.environ["PULUMI_CONFIG"] = json.dumps({"aws:region": "us-east-1", "azure-native:location": "westus2"})
sys.path[:0] = [str(HERE.parents[1] / "policies"), str(HERE)]
