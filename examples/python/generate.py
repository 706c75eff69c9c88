"""Asks a model:  generate.py PROGRAM MESSAGE"""

import sys

import gumbel

with gumbel.open(sys.argv[1]) as model:
    stream = model.chat_stream([{"role": "user", "content": sys.argv[2]}], max_new_tokens=200, seed=7)
    for delta in stream:
        print(delta, end="", flush=True)
    print(f"\n({stream.result.usage.generated_tokens} tokens, seed {stream.result.seed})")
