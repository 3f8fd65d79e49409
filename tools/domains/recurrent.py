# SPDX-License-Identifier: Apache-2.0
"""LSTMs of bytes. ONNX Runtime quantizes the hidden state too, in each step, so its answers are near, not equal."""

import numpy

from domains.case import covers, floats, node_case, random_of, weights

# What a hidden state that is rounded to 8 bits in each step may differ by from one that is not.
ATOL = 0.03


def _forward(kind, more):
    name = f"dynamicquantizelstm_{kind}"
    random, (steps, batch, width, hidden) = random_of(name), (4, 2, 16, 8)
    quantization = [numpy.full((1,), 0.008, "float32"), numpy.zeros((1,), "int8")]
    inputs = [
        floats(random, (steps, batch, width)),
        weights(random, (1, width, 4 * hidden), "int8"),
        weights(random, (1, hidden, 4 * hidden), "int8"),
        floats(random, (1, 8 * hidden), scale=0.1),
        *[None] * 3,
        floats(random, (1, 3 * hidden)) if kind == "peepholes" else None,
        *quantization,
        *quantization,
    ]
    return node_case(
        name,
        "DynamicQuantizeLSTM",
        inputs,
        attributes={"hidden_size": hidden, **more},
        outputs=3,
        constant=(1, 2, 3, 7, 8, 9, 10, 11),
        rtol=0,
        atol=ATOL,
    )


@covers("DynamicQuantizeLSTM")
def lstm():
    # Beyond what every LSTM has: names of functions in float32, bounds of their arguments, peepholes.
    special = {
        "functions": {"activations": ["HardSigmoid", "LeakyRelu", "Tanh"], "activation_alpha": [0.3, 0.1],
                      "activation_beta": [0.4]},
        "clip": {"clip": 0.4},
        "coupled": {"input_forget": 1},
        "peepholes": {},
    }  # fmt: skip
    for kind, more in special.items():
        yield _forward(kind, more)
    for direction, directions in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for dtype in ("uint8", "int8"):
            name = f"dynamicquantizelstm_{direction}_{dtype}"
            random = random_of(name)
            steps, batch, width, hidden = 5, 3, 16, 8
            zero = 128 if dtype == "uint8" else 0
            inputs = [
                floats(random, (steps, batch, width)),
                weights(random, (directions, width, 4 * hidden), dtype),
                weights(random, (directions, hidden, 4 * hidden), dtype),
                floats(random, (directions, 8 * hidden), scale=0.1),
            ]
            if direction == "reverse":
                inputs += [
                    numpy.array([5, 2, 4], "int32"),
                    floats(random, (1, batch, hidden)),
                    floats(random, (1, batch, hidden)),
                    None,
                ]
            else:
                inputs += [None] * 4
            scale, zeros = numpy.full((directions,), 0.008, "float32"), numpy.full((directions,), zero, dtype)
            inputs += [scale, zeros, scale, zeros]
            attributes = {"direction": direction, "hidden_size": hidden}
            yield node_case(
                name,
                "DynamicQuantizeLSTM",
                inputs,
                attributes=attributes,
                outputs=3,
                constant=(1, 2, 3, 8, 9, 10, 11),
                rtol=0,
                atol=ATOL,
            )
