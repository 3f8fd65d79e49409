# SPDX-License-Identifier: Apache-2.0
"""ONNX models on every device of a machine, through libonnxifi.

    session = onnxifi.Session("model.onnx")               # or device="cpu", "opencl:0"
    scores, = session.run(None, {"image": image})

docs/user_guide.md has a section on it.
"""

from .binding import Memory
from .errors import (
    Error,
    InvalidError,
    LibraryError,
    MismatchError,
    UnavailableError,
    UnsupportedError,
)
from .library import Library, default_library, devices
from .session import Session

__all__ = [
    "Error",
    "InvalidError",
    "Library",
    "LibraryError",
    "Memory",
    "MismatchError",
    "Session",
    "UnavailableError",
    "UnsupportedError",
    "default_library",
    "devices",
]
__version__ = "0.1.0"
