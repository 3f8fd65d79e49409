# SPDX-License-Identifier: Apache-2.0
"""Cases for the domain ai.onnx.ml, of which ONNX's own cases know four operators.

Each case is one node of seeded random attributes, large enough for several vectors with a rest. The
expected values are made here by the definitions of the operators, in float64 and by plain loops.
"""

import collections
import math

import numpy
import onnx
from onnx import helper

KIND = "ml"
DOMAIN = "ai.onnx.ml"
NUMBERS = (numpy.float32, numpy.float64, numpy.int64, numpy.int32)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
ROWS = 67

Case = collections.namedtuple("Case", "name model kind data_sets rtol atol")


def type_of(value):
    """The TypeProto of an array, a dict of arrays or a list of such dicts."""
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]))
    if isinstance(value, dict):
        key = numpy.array(list(value)).dtype
        values = type_of(next(iter(value.values())))
        return helper.make_map_type_proto(element_type(key), values)
    return helper.make_tensor_type_proto(element_type(value.dtype), value.shape)


def element_type(dtype):
    if dtype.kind in "OU":
        return onnx.TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(dtype)


def encode_value(value):
    """The protobuf message that ONNX uses for a value."""
    if isinstance(value, list):
        maps = [encode_value(each) for each in value]
        return onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP, map_values=maps)
    if not isinstance(value, dict):
        return onnx.numpy_helper.from_array(value)
    values = onnx.numpy_helper.from_list(list(value.values()))
    if isinstance(next(iter(value)), str):
        keys = [key.encode() for key in value]
        return onnx.MapProto(key_type=onnx.TensorProto.STRING, string_keys=keys, values=values)
    return onnx.MapProto(key_type=onnx.TensorProto.INT64, keys=list(value), values=values)


def make_case(name, op_type, version, attributes, inputs, outputs, symbolic=True, rtol=1e-4):
    """`attributes` in the order of the model; the first extent of tensors is a symbol."""

    def info(prefix, position, value):
        made = onnx.ValueInfoProto(name=f"{prefix}{position}")
        made.type.CopyFrom(type_of(value))
        if symbolic and isinstance(value, numpy.ndarray) and value.ndim == 2:
            made.type.tensor_type.shape.dim[0].dim_param = "N"
        return made

    given = [info("x", position, value) for position, value in enumerate(inputs)]
    made = [info("y", position, value) for position, value in enumerate(outputs)]
    node = helper.make_node(
        op_type, [i.name for i in given], [o.name for o in made], domain=DOMAIN, **attributes
    )
    graph = helper.make_graph([node], name, given, made)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, version)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return Case(f"test_ml_{name}", model, KIND, [(inputs, outputs)], rtol, 1e-6)


def floats(random, *shape):
    """Multiples of 1/16 in [-2, 2], which float32 has."""
    return random.integers(-32, 33, shape).astype(numpy.float32) / 16


def features(random, dtype, *shape):
    return random.integers(-4, 5, shape).astype(dtype)


def name_of(dtype):
    return numpy.dtype(dtype).name


def texts(*words):
    return numpy.array(words, dtype=object)


def transformed(scores, transform):
    if transform == "LOGISTIC":
        return 1 / (1 + numpy.exp(-scores))
    if transform == "NONE":
        return scores
    shares = numpy.exp(scores)
    if transform == "SOFTMAX_ZERO":
        shares[numpy.abs(scores) < 1e-7] = 0
    return shares / shares.sum(axis=1, keepdims=True)


def as_float(values):
    return numpy.asarray(values, numpy.float64).astype(numpy.float32)


def feature_cases(random):
    for dtype in NUMBERS:
        name = name_of(dtype)
        x = features(random, dtype, ROWS, 5)
        wide = x.astype(numpy.float64)
        offset, scale = floats(random, 5), floats(random, 5)
        attributes = {"offset": offset.tolist(), "scale": scale.tolist()}
        outputs = [as_float((wide - offset) * scale)]
        yield make_case(f"scaler_{name}", "Scaler", 1, attributes, [x], outputs)
        for norm in ("MAX", "L1", "L2"):
            divisor = {
                "MAX": wide.max(axis=1),
                "L1": numpy.abs(wide).sum(axis=1),
                "L2": numpy.sqrt((wide * wide).sum(axis=1)),
            }[norm]
            divisor[divisor == 0] = 1
            outputs = [as_float(wide / divisor[:, None])]
            name_of_case = f"normalizer_{norm.lower()}_{name}"
            yield make_case(name_of_case, "Normalizer", 1, {"norm": norm}, [x], outputs)
        is_float = numpy.issubdtype(dtype, numpy.floating)
        stem, replaced = ("floats", "float") if is_float else ("int64s", "int64")
        values = [9, 8, 7, 6, 5]
        attributes = {
            f"imputed_value_{stem}": [float(v) if is_float else v for v in values],
            f"replaced_value_{replaced}": 2.0 if is_float else 2,
        }
        outputs = [numpy.where(x == 2, numpy.array(values, dtype), x)]
        yield make_case(f"imputer_{name}", "Imputer", 1, attributes, [x], outputs)
        categories = [3, -2, 0]
        outputs = [(wide[:, :, None] == numpy.array(categories)).astype(numpy.float32)]
        attributes = {"cats_int64s": categories}
        yield make_case(f"one_hot_encoder_{name}", "OneHotEncoder", 1, attributes, [x], outputs)
        other = features(random, dtype, ROWS, 2)
        joined = numpy.concatenate([x[:, :3], other, numpy.zeros((ROWS, 2), dtype)], axis=1)
        attributes = {"inputdimensions": [3, 4]}
        outputs = [joined.astype(numpy.float32)]
        name_of_case = f"feature_vectorizer_{name}"
        yield make_case(name_of_case, "FeatureVectorizer", 1, attributes, [x, other], outputs)
        outputs = [(wide > 1).astype(dtype)]
        yield make_case(f"binarizer_{name}", "Binarizer", 1, {"threshold": 1.0}, [x], outputs)
    x = floats(random, ROWS, 3)
    x[::3, 1] = numpy.nan
    attributes = {"imputed_value_floats": [0.5], "replaced_value_float": math.nan}
    outputs = [numpy.where(numpy.isnan(x), numpy.float32(0.5), x)]
    yield make_case("imputer_nan", "Imputer", 1, attributes, [x], outputs)
    words = texts("red", "", "green", "blue", "red", "unknown")
    categories = ["blue", "red", ""]
    outputs = [(words[:, None] == numpy.array(categories)).astype(numpy.float32)]
    attributes = {"cats_strings": categories}
    yield make_case("one_hot_encoder_string", "OneHotEncoder", 1, attributes, [words], outputs)


def label_cases(random):
    keys = [int(key) for key in random.permutation(200)[:101] - 100]
    values = [int(value) for value in random.integers(0, 1000, 101)]
    table = dict(zip(keys, values))
    words = {f"key {key}": value for key, value in table.items()}
    x = random.integers(-110, 110, (ROWS, 3))

    def encoded(found, default, dtype):
        flat = [found.get(key, default) for key in x.ravel()]
        return [numpy.array(flat, dtype).reshape(x.shape)]

    text = numpy.array([f"key {key}" for key in x.ravel()], dtype=object).reshape(x.shape)
    attributes = {"keys_int64s": keys, "values_int64s": values, "default_int64": -5}
    outputs = encoded(table, -5, numpy.int64)
    yield make_case("label_encoder_int64", "LabelEncoder", 2, attributes, [x], outputs)
    attributes = {"keys_strings": list(words), "values_int64s": values, "default_int64": -5}
    yield make_case("label_encoder_from_string", "LabelEncoder", 2, attributes, [text], outputs)
    named = {key: f"value {value}" for key, value in table.items()}
    attributes = {
        "keys_floats": [float(key) for key in keys],
        "values_strings": list(named.values()),
    }
    outputs = encoded(named, "_Unused", object)
    inputs = [x.astype(numpy.float32)]
    yield make_case("label_encoder_to_string", "LabelEncoder", 2, attributes, inputs, outputs)
    for source in (numpy.float64, numpy.int32, numpy.int16):
        for target in (numpy.float64, numpy.int32, numpy.int16):

            def tensor(numbers, dtype):
                return onnx.numpy_helper.from_array(numpy.array(numbers, dtype))

            attributes = {
                "keys_tensor": tensor(keys, source),
                "values_tensor": tensor(values, target),
                "default_tensor": tensor([-1], target),
            }
            outputs = encoded(table, -1, target)
            name = f"label_encoder_{name_of(source)}_{name_of(target)}"
            yield make_case(name, "LabelEncoder", 4, attributes, [x.astype(source)], outputs)
    classes = ["b", "c", "a"]
    inputs, outputs = [texts("a", "d", "b")], [numpy.array([2, -1, 0])]
    attributes = {"classes_strings": classes}
    yield make_case("label_encoder_classes", "LabelEncoder", 1, attributes, inputs, outputs)
    attributes = {"cats_strings": classes, "cats_int64s": [7, 8, 9], "default_string": "?"}
    inputs, outputs = [numpy.array([9, 1, 7])], [texts("a", "?", "b")]
    yield make_case("category_mapper", "CategoryMapper", 1, attributes, inputs, outputs)


def linear_cases(random):
    for dtype, transform in zip(NUMBERS, TRANSFORMS):
        x = features(random, dtype, ROWS, 7)
        coefficients, intercepts = floats(random, 3, 7), floats(random, 3)
        model = {
            "coefficients": coefficients.ravel().tolist(),
            "intercepts": intercepts.tolist(),
            "post_transform": transform,
        }
        scores = x.astype(numpy.float64) @ coefficients.T.astype(numpy.float64) + intercepts
        outputs = [as_float(transformed(scores, transform))]
        name = f"{transform.lower()}_{name_of(dtype)}"
        attributes = {**model, "targets": 3}
        name_of_case = f"linear_regressor_{name}"
        yield make_case(name_of_case, "LinearRegressor", 1, attributes, [x], outputs)
        labels = numpy.array([30, 10, 20])[scores.argmax(axis=1)]
        attributes = {**model, "classlabels_ints": [30, 10, 20]}
        name_of_case = f"linear_classifier_{name}"
        outputs = [labels, *outputs]
        yield make_case(name_of_case, "LinearClassifier", 1, attributes, [x], outputs)
        # One score decides between two classes.
        score = scores[:, :1]
        model = {
            "coefficients": coefficients[0].tolist(),
            "intercepts": intercepts[:1].tolist(),
            "post_transform": transform,
            "classlabels_strings": ["no", "yes"],
        }
        labels = numpy.where(score[:, 0] > 0, "yes", "no").astype(object)
        pair = numpy.concatenate([-score, score], axis=1)
        outputs = [labels, as_float(transformed(pair, transform))]
        name_of_case = f"linear_classifier_binary_{name}"
        yield make_case(name_of_case, "LinearClassifier", 1, model, [x], outputs)


def apply_kernel(kernel, x, vectors, gamma, coef0, degree):
    if kernel == "RBF":
        return numpy.exp(-gamma * ((x[:, None, :] - vectors) ** 2).sum(axis=2))
    product = x @ vectors.T
    if kernel == "LINEAR":
        return product
    product = gamma * product + coef0
    return product**degree if kernel == "POLY" else numpy.tanh(product)


def vector_cases(random):
    parameters = [0.125, 0.5, 3.0]
    for kernel, dtype in zip(KERNELS, NUMBERS):
        x = features(random, dtype, ROWS, 3)
        wide = x.astype(numpy.float64)
        sizes = [3, 4, 2]
        vectors = floats(random, sum(sizes), 3).astype(numpy.float64)
        kernels = apply_kernel(kernel, wide, vectors, *parameters)
        model = {
            "kernel_type": kernel,
            "kernel_params": parameters,
            "support_vectors": vectors.ravel().tolist(),
        }
        name = f"{kernel.lower()}_{name_of(dtype)}"
        coefficients = floats(random, len(vectors))
        score = kernels @ coefficients[:, None] + 0.375
        attributes = {
            **model,
            "coefficients": coefficients.tolist(),
            "n_supports": len(vectors),
            "rho": [0.375],
        }
        outputs = [as_float(score)]
        yield make_case(f"svm_regressor_{name}", "SVMRegressor", 1, attributes, [x], outputs)
        attributes["one_class"] = 1
        outputs = [numpy.where(score > 0, 1, -1).astype(numpy.float32)]
        yield make_case(f"svm_one_class_{name}", "SVMRegressor", 1, attributes, [x], outputs)

        coefficients, rho = floats(random, 2, len(vectors)), floats(random, 3)
        starts = numpy.cumsum([0, *sizes])
        parts = [slice(starts[k], starts[k + 1]) for k in range(3)]
        scores, votes = [], numpy.zeros((ROWS, 3))
        for i, j in ((0, 1), (0, 2), (1, 2)):
            scores.append(
                kernels[:, parts[i]] @ coefficients[j - 1, parts[i]]
                + kernels[:, parts[j]] @ coefficients[i, parts[j]]
                + rho[len(scores)]
            )
            votes[:, i] += scores[-1] > 0
            votes[:, j] += scores[-1] <= 0
        attributes = {
            **model,
            "coefficients": coefficients.ravel().tolist(),
            "rho": rho.tolist(),
            "vectors_per_class": sizes,
            "classlabels_ints": [5, 3, 4],
        }
        outputs = [numpy.array([5, 3, 4])[votes.argmax(axis=1)], as_float(numpy.array(scores).T)]
        yield make_case(f"svm_classifier_{name}", "SVMClassifier", 1, attributes, [x], outputs)


class Forest:
    """Trees as the attributes have them, and the plain way down."""

    def __init__(self, random, trees, depth, targets, mode=None):
        self._random, self._mode, self._targets = random, mode, targets
        self.nodes = []  # tree, id, feature, mode, value, true id, false id, missing
        self.weights = []  # tree, id, target, weight
        for tree in range(trees):
            self._count = 0
            self._add(tree, depth if tree % 3 else max(0, depth - 2))

    def _add(self, tree, depth):
        number = self._count
        self._count += 1
        node = [tree, number, int(self._random.integers(4)), "LEAF", 0.0, 0, 0, 0]
        self.nodes.append(node)
        if depth == 0:
            for target in range(self._targets):
                if self._targets == 1 or self._random.integers(2):
                    weight = float(floats(self._random, 1)[0])
                    self.weights.append((tree, number, target, weight))
            return number
        node[3] = self._mode or MODES[self._random.integers(len(MODES))]
        node[4] = float(self._random.integers(-2, 3))
        node[7] = int(self._random.integers(2))
        node[5] = self._add(tree, depth - 1)
        node[6] = self._add(tree, depth - 1)
        return number

    def attributes(self, prefix, as_tensors):
        columns = [list(column) for column in zip(*self.nodes)]
        weights = [list(column) for column in zip(*self.weights)]
        made = {
            "nodes_treeids": columns[0],
            "nodes_nodeids": columns[1],
            "nodes_featureids": columns[2],
            "nodes_modes": columns[3],
            "nodes_truenodeids": columns[5],
            "nodes_falsenodeids": columns[6],
            "nodes_missing_value_tracks_true": columns[7],
            f"{prefix}_treeids": weights[0],
            f"{prefix}_nodeids": weights[1],
            f"{prefix}_ids": weights[2],
        }
        for name, numbers in (("nodes_values", columns[4]), (f"{prefix}_weights", weights[3])):
            if as_tensors:
                array = numpy.array(numbers, numpy.float64)
                made[f"{name}_as_tensor"] = onnx.numpy_helper.from_array(array)
            else:
                made[name] = numbers
        return made

    def sums(self, x, aggregate="SUM"):
        """One row of targets per row of features."""
        nodes = {(node[0], node[1]): node for node in self.nodes}
        weights = collections.defaultdict(list)
        for tree, number, target, weight in self.weights:
            weights[tree, number].append((target, weight))
        limit = float(numpy.finfo(numpy.float32).max)
        initial = {"MIN": limit, "MAX": -limit}.get(aggregate, 0.0)
        combine = {"MIN": min, "MAX": max}.get(aggregate, lambda a, b: a + b)
        trees = sorted({node[0] for node in self.nodes})
        rows = []
        for row in x.astype(numpy.float64):
            sums = [initial] * self._targets
            for tree in trees:
                node = nodes[tree, 0]
                while node[3] != "LEAF":
                    node = nodes[tree, node[5 if _is_true(node, row[node[2]]) else 6]]
                for target, weight in weights[tree, node[1]]:
                    sums[target] = combine(sums[target], weight)
            rows.append([s / len(trees) if aggregate == "AVERAGE" else s for s in sums])
        return numpy.array(rows)


def _is_true(node, value):
    if math.isnan(value) and node[7]:
        return True
    split = node[4]
    return {
        "BRANCH_LEQ": value <= split,
        "BRANCH_LT": value < split,
        "BRANCH_GTE": value >= split,
        "BRANCH_GT": value > split,
        "BRANCH_EQ": value == split,
        "BRANCH_NEQ": value != split,
    }[node[3]]


def tree_cases(random):
    for number, aggregate in enumerate(("SUM", "AVERAGE", "MIN", "MAX")):
        for targets in (1, 3):
            dtype = NUMBERS[number]
            x = features(random, dtype, ROWS, 4)
            if dtype in (numpy.float32, numpy.float64):
                x[::4, number] = numpy.nan
            forest = Forest(random, 10, 4 + 6 * (targets == 1), targets)
            is_wide = dtype == numpy.float64
            attributes = forest.attributes("target", as_tensors=is_wide)
            attributes.update(n_targets=targets, aggregate_function=aggregate)
            outputs = [as_float(forest.sums(x, aggregate))]
            name = f"tree_ensemble_regressor_{aggregate.lower()}_{targets}_{name_of(dtype)}"
            version = 3 if is_wide else 1
            yield make_case(name, "TreeEnsembleRegressor", version, attributes, [x], outputs)
    for dtype, transform in zip(NUMBERS, TRANSFORMS):
        x = features(random, dtype, ROWS, 4)
        forest = Forest(random, 9, 3, 3, mode="BRANCH_LT")
        base = [0.25, -0.5, 0.125]
        sums = forest.sums(x) + base
        attributes = forest.attributes("class", as_tensors=False)
        attributes.update(
            classlabels_int64s=[9, 7, 8], post_transform=transform, base_values=base
        )
        labels = numpy.array([9, 7, 8])[sums.argmax(axis=1)]
        outputs = [labels, as_float(transformed(sums, transform))]
        name = f"tree_ensemble_classifier_{transform.lower()}_{name_of(dtype)}"
        yield make_case(name, "TreeEnsembleClassifier", 3, attributes, [x], outputs)
    x = features(random, numpy.float32, ROWS, 4)
    forest = Forest(random, 30, 4, 1, mode="BRANCH_LEQ")
    sums = forest.sums(x)
    attributes = forest.attributes("class", as_tensors=False)
    attributes.update(classlabels_strings=["no", "yes"], post_transform="LOGISTIC")
    labels = numpy.where(sums[:, 0] > 0, "yes", "no").astype(object)
    pair = numpy.concatenate([-sums, sums], axis=1)
    outputs = [labels, as_float(transformed(pair, "LOGISTIC"))]
    name = "tree_ensemble_classifier_binary"
    yield make_case(name, "TreeEnsembleClassifier", 1, attributes, [x], outputs)
    del attributes["classlabels_strings"]
    attributes["classlabels_int64s"] = [0, 1]
    outputs = [(sums[:, 0] > 0).astype(numpy.int64), outputs[1]]
    name = "tree_ensemble_classifier_traced"
    made = make_case(name, "TreeEnsembleClassifier", 1, attributes, [x], outputs)
    # As LightGBM's converter declares it: the extents of the one row that it traced.
    for output in made.model.graph.output:
        output.type.tensor_type.shape.dim[0].dim_value = 1
    yield made


def scalar(value, dtype=numpy.float32):
    return numpy.array(value, dtype)


def map_cases(random):
    x = floats(random, 4, 3)
    for keys, name in (([7, -1, 5], "classlabels_int64s"), (["a", "", "c"], "classlabels_strings")):
        outputs = [[{key: scalar(v) for key, v in zip(keys, row)} for row in x]]
        kind = "int64" if name.endswith("int64s") else "string"
        yield make_case(f"zip_map_{kind}", "ZipMap", 1, {name: keys}, [x], outputs)
    numbers = {5: scalar(2.5), -2: scalar(-1.5), 0: scalar(3)}
    for target, dtype in (("TO_FLOAT", numpy.float32), ("TO_INT64", numpy.int64)):
        values = numpy.array([[-1.5, 3, 2.5]]).astype(dtype)
        attributes = {"cast_to": target}
        name = f"cast_map_dense_{name_of(dtype)}"
        yield make_case(name, "CastMap", 1, attributes, [numbers], [values], symbolic=False)
        values = numpy.array([[3, 0, 0, 0, 0, 2.5, 0]]).astype(dtype)
        attributes = {"cast_to": target, "map_form": "SPARSE", "max_map": 7}
        name = f"cast_map_sparse_{name_of(dtype)}"
        yield make_case(name, "CastMap", 1, attributes, [numbers], [values], symbolic=False)
    for dtype in (numpy.float32, numpy.float64, numpy.int64):
        named = {"b": scalar(2, dtype), "": scalar(5, dtype), "x": scalar(7, dtype)}
        attributes = {"string_vocabulary": ["", "a", "b"]}
        outputs = [numpy.array([[5, 0, 2]], dtype)]
        name = f"dict_vectorizer_{name_of(dtype)}"
        yield make_case(name, "DictVectorizer", 1, attributes, [named], outputs, symbolic=False)


def list_cases():
    """All cases, the same in every call."""
    cases = []
    groups = (feature_cases, label_cases, linear_cases, vector_cases, tree_cases, map_cases)
    for number, group in enumerate(groups):
        cases += group(numpy.random.default_rng(1000 + number))
    return cases
