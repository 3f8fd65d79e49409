# SPDX-License-Identifier: Apache-2.0
"""What ONNX itself says of a model of one node: whether its schema allows it.

An oracle of claims that shares nothing with the library under test: the schema says how many inputs
a node has, of which types, which types are equal, and which attributes of which kind there are. For
what the schema allows, ONNX's shape inference says whether the extents fit, as far as it looks.
Inference looks at few attributes and extents; a model that ONNX Runtime computes fits for certain.
"""

import multiprocessing
import re

import onnx
from onnx import defs, helper, shape_inference

# BESIDE: only the types of inputs are others than the schema's.
VALID, INVALID, BESIDE, UNKNOWN = "valid", "invalid", "beside the schema's types", "unknown"


# Rules that ONNX's specification states in words alone and ONNX Runtime does not hold to: operators, and a
# pattern of the library's sentence.
_WORDED_RULES = (
    # "The last dimension of indices should be a value between 1 (inclusive) and rank r-b (inclusive)".
    ("GatherND|ScatterND", r"The last extent of the indices \(0\)"),
    # "Type of reduction to apply to loss: none, sum, mean".
    ("NegativeLogLikelihoodLoss|SoftmaxCrossEntropyLoss", "Reduction '[^']*' is not one of"),
    # "If given, it has to be a 1D Tensor assigning weight to each of the classes."
    ("SoftmaxCrossEntropyLoss", "Number of weights and of classes differ"),
    # "p value of the Lp norm": below 1 there is none.
    ("LpPool|GlobalLpPool", r"p \(-?\d+\) is less than 1"),
    # "1-D tensor representing the cropping window dimensions", of as many axes as there are.
    ("CenterCropPad", r"shape has \d+ elements for \d+ axes"),
    # "A 0-D tensor"; and "It is a scalar" of every limit of NonMaxSuppression.
    ("CumSum|CumProd", r"Input 1 gives \d+ axes and must give 1"),
    ("NonMaxSuppression", "is not one element"),
    # "Scale tensor of shape (C)", "Bias tensor of shape (C)".
    ("GroupNormalization", r"Input [12] has \d+ axes and must have 1|Length of input [12]"),
    # "The number of batch dimensions."
    ("GatherND", r"batch_dims \(-\d+\)"),
    # "Number of neurons in the hidden layer".
    ("RNN|GRU|LSTM", "The hidden size is 0"),
    # "The axis as a scalar on which to perform the DFT."
    ("DFT", r"axis has \d+ elements instead of one"),
    # "Number of outputs to split parts of the tensor into."
    ("Split", r"num_outputs is \d+ and the node has \d+ outputs"),
    # "(max_position_id_plus_1, head_size / 2)" for the caches.
    ("RotaryEmbedding", "do not broadcast|element counts"),
    # "The supported values are none and tanh."
    ("Gelu", "is neither 'none' nor 'tanh'"),
    # "This list is parallel to the specified pool list."
    ("TfIdfVectorizer", r"There are \d+ ngram_indexes for"),
    # Indices of features, targets, nodes and leaves.
    ("TreeEnsemble.*", r"Attribute \w+ has -?\d+, outside \[0, |The trees ask for \d+ features"),
    # The definition divides by the length; numpy refuses it as well.
    ("DFT", "The length of the DFT is not positive"),
)


def is_worded_rule(op_type, sentence):
    """Whether a refusal cites a rule that neither the schema nor ONNX Runtime knows."""
    return any(
        re.fullmatch(operators, op_type) and re.search(pattern, sentence)
        for operators, pattern in _WORDED_RULES
    )


def _type_of(info):
    element = helper.tensor_dtype_to_string(info.type.tensor_type.elem_type)
    return f"tensor({element.removeprefix('TensorProto.').lower()})"


def _version_of(model, domain):
    for entry in model.opset_import:
        if entry.domain in (domain, "ai.onnx" if domain == "" else domain):
            return entry.version
    return None


def _find_fault_of_count(node, schema):
    count = len(node.input)
    if not schema.min_input <= count <= schema.max_input:
        return f"{count} inputs; there are {schema.min_input} to {schema.max_input}"
    for position, name in enumerate(node.input):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if not name and formal.option != defs.OpSchema.FormalParameterOption.Optional:
            return f"input '{formal.name}' is left out"
    return None


def _find_foreign_type(node, schema, types):
    """`types`: by name of a value."""
    bound = {}
    variables = {constraint.type_param_str for constraint in schema.type_constraints}
    for position, name in enumerate(node.input):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if not name:
            continue
        if name not in types:
            return None
        if types[name] not in formal.types:
            return f"input '{formal.name}' has the type {types[name]}"
        if formal.type_str not in variables or not formal.is_homogeneous:
            continue
        if bound.setdefault(formal.type_str, types[name]) != types[name]:
            return f"input '{formal.name}' has another type than those before it"
    return None


def _find_fault_of_attributes(node, schema):
    """None also where an attribute is not known: readers skip those."""
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        if known is not None and int(known.type) != attribute.type:
            return f"attribute '{attribute.name}' has another kind"
    given = {attribute.name for attribute in node.attribute}
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            return f"attribute '{name}' is missing"
    return None


def find_fault(model):
    """INVALID or BESIDE and why ONNX's schema does not allow the only node of a model; None if it does."""
    node = model.graph.node[0]
    version = _version_of(model, node.domain)
    if version is None:
        return INVALID, "its domain is not imported"
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return INVALID, f"there is no such operator in version {version}"
    if schema.deprecated:
        return INVALID, f"it is deprecated in version {version}"
    fault = _find_fault_of_count(node, schema) or _find_fault_of_attributes(node, schema)
    if fault is not None:
        return INVALID, fault
    types = {info.name: _type_of(info) for info in model.graph.input}
    for tensor in model.graph.initializer:
        info = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        types[tensor.name] = _type_of(info)
    fault = _find_foreign_type(node, schema, types)
    return None if fault is None else (BESIDE, fault)


def _has_unknown_attribute(model):
    node = model.graph.node[0]
    schema = defs.get_schema(node.op_type, _version_of(model, node.domain), node.domain)
    return any(attribute.name not in schema.attributes for attribute in node.attribute)


def _infer(content):
    shape_inference.infer_shapes(content, check_type=True, strict_mode=True, data_prop=True)


def _compute(content, feeds):
    import onnxruntime  # takes a second, and most models need it not

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    session.run(None, feeds)


def _serve(pipe):
    while True:
        content, feeds = pipe.recv()
        try:
            _infer(content) if feeds is None else _compute(content, feeds)
            pipe.send("")
        except Exception as fault:  # whatever ONNX raises
            pipe.send(str(fault).strip() or type(fault).__name__)


class SchemaOracle:
    """Asks ONNX's inference and ONNX Runtime in a process of its own, since some models end it."""

    def __init__(self):
        self._start()

    def _start(self):
        self._pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def infer(self, content):
        """What inference objects to, "" if nothing, None if it does not come back."""
        return self._ask(content, None)

    def computes(self, content, feeds):
        """Whether ONNX Runtime computes the model from `feeds`, arrays by name."""
        return self._ask(content, feeds) == ""

    def _ask(self, content, feeds):
        if self._process is None:
            self._start()
        try:
            self._pipe.send((content, feeds))
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            self._process = None
            return None

    def answer(self, content):
        """VALID, INVALID, BESIDE or UNKNOWN, and why not valid."""
        model = onnx.load_from_string(content)
        fault = find_fault(model)
        if fault is not None:
            return fault
        objection = self.infer(content)
        if objection == "" and not _has_unknown_attribute(model):
            return VALID, ""
        return UNKNOWN, objection
