# SPDX-License-Identifier: Apache-2.0
"""What computes a model: float64 by ONNX's reference, this library, ONNX Runtime."""

import numpy
import onnx.reference

from deviation.operators import make_model
from onnxifi_library import Library, LibraryError


class Refused(Exception):
    """An engine does not take the model; the text says why."""


def _local_response(attributes, x):
    """LRN; ONNX's evaluator takes the number of images for that of channels."""
    alpha, beta, bias = (float(numpy.float32(attributes[k])) for k in ("alpha", "beta", "bias"))
    reach = attributes["size"] // 2
    squares = numpy.pad(x * x, [(0, 0), (reach, reach), (0, 0), (0, 0)])
    sums = sum(squares[:, k : k + x.shape[1]] for k in range(attributes["size"]))
    return x / (bias + alpha / attributes["size"] * sums) ** beta


def _global_lp_pool(attributes, x):
    p = attributes["p"]
    return (numpy.abs(x) ** p).sum(axis=(2, 3), keepdims=True) ** (1 / p)


def _mean_variance_normalization(_attributes, x):
    """Its function in ONNX has a constant of float, which float64 cannot be added to."""
    axes = {"axis": (0, 2, 3), "keepdims": True}
    return (x - x.mean(**axes)) / (x.std(**axes) + 1e-9)


# What ONNX's evaluator does not have, or not rightly in float64.
_OWN = {
    "GlobalLpPool": _global_lp_pool,
    "LRN": _local_response,
    "MeanVarianceNormalization": _mean_variance_normalization,
}


def evaluate(sample, shapes, inputs):
    """The outputs in float64, from inputs of any float type."""
    wide = {name: value.astype(numpy.float64) for name, value in inputs.items()}
    if sample.op_type in _OWN:
        return _OWN[sample.op_type](sample.attributes, *wide.values())
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
