# SPDX-License-Identifier: Apache-2.0
"""What computes a model: float64 by ONNX's reference, this library, ONNX Runtime."""

import math
import pathlib
import sys

import numpy
import onnx.reference

from deviation.operators import make_model

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import onnxifi  # noqa: E402


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


_ERF = numpy.vectorize(math.erf, otypes=["d"])


def _gelu(attributes, x):
    """By the error function; ONNX's evaluator rounds that to float32."""
    if attributes["approximate"] == "tanh":
        return x / 2 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + _ERF(x / math.sqrt(2)))


def _cubic_weights(count, scale):
    """A row per output element, by half_pixel; ONNX's evaluator rounds weights."""
    a = -0.75
    weights = numpy.zeros((int(count * scale), count))
    for row, weight in enumerate(weights):
        position = (row + 0.5) / scale - 0.5
        for tap in range(math.floor(position) - 1, math.floor(position) + 3):
            d = abs(position - tap)
            near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            weight[min(max(tap, 0), count - 1)] += near if d <= 1 else far
    return weights


def _resize_by_cubes(x, scales):
    rows, columns = (_cubic_weights(x.shape[k], float(scales[k])) for k in (2, 3))
    return rows @ x @ columns.T


def _float(attributes, name, default=0.0):
    return float(numpy.float32(attributes.get(name, default)))


def _floats(attributes, name):
    return numpy.array(attributes[name], numpy.float32).astype(numpy.float64)


def _sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def _affine_grid(attributes, theta, size):
    """ONNX's evaluator finds positions in float32."""
    axes = []
    for count in size[:1:-1]:
        steps = numpy.arange(count)
        axes.append(2 * steps / (count - 1) - 1 if attributes["align_corners"] else (2 * steps + 1) / count - 1)
    x, y = numpy.meshgrid(*axes)
    return numpy.stack([x, y, numpy.ones_like(x)], -1) @ theta.swapaxes(1, 2)[:, None]


def _linear_regressor(attributes, x):
    coefficients = _floats(attributes, "coefficients").reshape(attributes["targets"], -1)
    return x @ coefficients.T + _floats(attributes, "intercepts")


def _svm_regressor(attributes, x):
    supports = _floats(attributes, "support_vectors").reshape(attributes["n_supports"], -1)
    gamma, shift, degree = _floats(attributes, "kernel_params")
    products = x @ supports.T
    kernels = {
        "LINEAR": lambda: products,
        "RBF": lambda: numpy.exp(-gamma * ((x[:, None] - supports) ** 2).sum(-1)),
        "POLY": lambda: (gamma * products + shift) ** degree,
        "SIGMOID": lambda: numpy.tanh(gamma * products + shift),
    }
    values = kernels[attributes["kernel_type"]]()
    return (values @ _floats(attributes, "coefficients") + _floats(attributes, "rho"))[:, None]


def _skip_normalization(attributes, x, skip, scale, bias=None):
    total = x + skip
    if bias is not None:
        total = total - total.mean(-1, keepdims=True)
    spread = (total * total).mean(-1, keepdims=True) + _float(attributes, "epsilon")
    return total / numpy.sqrt(spread) * scale + (0 if bias is None else bias)


def _fused_gemm(attributes, a, b, c):
    x = a @ b + c
    if attributes["activation"] == "Softplus":
        return numpy.logaddexp(0, x)
    alpha, gamma = _float(attributes, "activation_alpha"), _float(attributes, "activation_gamma")
    return gamma * numpy.where(x > 0, x, alpha * numpy.expm1(x))


# What ONNX's evaluator does not have, or not rightly in float64.
_OWN = {
    "BiasGelu": lambda _attributes, x, bias: _gelu({"approximate": "none"}, x + bias),
    "FastGelu": lambda _attributes, x: _gelu({"approximate": "tanh"}, x),
    "FusedGemm": _fused_gemm,
    "FusedMatMul": lambda attributes, a, b: _float(attributes, "alpha") * (a @ b.swapaxes(-1, -2)),
    "LinearRegressor": _linear_regressor,
    "QuickGelu": lambda attributes, x: x * _sigmoid(_float(attributes, "alpha") * x),
    "SVMRegressor": _svm_regressor,
    "SkipLayerNormalization": _skip_normalization,
    "SkipSimplifiedLayerNormalization": _skip_normalization,
    "SwiGLU": lambda _attributes, a, b: a * _sigmoid(a) * b,
    "Swish": lambda attributes, x: x * _sigmoid(_float(attributes, "alpha") * x),
    "Erf": lambda _attributes, x: _ERF(x),
    "Gelu": _gelu,
    "GlobalLpPool": _global_lp_pool,
    "LRN": _local_response,
    "MeanVarianceNormalization": _mean_variance_normalization,
}


def evaluate(sample, shapes, inputs):
    """The outputs in float64, from inputs of any float type."""
    wide = {name: value.astype(numpy.float64) for name, value in inputs.items()}
    if sample.op_type == "AffineGrid":
        return _affine_grid(sample.attributes, wide["theta"], sample.others["size"])
    if sample.op_type in _OWN:
        return _OWN[sample.op_type](sample.attributes, *wide.values())
    if sample.op_type == "Resize" and sample.attributes["mode"] == "cubic":
        return _resize_by_cubes(wide["x"], sample.others["scales"])
    model = make_model(sample, shapes, onnx.TensorProto.DOUBLE)
    with numpy.errstate(all="ignore"):
        return onnx.reference.ReferenceEvaluator(model).run(None, wide)[0]


class Ours:
    def __init__(self, path, device):
        self._device = onnxifi.Library(path).device(device)
        self._backend = self._device.backend()  # one for all models
        self.name = self._device.name

    def run(self, model, inputs):
        try:
            with onnxifi.Session(model, self._device) as session:
                return session.run(["y"], inputs)[0]
        except onnxifi.Error as fault:
            raise Refused(str(fault)) from fault


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
