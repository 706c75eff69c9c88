#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/assistant: what assistants of Gemma 4 guess in transformers, in float32 on the CPU.

    make_assistant_goldens.py [NAME ...]        all of them, or those named

NAME.json and NAME.assistant.json are the configurations of model and assistant. Weights are drawn as by the exporter,
the assistant's under their names with "assistant." before them. The model runs a prompt but for its last token; from
that one on the assistant guesses as transformers' SinglePositionMultiTokenCandidateGenerator has it do: from the hidden
state before the token, the model's or its own, always at the position of the prompt's last token. NAME.golden.json
holds the seed, the prompt, the guesses, and the logits that each was taken from. Needs torch, transformers and numpy.
"""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

from random_weights import round_to, tensor

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "assistant"
GUESSES = 3  # each is less exact than the one before, since hidden states are rounded to bfloat16
LIST_KINDS = dict(s="sliding_attention", f="full_attention")


def kinds(letters):
    return [LIST_KINDS[letter] for letter in letters]


TARGET = dict(vocab_size=512, hidden_size=64, intermediate_size=128, num_attention_heads=4, head_dim=16,
              global_head_dim=32, hidden_size_per_layer_input=0, final_logit_softcapping=30.0,
              max_position_embeddings=1024)
ASSISTANT = dict(vocab_size=512, hidden_size=48, intermediate_size=80, num_attention_heads=4, head_dim=16,
                 global_head_dim=32, hidden_size_per_layer_input=0, vocab_size_per_layer_input=0,
                 max_position_embeddings=1024)
# Of model and assistant: model_type, which says whether there is a wrapper, keys beside text_config, and its own keys.
CASES = {
    "shared_keys": (
        ("gemma4", {}, TARGET | dict(
            num_hidden_layers=9, num_key_value_heads=1, sliding_window=24, hidden_size_per_layer_input=16,
            vocab_size_per_layer_input=512, num_kv_shared_layers=4, use_double_wide_mlp=True,
            layer_types=kinds("ssfssfssf"))),
        ("gemma4_assistant", dict(use_ordered_embeddings=True, num_centroids=8, centroid_intermediate_top_k=2),
         ASSISTANT | dict(num_hidden_layers=4, num_kv_shared_layers=4, num_key_value_heads=1, sliding_window=24,
                          layer_types=kinds("sssf")))),
    "keys_are_values": (
        ("gemma4_text", {}, TARGET | dict(
            num_hidden_layers=6, num_key_value_heads=2, sliding_window=16, attention_k_eq_v=True,
            num_global_key_value_heads=1)),
        ("gemma4_assistant", {}, ASSISTANT | dict(
            num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, sliding_window=16, attention_k_eq_v=True,
            num_global_key_value_heads=1, final_logit_softcapping=30.0, layer_types=kinds("fsf")))),
    "unified": (
        ("gemma4_unified", {}, TARGET | dict(
            num_hidden_layers=7, num_key_value_heads=2, sliding_window=20, attention_k_eq_v=True,
            num_global_key_value_heads=2)),
        ("gemma4_unified_assistant", {}, ASSISTANT | dict(
            hidden_size=64, num_hidden_layers=2, num_key_value_heads=2, sliding_window=20, attention_k_eq_v=True,
            num_global_key_value_heads=2, layer_types=kinds("sf"),
            rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=500.0),
                                 full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5,
                                                     rope_theta=20000.0))))),
}


def config_of(model_type, beside, text):
    if model_type.endswith("_text"):
        return dict(model_type=model_type, dtype="float32", **text)
    text_type = "gemma4_unified_text" if "unified" in model_type else "gemma4_text"
    return dict(model_type=model_type, dtype="float32", **beside, text_config=dict(model_type=text_type, **text))


def text_config_of(config):
    text = dict(config.get("text_config", config))
    family = "Gemma4Unified" if "unified" in text.pop("model_type") else "Gemma4"
    text.pop("dtype", None)
    return family, getattr(transformers, family + "TextConfig")(**text, pad_token_id=None)


def fill(model, seed, name_of):
    """Gives a model its random weights; the head of tokens is the table."""
    with torch.no_grad():
        for name, value in model.state_dict(keep_vars=True).items():
            if name != "lm_head.weight":
                value.copy_(torch.from_numpy(np.array(tensor(seed, name_of(name), value.shape, "float32"))))
    return model.float().eval()


def load_target(config, seed):
    family, text = text_config_of(config)
    model = getattr(transformers, family + "ForCausalLM")._from_config(text, attn_implementation="eager")
    prefix = "model.language_model." if "text_config" in config else "model."
    return fill(model, seed, lambda name: prefix + name.removeprefix("model."))


def load_assistant(config, seed):
    """Without the short cut of ordered embeddings, whose logits are some of those that are computed without it."""
    family, text = text_config_of(config)
    own = getattr(transformers, family + "AssistantConfig")(text_config=text, use_ordered_embeddings=False,
                                                            backbone_hidden_size=config["backbone_hidden_size"])
    model = getattr(transformers, family + "AssistantForCausalLM")._from_config(own, attn_implementation="eager")
    return fill(model, seed, lambda name: "assistant." + name)


def kept(hidden):
    """As a program keeps hidden states."""
    return torch.from_numpy(round_to(hidden.numpy().astype(np.float32), "bfloat16"))


def guess(target, assistant, prompt, window):
    """Logits of each guess, and the guesses."""
    with torch.no_grad():
        run = target.model(torch.tensor([prompt[:-1]]), return_shared_kv_states=True, use_cache=False)
        shared = {kind: tuple(run.shared_kv_states[kind]) for kind in LIST_KINDS.values()}
        # Right after a prompt the reference's mask lets a query see one key more than the model's own queries see; once
        # the model has run a token its cache has no more than its window. gumbel always takes the window.
        shared["sliding_attention"] = tuple(x[:, :, -window:] for x in shared["sliding_attention"])
        token, before = prompt[-1], kept(run.last_hidden_state[:, -1:])
        logits, guesses = [], []
        while len(guesses) < GUESSES:
            embedding = target.model.embed_tokens(torch.tensor([[token]]))
            out = assistant(inputs_embeds=torch.cat([embedding, before], -1), shared_kv_states=shared,
                            position_ids=torch.tensor([[len(prompt) - 1]]), use_cache=False)
            token, before = int(out.logits[0, -1].argmax()), kept(out.last_hidden_state)
            logits.append([float(f"{x:.6g}") for x in out.logits[0, -1]])
            guesses.append(token)
    return logits, guesses


def make(name):
    of_target, of_assistant = CASES[name]
    seed = 3000 + list(CASES).index(name)
    target, assistant = config_of(*of_target), config_of(*of_assistant)
    assistant["backbone_hidden_size"] = of_target[2]["hidden_size"]
    window = of_target[2]["sliding_window"]
    prompt = np.random.default_rng(seed).integers(0, TARGET["vocab_size"], 2 * window + 11).tolist()
    logits, guesses = guess(load_target(target, seed), load_assistant(assistant, seed), prompt, window)
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(target, indent=1) + "\n")
    (OUT / f"{name}.assistant.json").write_text(json.dumps(assistant, indent=1) + "\n")
    golden = dict(weights_seed=seed, prompt=prompt, guesses=guesses, logits=logits)
    (OUT / f"{name}.golden.json").write_text(json.dumps(golden) + "\n")
    print(name, guesses)


def main():
    for name in sys.argv[1:] or CASES:
        make(name)


main()
