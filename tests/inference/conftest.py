from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

# The toy models are shared by the modules of this folder (importlib import mode
# puts no test folder on the path).
_spec = importlib.util.spec_from_file_location(
    "toy", Path(__file__).with_name("toy.py")
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["toy"] = _module
_spec.loader.exec_module(_module)
