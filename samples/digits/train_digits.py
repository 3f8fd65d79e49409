#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digit classifier of the samples and writes all that is committed beside this file.

Only retraining needs it, with PyTorch, scikit-learn, Pillow and onnx installed. It writes
digits.onnx, the held-out images, and the scores a float64 evaluation of the trained network gives
them. README.md says how an image becomes the model's input.
"""

import json
import pathlib
import shutil

import numpy
import onnx
import PIL.Image
import sklearn.datasets
import sklearn.model_selection
import torch
from onnx import TensorProto, helper, numpy_helper

_FOLDER = pathlib.Path(__file__).resolve().parent
_SEED = 2024
_HELD_OUT = 400
_EPOCHS = 40
_OPSET = 25
_BATCH_NORM_EPSILON = 1e-5
_LOWEST_ACCURACY = 0.97

# Below this distance to the second best score, float32 rounding could change the class.
_LOWEST_MARGIN = 1e-2


def load_split():
    """Returns (pixels 0..255, labels) for training and for the held-out test."""
    digits = sklearn.datasets.load_digits()
    pixels = numpy.rint(digits.images * (255 / 16)).astype(numpy.uint8)  # Levels are 0..16.
    train_x, test_x, train_y, test_y = sklearn.model_selection.train_test_split(
        pixels, digits.target, test_size=_HELD_OUT, random_state=_SEED, stratify=digits.target
    )
    return (train_x, train_y), (test_x, test_y)


def make_input(pixels):
    """Returns N,1,8,8 in 0..1, in the float32 arithmetic that README.md prescribes."""
    return torch.from_numpy(pixels.astype(numpy.float32) / numpy.float32(255))[:, None]


def make_network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16, eps=_BATCH_NORM_EPSILON),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32, eps=_BATCH_NORM_EPSILON),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def train(network, pixels, labels):
    images = make_input(pixels)
    targets = torch.from_numpy(labels)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, _EPOCHS)
    network.train()
    for epoch in range(_EPOCHS):
        for batch in torch.randperm(len(images)).split(64):
            loss = torch.nn.functional.cross_entropy(
                network(images[batch]), targets[batch], label_smoothing=0.05
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1} of {_EPOCHS}: loss {loss.item():.3f}", flush=True)
    network.eval()


def make_model(network):
    """Returns the network as ONNX, normalisation unfused, with a symbolic batch size."""
    state = {name: value.numpy() for name, value in network.state_dict().items()}

    def name_weights(layer, *parts):
        return [f"{layer}.{part}" for part in parts]

    def convolve(layer, x, y):
        return helper.make_node(
            "Conv", [x, *name_weights(layer, "weight", "bias")], [y], f"conv{layer}",
            kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1],
        )  # fmt: skip

    def normalize(layer, x, y):
        weights = name_weights(layer, "weight", "bias", "running_mean", "running_var")
        return helper.make_node(
            "BatchNormalization", [x, *weights], [y], f"norm{layer}", epsilon=_BATCH_NORM_EPSILON
        )

    def pool(layer, x, y):
        return helper.make_node(
            "MaxPool", [x], [y], f"pool{layer}", kernel_shape=[2, 2], strides=[2, 2]
        )

    def connect(layer, x, y):
        weights = name_weights(layer, "weight", "bias")
        return helper.make_node("Gemm", [x, *weights], [y], f"full{layer}", transB=1)

    nodes = [
        convolve(0, "image", "c0"),
        normalize(1, "c0", "n1"),
        helper.make_node("Relu", ["n1"], ["r2"], "relu2"),
        pool(3, "r2", "p3"),
        convolve(4, "p3", "c4"),
        normalize(5, "c4", "n5"),
        helper.make_node("Relu", ["n5"], ["r6"], "relu6"),
        pool(7, "r6", "p7"),
        helper.make_node("Flatten", ["p7"], ["f8"], "flatten8", axis=1),
        connect(9, "f8", "g9"),
        helper.make_node("Relu", ["g9"], ["r10"], "relu10"),
        connect(11, "r10", "scores"),
    ]
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(value, name) for name, value in state.items() if name in used],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="train_digits",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def write_images(pixels, labels):
    folder = _FOLDER / "images"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = [f"{number:03}_label{label}.png" for number, label in enumerate(labels)]
    for name, image in zip(names, pixels):
        PIL.Image.fromarray(image).save(folder / name, optimize=True)
    return names


def write_scores(names, labels, scores):
    rows = [
        json.dumps({"file": name, "label": int(label), "scores": [float(f"{s:.9g}") for s in row]})
        for name, label, row in zip(names, labels, scores)
    ]
    text = '{"images": [\n' + ",\n".join(rows) + "\n]}\n"
    (_FOLDER / "expected_scores.json").write_text(text)


def main():
    torch.manual_seed(_SEED)
    (train_pixels, train_labels), (test_pixels, test_labels) = load_split()
    network = make_network()
    train(network, train_pixels, train_labels)
    model = make_model(network)

    with torch.no_grad():
        scores = network.double()(make_input(test_pixels).double()).numpy()
    accuracy = (scores.argmax(axis=1) == test_labels).mean()
    second, best = numpy.sort(scores, axis=1)[:, -2:].T
    print(f"{len(test_labels)} held-out images, accuracy {accuracy:.2%}, "
          f"smallest margin {(best - second).min():.3f}")  # fmt: skip
    if accuracy < _LOWEST_ACCURACY:
        raise SystemExit(f"Accuracy ({accuracy:.2%}) is below {_LOWEST_ACCURACY:.0%}.")
    if (best - second).min() < _LOWEST_MARGIN:
        raise SystemExit(f"A margin ({(best - second).min()}) is below {_LOWEST_MARGIN}.")

    onnx.save(model, _FOLDER / "digits.onnx")
    write_scores(write_images(test_pixels, test_labels), test_labels, scores)


if __name__ == "__main__":
    main()
