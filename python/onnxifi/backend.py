# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface (onnx.backend.base): prepare, run_model, run_node, is_compatible, supports_device.

Device strings are ONNX's, "CPU", "CUDA" or "CUDA:1", and keys of ours, such as "auto" or "opencl:0".
"""

import onnx
import onnx.backend.base
from onnx.backend.base import namedtupledict

from .errors import Error
from .library import default_library
from .session import Session


def _key_of(device):
    """"cuda:1" for "CUDA:1"."""
    plugin, colon, index = device.partition(":")
    return f"{plugin.lower()}{colon}{index}" if plugin in ("CPU", "CUDA") else device


class OnnxifiBackendRep(onnx.backend.base.BackendRep):
    """A prepared model; `session` is its Session."""

    def __init__(self, session):
        super().__init__()
        self.session = session

    def run(self, inputs, **kwargs):
        """The outputs as a tuple that has their names, too, for a list or a {name: input}, or one input alone."""
        del kwargs
        names = [value.name for value in self.session.inputs]
        if not isinstance(inputs, dict):
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            if len(inputs) != len(names):
                raise ValueError(f"{len(inputs)} inputs are given; the model has {len(names)}: {', '.join(names)}.")
            inputs = dict(zip(names, inputs))
        outputs = self.session.run(None, inputs)
        return namedtupledict("Outputs", [value.name for value in self.session.outputs])(*outputs)


class OnnxifiBackend(onnx.backend.base.Backend):
    """A subclass may name another library."""

    library = None  # a Library; None: the one that sessions use

    @classmethod
    def _find_device(cls, device):
        return (cls.library or default_library()).device(_key_of(device))

    @classmethod
    def supports_device(cls, device):
        try:
            return cls._find_device(device).state == "ready"
        except Error:
            return False

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        del kwargs
        try:
            cls._find_device(device).check_compatibility(model.SerializeToString())
        except Error:
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """Keyword arguments are options of Session; what a test of ONNX adds (rtol, atol) has no effect."""
        super().prepare(model, device)
        kwargs = {name: value for name, value in kwargs.items() if name not in ("rtol", "atol")}
        return OnnxifiBackendRep(Session(model, cls._find_device(device), **kwargs))

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """`outputs_info`: (numpy's type, shape) of each output; without it they are inferred."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        return cls.run_model(_make_model(node, inputs, outputs_info, version), inputs, device, **kwargs)


def _make_model(node, inputs, outputs_info, version):
    """A model of a node; ONNX infers the types of outputs that are not told."""
    helper = onnx.helper
    given = [name for name in node.input if name]
    values = inputs.values() if isinstance(inputs, dict) else inputs
    feeds = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in zip(given, values)
    ]
    if outputs_info is not None:
        results = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
            for name, (dtype, shape) in zip(node.output, outputs_info)
        ]
    else:
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], node.op_type, feeds, results)
    opsets = [helper.make_opsetid("", version)]
    if node.domain not in ("", "ai.onnx"):
        opsets.append(helper.make_opsetid(node.domain, 1))
    model = helper.make_model(graph, opset_imports=opsets)
    return model if outputs_info is not None else onnx.shape_inference.infer_shapes(model)


prepare = OnnxifiBackend.prepare
run_model = OnnxifiBackend.run_model
run_node = OnnxifiBackend.run_node
supports_device = OnnxifiBackend.supports_device
is_compatible = OnnxifiBackend.is_compatible
