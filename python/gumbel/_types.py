"""What requests take, and what comes back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

Finish = Literal["stop", "length", "context", "stop_string"]
"""Why an answer ended: a stop token, max_new_tokens, the end of the context, or one of the texts of stop."""


class Options(TypedDict, total=False):
    """What every request may say. What is left out is as the program recommends, or the built-in default."""

    max_new_tokens: int
    """Tokens of the answer, at most; 0: until a stop token or the end of the context, the default."""
    min_new_tokens: int
    """No stop token is drawn before so many."""
    seed: int
    """Token i is drawn with seed + i; without one a seed is drawn, and told by the answer."""
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalized: Literal["usual", "generated", "all"]
    """Which tokens the three penalties count (docs/sampling.md)."""
    bias: Mapping[int, float]
    """Added to the logits of tokens, by id; -inf bans one."""
    stop: str | Sequence[str]
    """The answer ends where one of these texts comes up, and leaves it out."""
    include_stop: bool
    """The answer ends with the text of stop, not before it."""
    stop_tokens: Sequence[int]
    """Ids that end the answer, beside the program's own."""
    ignore_stop: bool
    """The program's stop tokens are ordinary ones."""
    logprobs: bool
    """Give the log-probability of each token."""
    top_logprobs: int
    """And those of so many likeliest tokens."""
    json_schema: Mapping[str, Any] | str
    """The answer is JSON that this schema (as an object, or its text) allows. Of this and the next four one at most."""
    json_object: bool
    """The answer is a JSON object."""
    regex: str
    """The whole answer matches this regular expression."""
    grammar: str
    """The answer follows this grammar, in GBNF."""
    choices: Sequence[str]
    """The answer is one of these texts."""
    reasoning_budget: int
    """Tokens of reasoning, after which it is closed."""
    draft: Literal["auto", "off", "lookup", "model"]
    """Who guesses the next tokens, so that one step verifies several: no guess changes a token. "lookup": what followed
    the last tokens before, "model": the draft head or open's draft_model, "auto": the best there is, the default."""
    draft_max: int
    """Tokens that are guessed at once, at most, which is open's draft_tokens unless it is fewer; 0: as draft="off"."""
    predicted: str | Sequence[int]
    """What the answer is likely to contain; drafts are taken from it."""
    priority: int
    """Higher ones go first."""
    deadline: float
    """Seconds from now, after which the request ends with DeadlineError."""
    prefix_cache: bool
    """False: begin with nobody's states, and leave none."""


class GenerateOptions(Options, total=False):
    """What generate and stream take."""

    show_special: bool
    """Special tokens are written out; otherwise they give no text."""


class ChatOptions(Options, total=False):
    """What chat and chat_stream take."""

    tools: Sequence[Mapping[str, Any]]
    """The tools that may be called, as in OpenAI's API."""
    tool_choice: str
    """"auto" (the default), "required", "none", or the name of the tool to call."""
    thinking: bool
    """Whether the model thinks before it answers; without this its own default holds."""
    template_kwargs: Mapping[str, Any]
    """More variables for the chat template."""
    chat_template: str
    """A Jinja template in place of the program's."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """What an answer took. Seconds are 0 where it did not come so far."""

    prompt_tokens: int
    cached_tokens: int
    """Of the prompt's, not run, since their states were kept."""
    generated_tokens: int
    queue_seconds: float
    prompt_seconds: float
    """From its slot to the first token."""
    answer_seconds: float
    """From there to the end."""
    draft_tokens: int
    accepted_tokens: int
    """Of the draft's; each saved a step."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """A token of an answer, and the text that is now certain, maybe none. ``str(piece)`` is the text."""

    text: str
    token: int
    seed: int
    """What the token was drawn with; 0 where it is the likeliest."""
    logprob: float | None
    """None unless logprobs or top_logprobs were asked for."""
    top_logprobs: tuple[tuple[int, float], ...]
    """The likeliest tokens and their log-probabilities."""

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Result:
    """What all answers have."""

    tokens: tuple[int, ...]
    """The ids that were drawn, the stop token included."""
    finish: Finish
    stop_string: str | None
    """The text of stop that ended the answer."""
    seed: int
    """Given again with the same prompt and settings, it gives the same tokens."""
    usage: Usage
    logprobs: tuple[float, ...] | None
    """For each token; None unless they were asked for."""
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] | None


@dataclasses.dataclass(frozen=True)
class Answer(Result):
    """What a prompt is continued with. ``str(answer)`` is its text."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A call of a tool that is whole and well-formed."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Delta:
    """What has become certain of a reply. ``str(delta)`` is its text."""

    type: Literal["content", "reasoning", "tool_call", "other"]
    text: str
    """To append to the content, the reasoning, or the JSON of the call's arguments."""
    call: int | None
    """Of a call: its number among the reply's calls."""
    id: str | None
    name: str | None

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Reply(Result):
    """An assistant's turn. ``str(reply)`` is its content."""

    content: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    message: dict[str, Any]
    """The reply as a message, to append to the messages before the next turn."""

    def __str__(self) -> str:
        return self.content


@dataclasses.dataclass(frozen=True)
class Info:
    """A program, and the engine that it was made ready on."""

    architecture: str
    name: str
    id: str
    """Hash of the program, in hexadecimal digits."""
    vocab_size: int
    max_context: int
    """Positions of a sequence."""
    stop_tokens: tuple[int, ...]
    bos_token: int | None
    weight_bytes: int
    sequence_state_bytes: int
    """Caches of one sequence at the program's full context."""
    has_sampler: bool
    """False: exported with logits."""
    has_tokenizer: bool
    has_chat_template: bool
    has_mask: bool
    """Answers can be held to a grammar."""
    max_top_logprobs: int
    backend: str
    threads: int
    slots: int
    """Answers that are under way at once."""
    engine: str
    """The engine in words."""
