"""Lets a model ask for the time of a place:  tool.py PROGRAM MESSAGE"""

import datetime
import sys
import zoneinfo
from typing import Any

import gumbel

TOOL = {
    "type": "function",
    "function": {
        "name": "time",
        "description": "The time of day at a place",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"enum": ["Europe/Rome", "Asia/Tokyo", "America/New_York"]}},
            "required": ["zone"],
            "additionalProperties": False,
        },
    },
}

with gumbel.open(sys.argv[1]) as model:
    messages: list[dict[str, Any]] = [{"role": "user", "content": sys.argv[2]}]
    # A small model calls where it is made to; tool_choice="auto" lets a larger one decide.
    reply = model.chat(messages, tools=[TOOL], tool_choice="time", temperature=0, max_new_tokens=200)
    for call in reply.tool_calls:
        now = datetime.datetime.now(zoneinfo.ZoneInfo(call.arguments["zone"]))
        print(f"[{call.name} {call.arguments['zone']}]")
        messages += [reply.message, {"role": "tool", "tool_call_id": call.id, "content": f"It is {now:%H:%M}."}]
    print(model.chat(messages, temperature=0, max_new_tokens=100))
