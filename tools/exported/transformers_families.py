# SPDX-License-Identifier: Apache-2.0
"""Text networks of the transformers package of which no relative is in transformers_text.py: sparse and
hashed attention, permuted and paired sequences, layouts of pages, mixtures of experts, recurrences
between attention layers. Each goes through one of torch's exporters."""

from exported.torch_export import DYNAMO, SCRIPT, cases
from exported.transformers_subject import make_text
from exported.transformers_text import BOTH, DECODER, ENCODER, GROUPED, SEQUENCE, T5, THREE

_TOKENS = ("input_ids",)
_EXPERTS = {**GROUPED, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 24, "head_dim": 8, "norm_topk_prob": True}  # fmt: skip
_LATENT = {**DECODER, "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 12,
           "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4,
           "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 2,
           "topk_group": 1, "moe_intermediate_size": 24}  # fmt: skip
_STATES = {"mamba_d_state": 4, "mamba_d_conv": 4, "mamba_expand": 2}

_NETWORKS = {
    # Encoders.
    "big_bird": ("BigBirdConfig", "BigBirdModel",
                 {**ENCODER, "attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1}),
    "reformer": ("ReformerConfig", "ReformerModel",
                 {"vocab_size": 101, "hidden_size": 32, "num_attention_heads": 2, "attention_head_size": 16,
                  "feed_forward_size": 48, "axial_pos_embds": False, "max_position_embeddings": 64,
                  "attn_layers": ["local", "local"], "local_attn_chunk_length": 4, "is_decoder": False}),
    "xlnet": ("XLNetConfig", "XLNetModel",
              {"vocab_size": 101, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}),
    "rembert": ("RemBertConfig", "RemBertModel",
                {**ENCODER, "input_embedding_size": 16, "output_embedding_size": 24}),
    "megatron_bert": ("MegatronBertConfig", "MegatronBertModel", ENCODER),
    "splinter": ("SplinterConfig", "SplinterModel", ENCODER),
    "ernie": ("ErnieConfig", "ErnieModel", {**ENCODER, "use_task_id": True}),
    "ibert": ("IBertConfig", "IBertModel", {**ENCODER, "pad_token_id": 1, "quant_mode": False}),
    "data2vec_text": ("Data2VecTextConfig", "Data2VecTextModel", {**ENCODER, "pad_token_id": 1}),
    "flaubert": ("FlaubertConfig", "FlaubertModel",
                 {"vocab_size": 101, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "dropout": 0.0}),
    "xmod": ("XmodConfig", "XmodModel",
             {**ENCODER, "pad_token_id": 1, "default_language": "en_XX", "languages": ["en_XX", "de_DE"]}),
    "roberta_prelayernorm": ("RobertaPreLayerNormConfig", "RobertaPreLayerNormModel",
                             {**ENCODER, "pad_token_id": 1}),
    "perceiver": ("PerceiverConfig", "PerceiverForMaskedLM",
                  {"vocab_size": 101, "d_model": 32, "d_latents": 24, "num_latents": 6, "num_blocks": 1,
                   "num_self_attends_per_block": 2, "num_self_attention_heads": 4,
                   "num_cross_attention_heads": 4, "qk_channels": 16, "v_channels": 24,
                   "max_position_embeddings": 64}),
    "mra": ("MraConfig", "MraModel", ENCODER),
    "eurobert": ("EuroBertConfig", "EuroBertModel", GROUPED),
    "jina_embeddings_v3": ("JinaEmbeddingsV3Config", "JinaEmbeddingsV3Model", {**ENCODER, "pad_token_id": 1}),
    # Decoders.
    "ctrl": ("CTRLConfig", "CTRLLMHeadModel",
             {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 48, "n_positions": 64,
              "use_cache": False}),
    "openai_gpt": ("OpenAIGPTConfig", "OpenAIGPTLMHeadModel",
                   {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "gpt_bigcode": ("GPTBigCodeConfig", "GPTBigCodeForCausalLM",
                    {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
                     "use_cache": False}),
    "codegen": ("CodeGenConfig", "CodeGenForCausalLM",
                {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4,
                 "use_cache": False}),
    "mpt": ("MptConfig", "MptForCausalLM",
            {"vocab_size": 101, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64,
             "use_cache": False}),
    "biogpt": ("BioGptConfig", "BioGptForCausalLM", DECODER),
    "xglm": ("XGLMConfig", "XGLMForCausalLM",
             {"vocab_size": 101, "d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4,
              "max_position_embeddings": 64, "use_cache": False}),
    "persimmon": ("PersimmonConfig", "PersimmonForCausalLM", DECODER),
    "nemotron": ("NemotronConfig", "NemotronForCausalLM", GROUPED),
    "arcee": ("ArceeConfig", "ArceeForCausalLM", GROUPED),
    "apertus": ("ApertusConfig", "ApertusForCausalLM", GROUPED),
    "seed_oss": ("SeedOssConfig", "SeedOssForCausalLM", {**GROUPED, "head_dim": 8}),
    "cohere2": ("Cohere2Config", "Cohere2ForCausalLM", {**GROUPED, "sliding_window": 5}),
    "olmo3": ("Olmo3Config", "Olmo3ForCausalLM", {**GROUPED, "sliding_window": 5}),
    "nanochat": ("NanoChatConfig", "NanoChatForCausalLM", GROUPED),
    "ernie4_5": ("Ernie4_5Config", "Ernie4_5ForCausalLM", {**GROUPED, "head_dim": 8}),
    "hunyuan_dense": ("HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", {**GROUPED, "head_dim": 8}),
    "doge": ("DogeConfig", "DogeForCausalLM", {**GROUPED, "keep_window_size": 64}),
    "gemma3n": ("Gemma3nTextConfig", "Gemma3nForCausalLM",
                {**GROUPED, "head_dim": 8, "sliding_window": 5, "intermediate_size": 48,
                 "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 101, "altup_num_inputs": 2,
                 "num_kv_shared_layers": 0, "laurel_rank": 4, "layer_types": ["sliding_attention", "full_attention"],
                 "activation_sparsity_pattern": [0.5, 0.0]}),
    "deepseek_v3": ("DeepseekV3Config", "DeepseekV3ForCausalLM", _LATENT),
    "minicpm3": ("MiniCPM3Config", "MiniCPM3ForCausalLM", _LATENT),
    "qwen2_moe": ("Qwen2MoeConfig", "Qwen2MoeForCausalLM",
                  {**_EXPERTS, "shared_expert_intermediate_size": 24, "decoder_sparse_step": 1}),
    "qwen3_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", _EXPERTS),
    "olmoe": ("OlmoeConfig", "OlmoeForCausalLM", _EXPERTS),
    "granitemoe": ("GraniteMoeConfig", "GraniteMoeForCausalLM", _EXPERTS),
    "phimoe": ("PhimoeConfig", "PhimoeForCausalLM", _EXPERTS),
    "gpt_oss": ("GptOssConfig", "GptOssForCausalLM", {**_EXPERTS, "sliding_window": 5}),
    "dots1": ("Dots1Config", "Dots1ForCausalLM", {**_EXPERTS, "n_routed_experts": 4, "n_shared_experts": 1,
                                                  "first_k_dense_replace": 1}),
    "minimax": ("MiniMaxConfig", "MiniMaxForCausalLM",
                {**_EXPERTS, "layer_types": ["linear_attention", "full_attention"], "block_size": 4}),
    "falcon_mamba": ("FalconMambaConfig", "FalconMambaForCausalLM",
                     {"vocab_size": 101, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2,
                      "use_cache": False, "use_mambapy": False}, _TOKENS),
    "falcon_h1": ("FalconH1Config", "FalconH1ForCausalLM",
                  {**GROUPED, "mamba_d_state": 4, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8,
                   "mamba_chunk_size": 8, "mamba_n_groups": 1}),
    "bamba": ("BambaConfig", "BambaForCausalLM",
              {**GROUPED, "mamba_d_state": 4, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_chunk_size": 8,
               "attn_layer_indices": [1]}),
    "jamba": ("JambaConfig", "JambaForCausalLM",
              {**_EXPERTS, **_STATES, "use_mamba_kernels": False, "attn_layer_period": 2,
               "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_dt_rank": 4}),
    "recurrent_gemma": ("RecurrentGemmaConfig", "RecurrentGemmaForCausalLM",
                        {**GROUPED, "attention_window_size": 8, "lru_width": 32,
                         "block_types": ["recurrent", "attention"], "head_dim": 8}),
    "nemotron_h": ("NemotronHConfig", "NemotronHForCausalLM",
                   {**GROUPED, "head_dim": 8, "hybrid_override_pattern": "M*-", "num_hidden_layers": 3,
                    "mamba_num_heads": 8, "mamba_head_dim": 8, "ssm_state_size": 4, "n_groups": 1,
                    "chunk_size": 8}),
    # Both sides.
    "prophetnet": ("ProphetNetConfig", "ProphetNetForConditionalGeneration",
                   {"vocab_size": 101, "hidden_size": 32, "encoder_ffn_dim": 48, "num_encoder_layers": 2,
                    "num_encoder_attention_heads": 4, "decoder_ffn_dim": 48, "num_decoder_layers": 2,
                    "num_decoder_attention_heads": 4, "max_position_embeddings": 64, "ngram": 2,
                    "num_buckets": 8, "relative_max_distance": 16, "use_cache": False,
                    "decoder_start_token_id": 0}, BOTH),
    "bigbird_pegasus": ("BigBirdPegasusConfig", "BigBirdPegasusForConditionalGeneration",
                        {**SEQUENCE, "attention_type": "original_full"}, BOTH),
    "blenderbot": ("BlenderbotConfig", "BlenderbotForConditionalGeneration", SEQUENCE, BOTH),
    "plbart": ("PLBartConfig", "PLBartForConditionalGeneration", SEQUENCE, BOTH),
    "mvp": ("MvpConfig", "MvpForConditionalGeneration", SEQUENCE, BOTH),
    "pegasus_x": ("PegasusXConfig", "PegasusXForConditionalGeneration",
                  {**SEQUENCE, "num_global_tokens": 4, "block_size": 4}, BOTH),
    "umt5": ("UMT5Config", "UMT5ForConditionalGeneration", T5, BOTH),
}  # fmt: skip

# What torch.export does not trace.
_BY_SCRIPT = {"big_bird", "xlnet", "falcon_mamba", "jamba", "recurrent_gemma", "prophetnet", "gemma3n"}

_FIXED = {
    "xlnet": {"use_mems": False},
    "big_bird": {"sizes": ((2, 48), (3, 64))},
    "reformer": {"sizes": ((2, 8), (3, 16))},
}


def list_cases():
    for name, entry in _NETWORKS.items():
        make = make_text(name, *entry, **_FIXED.get(name, {}))
        yield from cases(f"transformers/{name}", make, (SCRIPT if name in _BY_SCRIPT else DYNAMO,))
