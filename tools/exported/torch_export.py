# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules through both of torch's exporters.

`cases()` makes two cases of one description: torch.onnx.export(dynamo=True), which traces by
torch.export, and dynamo=False, which traces by TorchScript. Expected outputs are the module's own.
"""

import contextlib
import copy
import dataclasses
import io
import logging
import warnings
from collections.abc import Callable

import onnx

from exported import exported_case
from exported.exported_case import Case, Exported, Rounding

DYNAMO, SCRIPT = "torch dynamo", "torch script"

# How often a module answers to inputs with other roundings: how much of one network's roundings
# arrives at its end differs tenfold from image to image.
_CHANGED_RUNS = 7


@dataclasses.dataclass
class Subject:
    """A module to export.

    `inputs` holds a tuple of tensors per run, the first being the one that is exported with.
    `axes` gives by number of input {axis: symbol}; runs of other extents than the first need them.
    """

    module: object
    inputs: list
    axes: dict = dataclasses.field(default_factory=dict)
    tolerance: float = exported_case.TOLERANCE
    opset: int | None = None
    is_live: bool = True
    note: str = ""


def flatten(value):
    """The tensors of an answer, in the order in which exporters write them."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [part for item in value.values() for part in flatten(item)]
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in flatten(item)]
    return []


def to_array(tensor):
    """A tensor as numpy's, bfloat16 included."""
    import ml_dtypes
    import torch

    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()


def _write(subject, exporter, path):
    import torch

    names = [f"input_{number}" for number in range(len(subject.inputs[0]))]
    options = {"input_names": names, "opset_version": subject.opset, "dynamo": exporter == DYNAMO}
    if exporter == DYNAMO:
        options["verbose"] = False
        if subject.axes:
            options["dynamic_shapes"] = tuple(
                {axis: torch.export.Dim.DYNAMIC for axis in subject.axes.get(number, {})}
                for number in range(len(names))
            )
            if _takes_any_number(subject.module):
                options["dynamic_shapes"] = (options["dynamic_shapes"],)
        # One file: what is small lies inside.
        options["external_data"] = False
    else:
        options["dynamic_axes"] = {names[number]: axes for number, axes in subject.axes.items()}
    logging.disable(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(subject.module, subject.inputs[0], str(path), **options)
    logging.disable(logging.NOTSET)
    return names


def _takes_any_number(module):
    import inspect

    kinds = [part.kind for part in inspect.signature(module.forward).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def _change_roundings(tensor, generator):
    """A float32 tensor, each number of which is moved by at most its last place."""
    import torch

    if tensor.dtype != torch.float32:
        return tensor
    shares = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    return (tensor.double() * (1 + shares * 2.0**-23)).float()


def measure_rounding(subject):
    """What `subject` answers in float64, and in float32 to inputs that differ by roundings."""
    import torch

    with torch.no_grad():
        wide = copy.deepcopy(subject.module).double()
        generator = torch.Generator().manual_seed(5)
        found = []
        for tensors in subject.inputs:
            exact = wide(*(t.double() if t.dtype == torch.float32 else t for t in tensors))
            inputs = [tensors]
            for _ in range(_CHANGED_RUNS):
                inputs.append(tuple(_change_roundings(t, generator) for t in tensors))
            rounded = [[to_array(part) for part in flatten(subject.module(*each))] for each in inputs]
            found.append(Rounding([to_array(part) for part in flatten(exact)], rounded))
    return found


def export(subject, exporter, folder):
    import torch

    path = folder / "model.onnx"
    # One operator of the processor's for all of attention, which no exporter knows.
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        names = _write(subject, exporter, path)
        declared = {value.name: value for value in onnx.load(path, load_external_data=False).graph.input}
        runs = []
        for tensors in subject.inputs:
            # Exporters drop inputs that nothing reads.
            arrays = {
                name: to_array(tensor) for name, tensor in zip(names, tensors) if name in declared
            }
            expected = [to_array(part) for part in flatten(subject.module(*tensors))]
            runs.append((arrays, expected))
    return Exported(
        path,
        runs,
        subject.tolerance,
        subject.is_live,
        note=subject.note,
        measure_rounding=lambda: measure_rounding(subject),
    )


def cases(name, make: Callable[[], Subject], exporters=(DYNAMO, SCRIPT)):
    """The cases of a module: `make` builds it in the process that runs the case."""

    def case(exporter):
        return Case(name, exporter, lambda folder: export(make(), exporter, folder))

    return [case(exporter) for exporter in exporters]
