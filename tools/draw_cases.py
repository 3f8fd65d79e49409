# SPDX-License-Identifier: Apache-2.0
"""Cases of random generators: what is expected is a distribution, and rules for sequences of draws.

ONNX's own cases expect a type and a shape. The runner (conformance/suites/draws) holds the output
of each of these against mean, variance and Kolmogorov-Smirnov distance, or against the share of each
class; runs twice, which must draw other numbers; and makes a second graph, which must draw the same
with a seed. Draws of iterations, and of nodes, are rows that must differ.
"""

import collections

import numpy
from onnx import TensorProto, helper

KIND = "draws"

_OPSET = 22
_SHAPE = [97, 103]
_ROWS = 16
_COLUMNS = 601

_NORMAL = {"kind": "normal", "mean": 1.5, "deviation": 0.75}
_UNIFORM = {"kind": "uniform", "low": -0.5, "high": 1.5}
_NORMAL_ATTRIBUTES = {"mean": 1.5, "scale": 0.75}
_UNIFORM_ATTRIBUTES = {"low": -0.5, "high": 1.5}
_FLOATS = {"float": 1, "double": 11, "float16": 10, "bfloat16": 16}

Case = collections.namedtuple("Case", "name model kind data_sets rtol atol draws")


def _case(name, nodes, inputs, element, shape, draws, initializers=()):
    """`inputs`: arrays by name; the output, of which only type and shape count, is 'y'."""
    infos = [
        helper.make_tensor_value_info(
            key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for key, value in inputs.items()
    ]
    output = helper.make_tensor_value_info("y", element, shape)
    graph = helper.make_graph(nodes, name, infos, [output], initializer=list(initializers))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10
    )
    zeros = numpy.zeros(shape, helper.tensor_dtype_to_np_dtype(element))
    return Case(f"test_draws_{name}", model, KIND, [(list(inputs.values()), [zeros])], 1e-3, 1e-7, draws)


def _seeded(is_seeded):
    return ("_seeded", {"seed": 7.0}) if is_seeded else ("", {})


def _continuous():
    generators = (
        ("random_normal", "RandomNormal", _NORMAL_ATTRIBUTES, _NORMAL),
        ("random_uniform", "RandomUniform", _UNIFORM_ATTRIBUTES, _UNIFORM),
    )
    for name, op_type, attributes, draws in generators:
        for is_seeded in (False, True):
            suffix, seed = _seeded(is_seeded)
            draws = draws | {"seeded": is_seeded}
            for type_name, element in _FLOATS.items():
                options = attributes | seed | {"dtype": element}
                node = helper.make_node(op_type, [], ["y"], shape=_SHAPE, **options)
                yield _case(f"{name}_{type_name}{suffix}", [node], {}, element, _SHAPE, draws)
            like = {"like": numpy.ones(_SHAPE, numpy.float32)}
            node = helper.make_node(f"{op_type}Like", ["like"], ["y"], **attributes, **seed)
            yield _case(f"{name}_like{suffix}", [node], like, 1, _SHAPE, draws)


def _classes(values, shares, is_seeded):
    return {"kind": "classes", "values": values, "shares": shares, "seeded": is_seeded}


def _discrete():
    for is_seeded in (False, True):
        suffix, seed = _seeded(is_seeded)
        coin = _classes([0, 1], [0.7, 0.3], is_seeded)
        for type_name, dtype in (("float", numpy.float32), ("double", numpy.float64)):
            shares = {"p": numpy.full(_SHAPE, 0.3, dtype)}
            for target in (TensorProto.FLOAT, TensorProto.INT32, TensorProto.BOOL):
                node = helper.make_node("Bernoulli", ["p"], ["y"], dtype=target, **seed)
                name = f"bernoulli_{type_name}_{TensorProto.DataType.Name(target).lower()}{suffix}"
                yield _case(name, [node], shares, target, _SHAPE, coin)
        shares = [0.125, 0.5, 0.25, 0.125]
        logs = {"logs": numpy.log(numpy.array([shares])).astype(numpy.float32)}
        for type_name, target in (("int32", 6), ("int64", 7)):
            node = helper.make_node(
                "Multinomial", ["logs"], ["y"], sample_size=9973, dtype=target, **seed
            )
            draws = _classes([0, 1, 2, 3], shares, is_seeded)
            yield _case(f"multinomial_{type_name}{suffix}", [node], logs, target, [1, 9973], draws)
        ones = {"x": numpy.ones(_SHAPE, numpy.float32)}
        scalars = [
            helper.make_tensor("ratio", 1, [], [0.25]),
            helper.make_tensor("training", TensorProto.BOOL, [], [True]),
        ]
        seed = {key: int(value) for key, value in seed.items()}  # of this operator alone
        node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y"], **seed)
        # 1 / (1 - 0.25) as float32 has it.
        draws = _classes([0, float(numpy.float32(4 / 3))], [0.25, 0.75], is_seeded)
        yield _case(f"dropout{suffix}", [node], ones, 1, _SHAPE, draws, scalars)


def _loops():
    """Every iteration draws numbers of its own."""
    bodies = (
        ("random_normal", "RandomNormal", [], _NORMAL_ATTRIBUTES | {"shape": [_COLUMNS]}, _NORMAL),
        ("random_uniform", "RandomUniform", [], _UNIFORM_ATTRIBUTES | {"shape": [_COLUMNS]}, _UNIFORM),
        ("bernoulli", "Bernoulli", ["p"], {}, _classes([0, 1], [0.7, 0.3], False)),
    )
    for name, op_type, reads, attributes, draws in bodies:
        for is_seeded in (False, True):
            suffix, seed = _seeded(is_seeded)
            body = helper.make_graph(
                [
                    helper.make_node("Identity", ["going"], ["goes_on"]),
                    helper.make_node(op_type, reads, ["row"], **attributes, **seed),
                ],
                "body",
                [
                    helper.make_tensor_value_info("iteration", 7, []),
                    helper.make_tensor_value_info("going", 9, []),
                ],
                [
                    helper.make_tensor_value_info("goes_on", 9, []),
                    helper.make_tensor_value_info("row", 1, [_COLUMNS]),
                ],
            )
            inputs = {"count": numpy.array(_ROWS, numpy.int64)}
            if reads:
                inputs["p"] = numpy.full([_COLUMNS], 0.3, numpy.float32)
            node = helper.make_node("Loop", ["count", ""], ["y"], body=body)
            draws = draws | {"seeded": is_seeded, "rows": True}
            yield _case(f"loop_{name}{suffix}", [node], inputs, 1, [_ROWS, _COLUMNS], draws)


def _nodes():
    """Two generators without a seed draw different numbers."""
    nodes = [
        helper.make_node("RandomUniform", [], [name], shape=[1, _COLUMNS], **_UNIFORM_ATTRIBUTES)
        for name in ("first", "second")
    ]
    nodes.append(helper.make_node("Concat", ["first", "second"], ["y"], axis=0))
    yield _case("two_nodes", nodes, {}, 1, [2, _COLUMNS], _UNIFORM | {"rows": True})


def list_cases():
    """All cases, the same in every call."""
    return [*_continuous(), *_discrete(), *_loops(), *_nodes()]
