# SPDX-License-Identifier: Apache-2.0
"""What computes a model: float64 by ONNX's reference, this library, ONNX Runtime."""

import numpy
import onnx.reference

from deviation.operators import make_model
from onnxifi_library import Library, LibraryError


class Refused(Exception):
    """An engine does not take the model; the text says why."""


def evaluate(sample, shapes, inputs):
    """The outputs in float64, from inputs of any float type."""
    wide = {name: value.astype(numpy.float64) for name, value in inputs.items()}
    model = make_model(sample, shapes, onnx.TensorProto.DOUBLE)
    with numpy.errstate(all="ignore"):
        return onnx.reference.ReferenceEvaluator(model).run(None, wide)[0]


class Ours:
    def __init__(self, path, device):
        self._library = Library(path, device)
        self.name = self._library.device_name()

    def run(self, model, inputs):
        content = model.SerializeToString()
        status, graph = self._library.init_graph(content, len(content))
        if graph is None:
            raise Refused(f"{self._library.sentence()} (status 0x{status & 0xFFFF:04x})")
        try:
            outputs = graph.bind({k: numpy.ascontiguousarray(v) for k, v in inputs.items()})
            graph.run()
            return outputs["y"].copy()
        except LibraryError as fault:
            raise Refused(str(fault)) from fault
        finally:
            graph.release()


class OnnxRuntime:
    def __init__(self):
        import onnxruntime  # pylint: disable=import-outside-toplevel

        self._runtime = onnxruntime
        self.name = f"ONNX Runtime {onnxruntime.__version__}"
        onnxruntime.set_default_logger_severity(4)

    def run(self, model, inputs):
        options = self._runtime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = self._runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return session.run(None, inputs)[0]
        except Exception as fault:  # its exceptions have no common base but this
            raise Refused(str(fault).splitlines()[0]) from fault
