#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares gumbel's renderings of chat templates with those of transformers' apply_chat_template.

    check_templates.py RENDER_CHAT FOLDER_OR_TEMPLATE... [--count N] [--seed S] [--verbose]

RENDER_CHAT is the program of tests/oracle/render_chat.c, a FOLDER has *.jinja files. N random conversations are
rendered with each template. Equal means the same text, or that both refuse. In hostile conversations a marker that
comes from the caller must be tainted wherever it stands, and nothing that looks like a special token of the template
may be. Where a template fails on content parts or on arguments as objects, or prints them as Python does, gumbel
gives it texts (docs/chat.md); such renderings are compared with transformers' of these texts.
Needs transformers and jinja2.
"""
import argparse
import collections
import copy
import datetime
import json
import pathlib
import random
import re
import subprocess
import sys

import transformers.utils.chat_template_utils as chat

from conversations import MARKER, Conversations

TOKENS = dict(bos_token="<|bos|>", eos_token="<|eos|>", pad_token="<pad>", unk_token="<unk>")
NOW = 1790000000
REFUSED = object()


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, tz)


chat.datetime = FixedTime


def transformers_text(template, case, messages):
    messages = [{k: v for k, v in message.items() if v is not None} for message in messages]
    if "developer" not in template:
        for message in messages:
            message["role"] = message["role"].replace("developer", "system")
    try:
        rendered, _ = chat.render_jinja_template([messages], tools=case["tools"], chat_template=template,
                                                 continue_final_message=case["goes_on"],
                                                 add_generation_prompt=case["generate"],
                                                 **{**TOKENS, **case["variables"]})
        return rendered[0]
    except Exception as error:  # a template can raise anything
        return REFUSED, f"{type(error).__name__}: {error}"


def joined(message):
    if isinstance(message.get("content"), list):
        message["content"] = "\n".join(part["text"] for part in message["content"])


def written(message):
    for call in message.get("tool_calls", []):
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)


def filled(message):
    if message.get("content") is None:
        message["content"] = ""


def forms(messages):
    """The messages with texts in place of parts, of arguments, and of nothing."""
    for number in range(1, 8):
        changed = copy.deepcopy(messages)
        for message in changed:
            for bit, change in enumerate((joined, written, filled)):
                if number >> bit & 1:
                    change(message)
        if changed != messages:
            yield changed


def prints_structures(text, messages):
    return "[{'type': 'text', 'text': " in text or any(
        repr(call["function"]["arguments"]) in text for message in messages for call in message.get("tool_calls", []))


def ask(process, template, case):
    job = dict(template=template, special_tokens=TOKENS, messages=json.dumps(case["messages"]),
               kwargs=json.dumps(case["variables"]), generate=case["generate"], time=NOW)
    if case["tools"] is not None:
        job["tools"] = json.dumps(case["tools"])
    job["continue"] = case["goes_on"]
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def compare(template, case, ours):
    """What the case is counted as, and what to tell about it."""
    theirs = transformers_text(template, case, case["messages"])
    text = ours.get("text", REFUSED)
    failed = isinstance(theirs, tuple)
    if text is REFUSED and failed:
        return "both refuse", f"{ours['error']}  [{theirs[1]}]"
    if text is not REFUSED and text == theirs:
        return "equal", None
    if text is not REFUSED and (failed or prints_structures(theirs, case["messages"])):
        for messages in forms(case["messages"]):
            if transformers_text(template, case, messages) == text:
                return "equal as texts", None
    if text is REFUSED:
        return "refused", ours["error"]
    return ("only here", theirs[1]) if failed else ("DIFFERENT", (text, theirs))


def check_taint(ours):
    """None, or what is wrong with the taint of a rendering."""
    data = ours["text"].encode()
    tainted = bytearray(len(data))
    for start, end in ours["tainted"]:
        tainted[start:end] = b"\1" * (end - start)
    for match in re.finditer(rb"<\|[a-z_]+\|>", data, re.IGNORECASE):
        marks = set(tainted[match.start():match.end()])
        hostile = match.group().upper() == MARKER.encode()
        if marks != {1 if hostile else 0}:
            return f"{match.group().decode()} at {match.start()} is {'not ' * hostile}tainted"
    return None


def check(process, path, count, seed, verbose):
    template = path.read_text()
    counts, reasons = collections.Counter(), collections.Counter()
    for number in range(count):
        drawn = random.Random(f"{seed} {path.name} {number}")
        case = Conversations(drawn, hostile=number % 3 == 0).draw()
        ours = ask(process, template, case)
        outcome, reason = compare(template, case, ours)
        wrong = check_taint(ours) if "text" in ours and number % 3 == 0 else None
        if wrong:
            outcome, reason = "TAINT", wrong
        counts[outcome] += 1
        if outcome in ("refused", "only here") or (verbose and outcome == "both refuse"):
            reasons[f"{outcome}: {reason}"] += 1
        elif outcome in ("DIFFERENT", "TAINT"):
            reasons[f"{outcome} in case {number}"] += 1
            if verbose:
                print(path.name, number, json.dumps(case), reason, sep="\n")
    print(f"{path.name}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    for reason, n in reasons.most_common(30 if verbose else 3):
        print(f"    {n} x {reason}")
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("render_chat")
    parser.add_argument("templates", nargs="+", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    paths = [file for path in options.templates
             for file in (sorted(path.glob("**/*.jinja")) if path.is_dir() else [path])]
    total = collections.Counter()
    with subprocess.Popen([options.render_chat], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for path in paths:
            total += check(process, path, options.count, options.seed, options.verbose)
        process.stdin.close()
    print(f"{len(paths)} templates: " + ", ".join(f"{n} {what}" for what, n in sorted(total.items())))
    sys.exit(1 if not paths or total["DIFFERENT"] + total["TAINT"] + total["refused"] + total["only here"] else 0)


main()
