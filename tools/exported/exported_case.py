# SPDX-License-Identifier: Apache-2.0
"""What a source of models gives to exported_models.py: a case, and what making it yields.

A case is a name, an exporter and a function. The function trains or draws a model, exports it into
a folder, and computes with the source itself what the file has to answer. It runs in a process of
exported/worker.py; nothing of it is done when cases are listed.
"""

import dataclasses
import pathlib
import zlib
from collections.abc import Callable

import numpy

# |a - b| <= tolerance * (|b| + rms(b)), as the conformance suite has it for whole models.
TOLERANCE = 1e-4


@dataclasses.dataclass
class Exported:
    """A model file with the answers of its source.

    `runs` holds pairs: inputs by name, and the expected outputs in the order of the model's. An
    expected output of None is one that the source does not have; ONNX Runtime's counts then. With
    runs of several extents the file's axes are symbols.
    """

    path: pathlib.Path
    runs: list
    tolerance: float = TOLERANCE
    # Whether expected outputs have to tell inputs apart.
    is_live: bool = True
    # Whether the source says which numbers there are, but not in which extents: predict() gives a
    # row where the file has a column. ONNX Runtime's extents count then.
    is_extent_free: bool = False
    # Why ONNX Runtime is not asked: it ends the process.
    peer_refusal: str = ""
    # Whether ONNX Runtime rounds where the expected values do not, so that its answers never count.
    is_peer_rounding: bool = False
    note: str = ""
    # The source's answers in float64, and those of its float32 with roundings that differ: a list of
    # `Rounding` in the order of `runs`. None where the source has no float64.
    measure_rounding: Callable[[], list] | None = None


@dataclasses.dataclass
class Rounding:
    """What a source answers to the inputs of a run, each answer a list of outputs."""

    exact: list
    rounded: list


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    # "torch dynamo", "torch script", "skl2onnx" ...
    exporter: str
    make: Callable[[pathlib.Path], Exported]

    @property
    def key(self):
        return f"{self.name} [{self.exporter}]"


def make_generator(name):
    """Returns the random generator that belongs to a name, the same on every machine."""
    return numpy.random.default_rng(zlib.crc32(name.encode()))
