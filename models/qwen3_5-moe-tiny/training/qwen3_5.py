"""Qwen3.5's mixture-of-experts text model, small enough to train in minutes.

Parameter names are those of a released checkpoint below `model.language_model.`. Three layers of four are linear
attention, a gated delta rule (Yang et al. 2024, arXiv:2412.06464) whose state is reset where a document begins; the
fourth is gated full attention. Every layer ends in experts, of which a token takes the best few, and a shared one.
"""
import torch
import torch.nn.functional as F
from torch import Tensor, nn

CONFIG = dict(
    model_type="qwen3_5_moe_text", vocab_size=2048, hidden_size=192, num_hidden_layers=8, num_attention_heads=4,
    num_key_value_heads=2, head_dim=32, hidden_act="silu", max_position_embeddings=2048, rms_norm_eps=1e-6,
    attention_bias=False, attention_dropout=0.0, attn_output_gate=True, linear_conv_kernel_dim=4,
    linear_key_head_dim=32, linear_value_head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
    mamba_ssm_dtype="float32", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64,
    shared_expert_intermediate_size=64, router_aux_loss_coef=0.002, full_attention_interval=4,
    layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 2, tie_word_embeddings=True,
    initializer_range=0.02, use_cache=True, bos_token_id=None, eos_token_id=2045,
    rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25,
                         mrope_section=[2, 1, 1], mrope_interleaved=True),
)
FULL = "full_attention"
CHUNK = 32            # tokens whose delta rule is computed as one block of matrices
FORGET = 40.0         # a decay by exp(-40) at a document's first token wipes the state


class Norm(nn.Module):
    """RMS norm in float32 that is stored as its distance from one."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.size, self.eps = size, eps
        self.weight = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (self.size,), 1 + self.weight, self.eps)


class GatedNorm(nn.Module):
    """RMS norm of the delta rule's output, times silu of a gate; its weight is stored as it is."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.size, self.eps = size, eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (self.size,), self.weight, self.eps) * F.silu(gate.float())


# --- linear attention ---

class UnitLowerInverse(torch.autograd.Function):
    """The inverse of I + A, A strictly lower triangular, by inverting ever larger blocks of the diagonal.

    With A = [[P, 0], [C, Q]], the lower left of the inverse is -(I+Q)^-1 C (I+P)^-1; unlike a power series this never
    adds up large terms. A: [..., n, n], n a power of two.
    """

    @staticmethod
    def forward(ctx, a: Tensor) -> Tensor:
        n = a.shape[-1]
        at = torch.arange(n, device=a.device)
        inverse, size = torch.eye(n, device=a.device, dtype=a.dtype), 1
        while size < n:
            block, odd = at // size, at // size % 2 == 1
            lower_left = a * (odd[:, None] & (block[None, :] == block[:, None] - 1))
            inverse = inverse - (lower_left if size == 1 else inverse @ lower_left @ inverse)
            size *= 2
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        t = inverse.mT
        return -(t @ gradient @ t)


def chain(step: Tensor, add: Tensor) -> Tensor:
    """The state before each chunk, where chunk c turns a state S into step[c] S + add[c], all at once by doubling.

    step: [b, heads, chunks, k, k], add: [b, heads, chunks, k, v]; the first state is zero.
    """
    chunks, distance = add.shape[2], 1
    while distance < chunks:
        earlier_add = F.pad(add[:, :, :-distance], (0, 0, 0, 0, distance, 0))
        add = add + step @ earlier_add
        if 2 * distance < chunks:
            # Chunks without a partner already reach back to the start, where the state is zero.
            step = torch.cat([step[:, :, :distance], step[:, :, distance:] @ step[:, :, :-distance]], 2)
        distance *= 2
    return F.pad(add[:, :, :-1], (0, 0, 0, 0, 1, 0))


def delta_rule(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
    """S = exp(decay) S; S += beta k (v - S^T k)^T; out = S^T q, for every token, in chunks. All in float32.

    q, k: [b, heads, n, k]; v: [b, heads, n, v]; decay (a logarithm) and beta: [b, heads, n]; n a multiple of CHUNK.
    """
    b, heads, n, _ = q.shape
    q, k, v = (x.reshape(b, heads, n // CHUNK, CHUNK, -1) for x in (q, k, v))
    beta = beta.reshape(b, heads, n // CHUNK, CHUNK, 1)
    since = decay.reshape(b, heads, n // CHUNK, CHUNK).cumsum(-1)
    visible = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    fade = (since[..., :, None] - since[..., None, :]).masked_fill(~visible, -torch.inf).exp()
    since = since[..., None]
    solve = UnitLowerInverse.apply((beta * (k @ k.mT) * fade).tril(-1))
    # What a chunk's tokens write: solve @ (beta v), less what the state before the chunk already knew.
    written = solve @ (beta * v)
    known = solve @ (beta * since.exp() * k)
    kept = (since[..., -1:, :] - since).exp() * k
    eye = torch.eye(k.shape[-1], device=k.device)
    step = since[..., -1:, :].exp() * eye - kept.mT @ known
    state = chain(step, kept.mT @ written)
    out = (since.exp() * q) @ state + ((q @ k.mT) * fade) @ (written - known @ state)
    return out.reshape(b, heads, n, -1)


class LinearAttention(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.key_heads, self.heads = c["linear_num_key_heads"], c["linear_num_value_heads"]
        self.key_size, self.value_size = c["linear_key_head_dim"], c["linear_value_head_dim"]
        hidden, key, value = c["hidden_size"], self.key_heads * self.key_size, self.heads * self.value_size
        self.parts = [key, key, value]
        self.width = c["linear_conv_kernel_dim"]
        self.in_proj_qkv = nn.Linear(hidden, 2 * key + value, bias=False)
        self.in_proj_z = nn.Linear(hidden, value, bias=False)
        self.in_proj_b = nn.Linear(hidden, self.heads, bias=False)
        self.in_proj_a = nn.Linear(hidden, self.heads, bias=False)
        self.conv1d = nn.Module()
        self.conv1d.weight = nn.Parameter(torch.randn(2 * key + value, 1, self.width) * self.width ** -0.5)
        # Heads start with memories of one to a thousand tokens (Gu and Dao 2023, arXiv:2312.00752).
        dt = torch.exp(torch.empty(self.heads).uniform_(-6.9, -2.3))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))
        self.A_log = nn.Parameter(torch.empty(self.heads).uniform_(1, 8).log())
        self.norm = GatedNorm(self.value_size, c["rms_norm_eps"])
        self.out_proj = nn.Linear(value, hidden, bias=False)

    def convolve(self, x: Tensor, age: Tensor) -> Tensor:
        """Depthwise, causal, within a document. x: [b, n, channels]; age: tokens since the document's first."""
        taps = self.conv1d.weight[:, 0].float()
        out = x * taps[:, -1]
        for back in range(1, self.width):
            earlier = F.pad(x[:, :-back], (0, 0, back, 0)) * (age >= back)[..., None]
            out = out + earlier * taps[:, -1 - back]
        return F.silu(out)

    def forward(self, x: Tensor, age: Tensor) -> Tensor:
        b, n, _ = x.shape
        mixed, z = self.in_proj_qkv(x), self.in_proj_z(x)
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            beta = self.in_proj_b(x).sigmoid()
            decay = -self.A_log.exp() * F.softplus(self.in_proj_a(x) + self.dt_bias)
            decay = decay - FORGET * (age == 0)[..., None]
            q, k, v = (y.view(b, n, -1, size).transpose(1, 2) for y, size in zip(
                self.convolve(mixed.float(), age).split(self.parts, -1), (self.key_size, self.key_size, self.value_size)))
            q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
            q, k = (y.repeat_interleave(self.heads // self.key_heads, 1) for y in (q * self.key_size ** -0.5, k))
            out = delta_rule(q, k, v, decay.transpose(1, 2), beta.transpose(1, 2)).transpose(1, 2)
        return self.out_proj(self.norm(out, z.view(b, n, self.heads, -1)).reshape(b, n, -1))


# --- full attention ---

def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turns the pairs (i, i + half) of the first dimensions of a head. x: [b, heads, n, head_dim]; angles: [n, half]."""
    half = angles.shape[-1]
    cos, sin = angles.cos(), angles.sin()
    a, b, rest = x.split([half, half, x.shape[-1] - 2 * half], -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


class FullAttention(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.heads, self.kv_heads, self.size = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        hidden, eps, rope = c["hidden_size"], c["rms_norm_eps"], c["rope_parameters"]
        self.q_proj = nn.Linear(hidden, 2 * self.heads * self.size, bias=False)      # a query and a gate per head
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, hidden, bias=False)
        self.q_norm, self.k_norm = Norm(self.size, eps), Norm(self.size, eps)
        turned = int(self.size * rope["partial_rotary_factor"])
        inverse = rope["rope_theta"] ** (-torch.arange(0, turned, 2) / turned)
        self.register_buffer("inverse", inverse, persistent=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, gate = self.q_proj(x).view(b, n, self.heads, -1).chunk(2, -1)
        k, v = (p(x).view(b, n, self.kv_heads, -1) for p in (self.k_proj, self.v_proj))
        angles = torch.arange(n, device=x.device).float()[:, None] * self.inverse
        q = rotate(self.q_norm(q).transpose(1, 2), angles)
        k = rotate(self.k_norm(k).transpose(1, 2), angles)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v.transpose(1, 2)))
        out = F.scaled_dot_product_attention(q.to(mask.dtype), k.to(mask.dtype), v.to(mask.dtype), attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, n, -1) * gate.reshape(b, n, -1).sigmoid())


# --- experts ---

class SharedExpert(nn.Module):
    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """All experts compute, and those that a token did not choose count nothing: on one GPU that is fast enough."""

    def __init__(self, c: dict):
        super().__init__()
        hidden, inner = c["hidden_size"], c["moe_intermediate_size"]
        self.count, self.chosen = c["num_experts"], c["num_experts_per_tok"]
        self.gate = nn.Linear(hidden, self.count, bias=False)
        self.experts = nn.Module()
        self.experts.gate_up_proj = nn.Parameter(torch.empty(self.count, 2 * inner, hidden))
        self.experts.down_proj = nn.Parameter(torch.empty(self.count, hidden, inner))
        self.shared_expert = SharedExpert(hidden, c["shared_expert_intermediate_size"])
        self.shared_expert_gate = nn.Linear(hidden, 1, bias=False)

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Each token's share of each expert, and the load-balancing loss of Switch (arXiv:2101.03961), 1 at best."""
        with torch.autocast(x.device.type, enabled=False):
            p = self.gate(x.float()).softmax(-1)
        chosen = torch.zeros_like(p)
        for _ in range(self.chosen):
            chosen = chosen + F.one_hot((p - 2 * chosen).argmax(-1), self.count)
        shares = p * chosen / (p * chosen).sum(-1, keepdim=True)
        used = chosen.mean((0, 1)) / self.chosen
        return shares, self.count * (used * p.mean((0, 1))).sum()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shares, balance = self.route(x)
        gate, up = F.linear(x, self.experts.gate_up_proj.flatten(0, 1)).unflatten(-1, (self.count, -1)).chunk(2, -1)
        inner = F.silu(gate) * up * shares[..., None].to(up.dtype)
        out = F.linear(inner.flatten(-2), self.experts.down_proj.transpose(0, 1).flatten(1))
        return out + self.shared_expert_gate(x).sigmoid() * self.shared_expert(x), balance


# --- the model ---

class Layer(nn.Module):
    def __init__(self, c: dict, full: bool):
        super().__init__()
        self.full = full
        if full:
            self.self_attn = FullAttention(c)
        else:
            self.linear_attn = LinearAttention(c)
        self.mlp = Experts(c)
        self.input_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, x: Tensor, age: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        y = self.input_layernorm(x)
        x = x + (self.self_attn(y, mask) if self.full else self.linear_attn(y, age))
        y, balance = self.mlp(self.post_attention_layernorm(x))
        return x + y, balance


class Qwen3_5Moe(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.config = c
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c, kind == FULL) for kind in c["layer_types"])
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])
        for name, p in self.named_parameters():
            if p.ndim >= 2 and "conv1d" not in name:
                nn.init.normal_(p, std=0.04 if "embed" in name else p.shape[-1] ** -0.5)
            if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj", "down_proj.weight")):
                p.data *= (2 * c["num_hidden_layers"]) ** -0.5

    def forward(self, tokens: Tensor, age: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden states, and the experts' mean load-balancing loss."""
        x, balances = self.embed_tokens(tokens), []
        for layer in self.layers:
            x, balance = layer(x, age, mask)
            balances.append(balance)
        return self.norm(x), torch.stack(balances).mean()

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embed_tokens.weight).float()


def places(begins: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """From the marks of documents' first tokens: each token's age in its document, and the additive attention mask."""
    n = begins.shape[1]
    at = torch.arange(n, device=begins.device)
    first = torch.where(begins, at, 0).cummax(1).values
    seen = (at[None, :, None] >= at[None, None, :]) & (at[None, None, :] >= first[:, :, None])
    mask = torch.zeros(seen.shape, dtype=kind, device=begins.device).masked_fill(~seen, -torch.inf)
    return at - first, mask[:, None]
