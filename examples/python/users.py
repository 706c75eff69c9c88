"""Answers several users at once:  users.py PROGRAM MESSAGE ...

Each gets the answer that it would get alone."""

import asyncio
import sys

import gumbel


async def answer(model: gumbel.Model, user: int, message: str) -> None:
    reply = await model.achat([{"role": "user", "content": message}], max_new_tokens=100, seed=user)
    print(f"{user}: {reply} ({reply.usage.generated_tokens} tokens, {reply.usage.answer_seconds:.1f} s)")


async def main() -> None:
    with gumbel.open(sys.argv[1], slots=4) as model:
        await asyncio.gather(*(answer(model, user, message) for user, message in enumerate(sys.argv[2:], 1)))


asyncio.run(main())
