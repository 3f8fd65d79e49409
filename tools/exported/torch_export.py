# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules through both of torch's exporters.

`cases()` makes two cases of one description: torch.onnx.export(dynamo=True), which traces by
torch.export, and dynamo=False, which traces by TorchScript. Expected outputs are the module's own.
"""

import contextlib
import dataclasses
import io
import logging
import warnings
from collections.abc import Callable

import onnx

from exported import exported_case
from exported.exported_case import Case, Exported

DYNAMO, SCRIPT = "torch dynamo", "torch script"


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
    return Exported(path, runs, subject.tolerance, subject.is_live, subject.note)


def cases(name, make: Callable[[], Subject], exporters=(DYNAMO, SCRIPT)):
    """The cases of a module: `make` builds it in the process that runs the case."""

    def case(exporter):
        return Case(name, exporter, lambda folder: export(make(), exporter, folder))

    return [case(exporter) for exporter in exporters]
