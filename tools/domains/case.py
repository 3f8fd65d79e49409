# SPDX-License-Identifier: Apache-2.0
"""What the cases of the suite `domains` are made with: seeded values, models of one node, their answers.

The modules beside this one register a function per operator (`covers`), which yields what `node_case`
makes. Expected values are ONNX Runtime's own, of its kernel for the processor with all optimizations off;
where it has none, those of an `oracle`, a function of numpy arrays in float64.
"""

import collections
import zlib

import numpy
import onnx
import onnxruntime
from onnx import helper

DOMAIN = "com.microsoft"
Case = collections.namedtuple("Case", "name model inputs outputs rtol atol")

# By output type: what may differ relative to the value, and absolutely. The suite narrows those of float64
# by what it has more than float32; integers are to be equal.
_TOLERANCES = {
    "float32": (2e-5, 2e-5),
    "float64": (2e-5, 2e-5),
    "float16": (4e-3, 2e-3),
    "bfloat16": (2e-2, 1e-2),
}

_FUNCTIONS = {}


def covers(*op_types):
    """Registers a function that yields the cases of these operators."""

    def register(function):
        for op_type in op_types:
            if op_type in _FUNCTIONS:
                raise ValueError(f"{op_type} is registered twice.")
            _FUNCTIONS[op_type] = function
        return function

    return register


def functions():
    """The registered functions, each once, with the operators that each covers."""
    covered = collections.defaultdict(list)
    for op_type, function in _FUNCTIONS.items():
        covered[function].append(op_type)
    return covered


def random_of(name):
    """A generator of numbers that depends on nothing but the name."""
    return numpy.random.default_rng(zlib.crc32(name.encode()))


def floats(random, shape, dtype="float32", scale=1.0):
    return (random.standard_normal(shape) * scale).astype(dtype)


def integers(random, shape, dtype="uint8", low=None, high=None):
    bounds = numpy.iinfo(dtype)
    low = bounds.min if low is None else low
    high = bounds.max if high is None else high
    return random.integers(low, high, shape, endpoint=True).astype(dtype)


def weights(random, shape, dtype):
    """Integers of seven bits: with eight, ONNX Runtime's sums of 16 bits overflow on processors without VNNI."""
    middle = 0 if numpy.dtype(dtype).kind == "i" else 128
    return integers(random, shape, dtype, middle - 64, middle + 63)


def trimmed(inputs):
    """Without the omitted inputs at the end."""
    count = max((k + 1 for k, array in enumerate(inputs) if array is not None), default=0)
    return inputs[:count]


def _type_number(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def run_reference(model, feeds, shared=()):
    """ONNX Runtime's answers; every node by the kernel of its own operator.

    `shared`: names of an input and of the output that is written where the input stands.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    if not shared:
        return session.run(None, feeds)
    binding, shared = session.io_binding(), dict(shared)
    kept = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feeds.items()}
    for name, value in kept.items():
        binding.bind_ortvalue_input(name, value)
    for name in (each.name for each in session.get_outputs()):
        inputs = [each for each, output in shared.items() if output == name]
        if inputs:
            binding.bind_ortvalue_output(name, kept[inputs[0]])
        else:
            binding.bind_output(name)
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def node_case(
    name,
    op_type,
    inputs,
    *,
    attributes=None,
    outputs=1,
    constant=(),
    symbolic=False,
    domain=DOMAIN,
    opset=21,
    oracle=None,
    shared=(),
    rtol=None,
    atol=None,
):
    """A model of one node. An input that is None is omitted, as is an output whose name is "".

    `constant`: the positions of inputs that are initializers; True: all but the first. `symbolic`: extents
    of the others (or of these positions) are names in place of numbers. `outputs`: how many, or which are
    wanted, as booleans. `shared`: pairs of an input and an output that ONNX Runtime wants in one place.
    """
    inputs = [None if array is None else numpy.asarray(array) for array in inputs]
    wanted = [True] * outputs if isinstance(outputs, int) else list(outputs)
    if constant is True:
        constant = range(1, len(inputs))
    names = ["" if array is None else f"input_{k}" for k, array in enumerate(inputs)]
    results = [f"output_{k}" if want else "" for k, want in enumerate(wanted)]
    node = helper.make_node(op_type, names, results, domain=domain, **(attributes or {}))
    initializers, declared, feeds = [], [], {}
    for k, array in enumerate(inputs):
        if array is None:
            continue
        if k in constant:
            initializers.append(onnx.numpy_helper.from_array(array, names[k]))
            continue
        is_symbolic = symbolic is True or (symbolic and k in symbolic)
        shape = [f"d{k}_{axis}" for axis in range(array.ndim)] if is_symbolic else array.shape
        declared.append(helper.make_tensor_value_info(names[k], _type_number(array), shape))
        feeds[names[k]] = array

    def build(answers):
        made = []
        for result, answer in zip([each for each in results if each], answers):
            info = onnx.ValueInfoProto(name=result)
            if answer is not None:
                shape = None if symbolic else answer.shape
                info = helper.make_tensor_value_info(result, _type_number(answer), shape)
            made.append(info)
        graph = helper.make_graph([node], "test_" + name, declared, made, initializers)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, ir_version=10, opset_imports=opsets, producer_name="onnxifi")

    if oracle is not None:
        answers = [numpy.asarray(each) for each in oracle(*inputs, **(attributes or {}))]
    else:
        # ONNX Runtime infers the types of outputs itself; shapes come from its answers.
        answers = run_reference(
            build([None] * sum(wanted)), feeds, [(names[k], results[j]) for k, j in shared]
        )
    rtols, atols = zip(*(_TOLERANCES.get(str(each.dtype), (0, 0)) for each in answers))
    return Case(
        "test_" + name,
        build(answers),
        list(feeds.values()),
        answers,
        max(rtols) if rtol is None else rtol,
        max(atols) if atol is None else atol,
    )


def quantized(dtype, scale, zero_point):
    """The scale and the zero point as they follow a quantized tensor."""
    return [numpy.array(scale, "float32"), numpy.array(zero_point, dtype)]
