"""Gemma 4's text model, small enough to train in minutes.

Parameter names are those of a released checkpoint below `model.language_model.`. The differences between layers are
Gemma 4's own: sliding layers see a window, full layers see everything, have wider heads, and use their keys as values.
"""
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

CONFIG = dict(
    model_type="gemma4_text", vocab_size=2048, hidden_size=256, intermediate_size=384, num_hidden_layers=8,
    num_attention_heads=4, num_key_value_heads=2, num_global_key_value_heads=1, head_dim=32, global_head_dim=64,
    hidden_activation="gelu_pytorch_tanh", max_position_embeddings=2048, rms_norm_eps=1e-6, sliding_window=64,
    layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 2, final_logit_softcapping=30.0,
    attention_k_eq_v=True, num_kv_shared_layers=0, hidden_size_per_layer_input=0, vocab_size_per_layer_input=2048,
    use_double_wide_mlp=False, enable_moe_block=False, tie_word_embeddings=True, attention_bias=False,
    attention_dropout=0.0, initializer_range=0.02, use_cache=True, pad_token_id=0, eos_token_id=1, bos_token_id=2,
    rope_parameters=dict(
        sliding_attention=dict(rope_type="default", rope_theta=10000.0),
        full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1000000.0)),
)
FULL = "full_attention"
Masks = tuple[BlockMask | Tensor, BlockMask | Tensor]     # of sliding layers, of full layers


class Norm(nn.Module):
    """RMS norm in float32; without a weight where Gemma has none (the values)."""

    def __init__(self, size: int, eps: float, start: float | None = 1.0):
        super().__init__()
        self.size, self.eps = size, eps
        self.weight = None if start is None else nn.Parameter(torch.full((size,), start))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (self.size,), self.weight, self.eps)


def frequencies(head_dim: int, rope: dict) -> Tensor:
    """Angle per position of each pair of a head; a proportional rope leaves the last pairs unturned."""
    turned = int(head_dim * rope.get("partial_rotary_factor", 1.0)) // 2
    inverse = rope["rope_theta"] ** (-torch.arange(turned).float() * 2 / head_dim)
    return torch.cat([inverse, torch.zeros(head_dim // 2 - turned)])


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turns the pairs (i, i + half) of the last dimension. x: [batch, heads, length, head_dim]."""
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | Tensor) -> Tensor:
    """Attention with scores as they are; block masks skip what nobody sees, but a CPU cannot train with them."""
    if isinstance(mask, Tensor):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0, enable_gqa=True)
    return flex_attention(q, k, v, block_mask=mask, scale=1.0, enable_gqa=True)


class Attention(nn.Module):
    def __init__(self, c: dict, full: bool):
        super().__init__()
        self.heads = c["num_attention_heads"]
        self.size = c["global_head_dim"] if full else c["head_dim"]
        self.kv_heads = c["num_global_key_value_heads"] if full else c["num_key_value_heads"]
        hidden, eps = c["hidden_size"], c["rms_norm_eps"]
        self.q_proj = nn.Linear(hidden, self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.size, bias=False)
        self.v_proj = None if full else nn.Linear(hidden, self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, hidden, bias=False)
        # Gemma 4 does not scale the scores; the norms' weights do.
        self.q_norm = Norm(self.size, eps, self.size ** -0.25)
        self.k_norm = Norm(self.size, eps, self.size ** -0.25)
        self.v_norm = Norm(self.size, eps, None)
        rope = c["rope_parameters"][FULL if full else "sliding_attention"]
        self.register_buffer("inverse", frequencies(self.size, rope), persistent=False)

    def angles(self, x: Tensor) -> Tensor:
        return torch.arange(x.shape[1], device=x.device).float()[:, None] * self.inverse

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b, n, _ = x.shape
        k = self.k_proj(x).view(b, n, self.kv_heads, self.size)
        v = k if self.v_proj is None else self.v_proj(x).view(b, n, self.kv_heads, self.size)
        return rotate(self.k_norm(k).transpose(1, 2), self.angles(x)), self.v_norm(v).transpose(1, 2)

    def forward(self, x: Tensor, mask: BlockMask | Tensor) -> Tensor:
        b, n, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(b, n, self.heads, self.size)).transpose(1, 2)
        q, (k, v) = rotate(q, self.angles(x)), self.keys_and_values(x)
        kind = torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else torch.float32
        out = attend(q.to(kind), k.to(kind), v.to(kind), mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, n, -1))


class Mlp(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c: dict, full: bool):
        super().__init__()
        hidden, eps = c["hidden_size"], c["rms_norm_eps"]
        self.full = full
        self.self_attn = Attention(c, full)
        self.mlp = Mlp(c)
        self.input_layernorm = Norm(hidden, eps)
        self.post_attention_layernorm = Norm(hidden, eps, 0.5)
        self.pre_feedforward_layernorm = Norm(hidden, eps)
        self.post_feedforward_layernorm = Norm(hidden, eps, 0.5)
        self.layer_scalar = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor, masks: Masks) -> Tensor:
        attended = self.self_attn(self.input_layernorm(x), masks[self.full])
        x = x + self.post_attention_layernorm(attended)
        x = x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        return x * self.layer_scalar


class Gemma4(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.config = c
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c, kind == FULL) for kind in c["layer_types"])
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])
        for name, p in self.named_parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.04 if "embed" in name else p.shape[1] ** -0.5)

    def forward(self, tokens: Tensor, masks: Masks) -> Tensor:
        x = self.embed_tokens(tokens) * math.sqrt(self.config["hidden_size"])
        for layer in self.layers:
            x = layer(x, masks)
        logits = F.linear(self.norm(x), self.embed_tokens.weight).float()
        cap = self.config["final_logit_softcapping"]
        return torch.tanh(logits / cap) * cap

    def loss(self, tokens: Tensor, targets: Tensor, masks: Masks) -> Tensor:
        return F.cross_entropy(self(tokens, masks).flatten(0, 1), targets.flatten(), ignore_index=-100)


def make_masks(document: Tensor, window: int, blocks: bool) -> Masks:
    """Causal masks; a token sees its own document only. document: [batch, length]."""
    def full(b, h, q, k):
        return (q >= k) & (document[b, q] == document[b, k])

    def sliding(b, h, q, k):
        return full(b, h, q, k) & (q - k < window)

    batch, length = document.shape
    if blocks:
        return tuple(create_block_mask(f, batch, None, length, length, device=document.device, _compile=True)
                     for f in (sliding, full))
    b = torch.arange(batch, device=document.device)[:, None, None, None]
    at = torch.arange(length, device=document.device)
    return tuple(f(b, None, at[:, None], at[None, :]) for f in (sliding, full))
