# SPDX-License-Identifier: Apache-2.0
"""Networks of the transformers package over sounds: recognition, codecs, speech. Each goes through torch.export."""

from exported.torch_export import DYNAMO, Subject, cases
from exported.transformers_subject import make_model, signal, tokens, wrap

_AUDIO = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 48, "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2],
          "conv_kernel": [10, 3, 3], "num_feat_extract_layers": 3, "vocab_size": 20,
          "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}  # fmt: skip
_SOUNDS = {
    "unispeech": ("UniSpeechConfig", "UniSpeechForCTC", {**_AUDIO, "num_ctc_classes": 20}),
    "unispeech_sat": ("UniSpeechSatConfig", "UniSpeechSatForCTC", _AUDIO),
    "data2vec_audio": ("Data2VecAudioConfig", "Data2VecAudioForCTC",
                       {**_AUDIO, "num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5}),
    "sew_d": ("SEWDConfig", "SEWDForCTC",
              {**_AUDIO, "squeeze_factor": 2, "position_buckets": 8, "max_position_embeddings": 32}),
    "wav2vec2_conformer": ("Wav2Vec2ConformerConfig", "Wav2Vec2ConformerForCTC",
                           {**_AUDIO, "position_embeddings_type": "rotary", "conv_depthwise_kernel_size": 5}),
}  # fmt: skip


def _sound(name, config_class, model_class, settings):
    def make():
        model = make_model(name, config_class, model_class, settings)
        inputs = [(signal(1, 1, 800),), (signal(2, 3, 1111),)]
        return Subject(wrap(model, ("input_values",)), inputs, {0: {0: "batch", 1: "samples"}})

    return make


def _single(name, config_class, model_class, settings, key, extents, axes, choose=None, gain=1.0, **fixed):
    """One tensor in: extents of two runs."""

    def make():
        model = make_model(name, config_class, model_class, settings, gain)
        inputs = [(signal(seed, *each),) for seed, each in enumerate(extents)]
        return Subject(wrap(model, (key,), choose, **fixed), inputs, {0: axes}, 3e-4)

    return make


def _speech_to_text():
    settings = {"vocab_size": 101, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
                "decoder_ffn_dim": 48, "input_feat_per_channel": 10, "conv_channels": 16,
                "max_source_positions": 64, "max_target_positions": 32, "use_cache": False}  # fmt: skip
    model = make_model("speech_to_text", "Speech2TextConfig", "Speech2TextForConditionalGeneration", settings)
    inputs = [
        (signal(b, b, 24, 10), tokens(b, b, length, 101)) for b, length in ((2, 5), (3, 9))
    ]
    axes = {0: {0: "batch"}, 1: {0: "batch", 1: "length"}}
    return Subject(wrap(model, ("input_features", "decoder_input_ids")), inputs, axes)


def _moonshine():
    settings = {"vocab_size": 101, "hidden_size": 32, "intermediate_size": 48, "encoder_num_hidden_layers": 2,
                "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4,
                "decoder_num_attention_heads": 4, "use_cache": False}  # fmt: skip
    model = make_model("moonshine", "MoonshineConfig", "MoonshineForConditionalGeneration", settings)
    inputs = [(signal(b, b, 3000), tokens(b, b, length, 101)) for b, length in ((1, 5), (2, 9))]
    axes = {0: {0: "batch"}, 1: {0: "batch", 1: "length"}}
    return Subject(wrap(model, ("input_values", "decoder_input_ids"), use_cache=False), inputs, axes)


def _vits():
    settings = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                "ffn_dim": 48, "flow_size": 32, "spectrogram_bins": 33, "upsample_initial_channel": 32,
                "upsample_rates": [4, 2], "upsample_kernel_sizes": [8, 4], "resblock_kernel_sizes": [3],
                "resblock_dilation_sizes": [[1, 3]], "noise_scale": 0.0, "noise_scale_duration": 0.0,
                "prior_encoder_num_flows": 2, "use_stochastic_duration_prediction": False}  # fmt: skip
    model = make_model("vits", "VitsConfig", "VitsModel", settings, 0.5)
    inputs = [(tokens(b, 1, length, 40),) for b, length in ((1, 7), (2, 12))]
    return Subject(wrap(model, ("input_ids",), lambda a: a.waveform), inputs, {0: {1: "length"}}, 1e-3)


def list_cases():
    def one(name, make):
        return cases(f"transformers/{name}", make, (DYNAMO,))

    for name, entry in _SOUNDS.items():
        yield from one(name, _sound(name, *entry))
    yield from one("speech_to_text", _speech_to_text)
    yield from one("moonshine", _moonshine)
    yield from one("vits", _vits)
    yield from one("wav2vec2_bert", _single(
        "wav2vec2_bert", "Wav2Vec2BertConfig", "Wav2Vec2BertForCTC",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
         "feature_projection_input_dim": 20, "vocab_size": 20, "conv_depthwise_kernel_size": 5,
         "left_max_position_embeddings": 8, "right_max_position_embeddings": 4}, "input_features",
        ((1, 30, 20), (2, 41, 20)), {0: "batch", 1: "frames"}))
    yield from one("dac", _single(
        "dac", "DacConfig", "DacModel",
        {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_hidden_size": 32, "n_codebooks": 2,
         "codebook_size": 16, "codebook_dim": 4, "upsampling_ratios": [4, 2]}, "input_values",
        ((1, 1, 160), (2, 1, 208)), {0: "batch", 2: "samples"}, lambda a: a.audio_values))
    yield from one("hifigan", _single(
        "hifigan", "SpeechT5HifiGanConfig", "SpeechT5HifiGan",
        {"model_in_dim": 12, "upsample_initial_channel": 32, "upsample_rates": [4, 2],
         "upsample_kernel_sizes": [8, 4], "resblock_kernel_sizes": [3, 5],
         "resblock_dilation_sizes": [[1, 3], [1, 2]]}, "spectrogram", ((1, 20, 12), (2, 33, 12)),
        {0: "batch", 1: "frames"}))
