# SPDX-License-Identifier: Apache-2.0
"""Whisper as ONNX Runtime's generative-AI model builder writes it: a file that listens, and one that speaks with the
keys and values of the first. Expected values are the network's; the caches are ONNX Runtime's."""

from exported.exported_case import Case, Exported, make_generator
from exported.genai_builder import EXPORTER, build, save
from exported.transformers_subject import make_model, signal

_SETTINGS = {
    "vocab_size": 101,
    "num_mel_bins": 8,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_target_positions": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
# The file declares so many.
_FRAMES = 3000
_STEPS = (4, 1, 1)


def _run(path, inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), None, ["CPUExecutionProvider"])
    return dict(zip([item.name for item in session.get_outputs()], session.run(None, inputs)))


def _listen(model, path, batch):
    """The inputs and outputs of the file that listens."""
    import torch

    sound = signal(3 + batch, batch, _SETTINGS["num_mel_bins"], _FRAMES)
    inputs = {"audio_features": sound.numpy()}
    heard = _run(path, inputs)
    with torch.no_grad():
        heard["hidden_states"] = model.get_encoder()(sound).last_hidden_state.numpy()
    return inputs, heard


def _speak(model, path, heard):
    """The runs of the file that speaks to what was heard."""
    import numpy
    import torch

    hidden = torch.from_numpy(heard["hidden_states"])
    batch, heads = hidden.shape[0], _SETTINGS["decoder_attention_heads"]
    tokens = make_generator("whisper").integers(3, _SETTINGS["vocab_size"], (batch, sum(_STEPS)))
    with torch.no_grad():
        expected = model(decoder_input_ids=torch.from_numpy(tokens), encoder_outputs=(hidden,)).logits.numpy()
    cache = {name.replace("present", "past"): value for name, value in heard.items() if "cross" in name}
    empty = numpy.zeros((batch, heads, 0, _SETTINGS["d_model"] // heads), numpy.float32)
    for layer in range(_SETTINGS["decoder_layers"]):
        cache |= {f"past_{part}_self_{layer}": empty for part in ("key", "value")}
    runs, end = [], 0
    for length in _STEPS:
        begin, end = end, end + length
        inputs = {"input_ids": tokens[:, begin:end].astype(numpy.int32), **cache}
        outputs = _run(path, inputs)
        cache |= {name.replace("present", "past"): outputs[name] for name in outputs if "present" in name}
        runs.append((inputs, list({**outputs, "logits": expected[:, begin:end]}.values())))
    return runs


def _make(part):
    def make(folder):
        model = make_model("whisper", "WhisperConfig", "WhisperForConditionalGeneration", _SETTINGS)
        source = save(model, "WhisperForConditionalGeneration", folder)
        build(source, folder, "fp32", (), "cpu")
        path = folder / f"{part}.onnx"
        listened = [_listen(model, folder / "encoder.onnx", batch) for batch in (1, 2)]
        if part == "encoder":
            return Exported(path, [(inputs, list(heard.values())) for inputs, heard in listened])
        return Exported(path, [run for _, heard in listened for run in _speak(model, path, heard)])

    return Case(f"genai/whisper_{part}", EXPORTER, make)


def list_cases():
    return [_make("encoder"), _make("decoder")]
