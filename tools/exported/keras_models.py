# SPDX-License-Identifier: Apache-2.0
"""Keras models on TensorFlow through tf2onnx, and by Keras' own export: pixels with channels last, their
transposes, TensorFlow's own paddings, recurrent layers, attention. Expected values are Keras' own
predictions."""

import contextlib
import io
import os
import zlib

from exported.exported_case import TOLERANCE, Case, Exported, make_generator


def _start(name):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import keras
    import tensorflow

    tensorflow.get_logger().setLevel("ERROR")
    keras.utils.set_random_seed(zlib.crc32(name.encode()) % 2**31)
    return keras, tensorflow


def _enliven(model, name):
    """Biases, gains and statistics off what they begin with."""
    generator = make_generator(name)
    for weight in model.weights:
        value = weight.numpy()
        role = weight.path.rsplit("/", 1)[-1]
        if role in ("bias", "beta", "moving_mean"):
            weight.assign(value + 0.1 * generator.standard_normal(value.shape))
        elif role in ("gamma", "moving_variance"):
            weight.assign(value * generator.uniform(0.7, 1.4, value.shape))


def _model(name, build, shapes, opset, tolerance=TOLERANCE, integers=None):
    """`shapes` are the extents of the inputs without the batch, per run. Without `opset` Keras exports
    the model itself."""

    def make(folder):
        keras, tensorflow = _start(name)
        import onnx
        import tf2onnx

        model = build(keras)
        _enliven(model, name)
        generator = make_generator(name + " inputs")

        def draw(batch, shape):
            if integers:
                return generator.integers(0, integers, (batch, *shape)).astype("int32")
            return generator.standard_normal((batch, *shape)).astype("float32")

        batches = [draw(batch, shape) for batch, shape in zip((1, 3, 2), shapes)]
        path = folder / "model.onnx"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if opset is None:
                model(batches[0])  # Keras exports what has been called.
                model.export(str(path), format="onnx", verbose=False)
            else:
                signature = [tensorflow.TensorSpec(model.inputs[0].shape, model.inputs[0].dtype, name="x")]
                function = tensorflow.function(lambda x: model(x, training=False), signature)
                tf2onnx.convert.from_function(function, signature, opset, output_path=str(path))
        (entry,) = onnx.load(str(path)).graph.input
        runs = []
        for batch in batches:
            answers = model(batch, training=False)
            answers = answers if isinstance(answers, (list, tuple)) else [answers]
            runs.append(({entry.name: batch}, [answer.numpy() for answer in answers]))
        return Exported(path, runs, tolerance)

    return Case(f"keras/{name}", "tf2onnx" if opset else "keras export", make)


def _application(kind, extent=64, **settings):
    return lambda keras: getattr(keras.applications, kind)(
        weights=None, input_shape=(extent, extent, 3), classes=10, **settings
    )


def _image_network(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((None, None, 3)),
        layers.Conv2D(8, 3, 2, "same", activation="relu"),
        layers.DepthwiseConv2D(3, padding="same"), layers.BatchNormalization(),
        layers.Activation("swish"), layers.SeparableConv2D(12, 3, padding="same"),
        layers.MaxPooling2D(3, 2, "same"), layers.Conv2DTranspose(6, 3, 2, "same"),
        layers.UpSampling2D(2, interpolation="bilinear"), layers.LayerNormalization(),
        layers.AveragePooling2D(2, padding="same"), layers.GlobalAveragePooling2D(),
        layers.Dense(7, "softmax")])  # fmt: skip


def _recurrent(kind, **settings):
    def build(keras):
        layers = keras.layers
        return keras.Sequential([
            keras.Input((None,), dtype="int32"), layers.Embedding(40, 8, mask_zero=False),
            layers.Bidirectional(getattr(layers, kind)(10, return_sequences=True, **settings)),
            getattr(layers, kind)(6), layers.Dense(4)])  # fmt: skip

    return build


def _attention(keras):
    layers = keras.layers
    enter = keras.Input((None,), dtype="int32")
    value = layers.Embedding(50, 16)(enter)
    value = layers.MultiHeadAttention(4, 4)(value, value, use_causal_mask=True) + value
    value = layers.LayerNormalization()(value)
    value = layers.Dense(24, "gelu")(value)
    return keras.Model(enter, [layers.Dense(50)(value), layers.GlobalMaxPooling1D()(value)])


def _causal(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((None, 2)), layers.Conv1D(8, 3, padding="causal", dilation_rate=2),
        layers.LeakyReLU(0.2), layers.SpatialDropout1D(0.1), layers.Conv1D(4, 1, activation="elu"),
        layers.TimeDistributed(layers.Dense(3, "tanh"))])  # fmt: skip


def _separable(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((24, 24, 3)), layers.Conv2D(8, 3, padding="same"), layers.GroupNormalization(4),
        layers.Activation("swish"), layers.SeparableConv2D(12, 3, strides=2), layers.BatchNormalization(),
        layers.PReLU(shared_axes=[1, 2]), layers.Conv2DTranspose(6, 3, 2), layers.GlobalMaxPooling2D(),
        layers.Dense(5, "softmax")])  # fmt: skip


def _mixed_recurrent(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((10, 6)), layers.Conv1D(8, 3, padding="causal"), layers.GRU(7, return_sequences=True),
        layers.Bidirectional(layers.LSTM(5)), layers.Dense(3)])  # fmt: skip


def _volume(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((8, 8, 8, 2)), layers.Conv3D(4, 3, padding="same"), layers.MaxPooling3D(),
        layers.Conv3DTranspose(3, 2, 2), layers.UpSampling3D(2), layers.GlobalAveragePooling3D(),
        layers.UnitNormalization()])  # fmt: skip


def _conv_lstm(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((4, 12, 12, 2)), layers.ConvLSTM2D(3, 3, padding="same"), layers.Cropping2D(1),
        layers.ZeroPadding2D(2), layers.DepthwiseConv2D(3), layers.Flatten(), layers.Dense(4, "sigmoid")])  # fmt: skip


def list_cases():
    fixed = ((64, 64, 3), (64, 64, 3))
    yield _model("mobilenet_v2", _application("MobileNetV2"), fixed, 15, 3e-4)
    yield _model("efficientnet_b0", _application("EfficientNetB0"), fixed, 17, 3e-4)
    yield _model("xception", _application("Xception", 71), ((71, 71, 3),) * 2, 13, 3e-4)
    yield _model("resnet50_v2", _application("ResNet50V2"), fixed, 12, 3e-4)
    yield _model("nasnet_mobile", _application("NASNetMobile"), fixed, 18, 3e-4)
    yield _model("densenet121", _application("DenseNet121"), fixed, 11, 3e-4)
    yield _model("image_network", _image_network, ((32, 32, 3), (45, 38, 3)), 17)
    yield _model("lstm", _recurrent("LSTM"), ((7,), (11,)), 15, integers=40)
    yield _model("gru", _recurrent("GRU", reset_after=True), ((7,), (11,)), 15, integers=40)
    yield _model("simple_rnn", _recurrent("SimpleRNN"), ((7,), (11,)), 15, integers=40)
    yield _model("attention", _attention, ((9,), (14,)), 18, integers=50)
    yield _model("causal", _causal, ((20, 2), (33, 2)), 14)
    yield _model("separable", _separable, ((24, 24, 3),) * 2, None)
    yield _model("mixed_recurrent", _mixed_recurrent, ((10, 6),) * 2, None)
    yield _model("volume", _volume, ((8, 8, 8, 2),) * 2, None)
    yield _model("conv_lstm", _conv_lstm, ((4, 12, 12, 2),) * 2, None)
