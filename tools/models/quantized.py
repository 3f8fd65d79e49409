# SPDX-License-Identifier: Apache-2.0
"""Networks that ONNX Runtime's quantizers write, with its own answers: those of the cases of domains/.

Their sums of integers are exact, but a number that lies between two steps of a quantized type takes
either, and what follows goes on from there: the tolerance is a few of these steps.
"""

from domains import networks

from models import builder

# Name here: name there.
_NETWORKS = {
    "cnn_qdq": "convolutional_qdq",
    "cnn_qoperator": "convolutional_qoperator",
    "encoder_dynamic": "encoder_dynamic",
    "decoder_4_bits": "decoder_4_bits_zero_points",
}


def make_quantized():
    found = {case.name.removeprefix("test_whole_"): case for case in networks.networks()}
    cases = []
    for name, source in _NETWORKS.items():
        case = found[source]
        names = [value.name for value in case.model.graph.input]
        facts = {"tolerance": "each", "rtol": case.rtol, "atol": case.atol}
        inputs = dict(zip(names, case.inputs, strict=True))
        content = case.model.SerializeToString()
        cases.append(builder.Case(name, content, [inputs], facts, expected_sets=[case.outputs]))
    return cases
