# SPDX-License-Identifier: Apache-2.0
"""A decoder's file with its cache: a prompt and steps behind it, in ONNX Runtime and in the network itself."""

import json

from exported.exported_case import make_generator
from exported.genai_builder import without_roundings

# Sequences, and how many tokens come at each step. The windows of the networks have 5 positions; a
# cache of a window has no more, and leaves those that no token fills undefined.
WINDOW = 5
_CONVERSATIONS = ((1, (7, 1, 3, 1)), (2, (5, 1)))

_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16"}


class Decoder:
    """A file in ONNX Runtime, with the cache of one conversation."""

    def __init__(self, path, head_size):
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        self._session = onnxruntime.InferenceSession(str(path), settings, ["CPUExecutionProvider"])
        self._head_size = head_size
        self._cache = {}

    def _empty(self, declared, batch):
        import numpy

        symbols = {
            "batch_size": batch,
            "kv_cache_dim": self._head_size,
            "past_sliding_length": WINDOW,
        }
        extents = [
            symbols.get(extent, 0) if isinstance(extent, str) else extent for extent in declared.shape
        ]
        return numpy.zeros(extents, _TYPES[declared.type])

    def begin(self, batch):
        self._cache = {
            item.name: self._empty(item, batch)
            for item in self._session.get_inputs()
            if item.name.startswith("past")
        }

    def step(self, tokens, begin, end, embedding):
        """The inputs and outputs of the tokens [begin, end) of each sequence."""
        import numpy

        batch = tokens.shape[0]
        given = {
            "input_ids": lambda: tokens[:, begin:end],
            "inputs_embeds": lambda: embedding[tokens[:, begin:end]],
            "attention_mask": lambda: numpy.ones((batch, end), numpy.int64),
            # Those of text alike for each of three axes, where there are as many.
            "position_ids": lambda: numpy.arange(begin, end),
        }
        inputs = {}
        for item in self._session.get_inputs():
            value = self._cache[item.name] if item.name in self._cache else given[item.name]()
            if item.name == "position_ids":
                value = numpy.broadcast_to(value, (*item.shape[:-2], batch, end - begin))
            inputs[item.name] = numpy.ascontiguousarray(value)
        outputs = {
            item.name: value
            for item, value in zip(self._session.get_outputs(), self._session.run(None, inputs))
        }
        for name in self._cache:
            now = name.replace("past_key_values", "present").replace("past.", "present.")
            self._cache[name] = outputs[now]
        return inputs, outputs


def _answers(model, tokens, begin, end):
    """What the network itself says of the tokens, by the names of the file's outputs."""
    import torch

    with torch.no_grad():
        answer = model(torch.from_numpy(tokens[:, :end]), output_hidden_states=True, use_cache=False)
    return {
        "logits": answer.logits[:, begin:end].numpy(),
        "hidden_states": answer.hidden_states[-1][:, begin:end].numpy(),
    }


def converse(name, model, path, is_quantized, has_source):
    """The runs of all conversations."""
    exact = without_roundings(path) if is_quantized else path
    config = json.loads((path.parent / "genai_config.json").read_text())
    decoder = Decoder(exact, config["model"]["decoder"]["head_size"])
    embedding = model.get_input_embeddings().weight.detach().numpy()
    generator = make_generator(name)
    runs = []
    for batch, lengths in _CONVERSATIONS:
        tokens = generator.integers(3, len(embedding), (batch, sum(lengths)))
        decoder.begin(batch)
        end = 0
        for length in lengths:
            begin, end = end, end + length
            inputs, outputs = decoder.step(tokens, begin, end, embedding)
            if has_source:
                for key, value in _answers(model, tokens, begin, end).items():
                    if key in outputs:
                        outputs[key] = value[:, -outputs[key].shape[1] :]
            runs.append((inputs, list(outputs.values())))
    return runs
