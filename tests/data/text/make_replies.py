#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes replies.json: replies and the messages that they are.

Where a format is a plain response_template, transformers' own parser must give the same message; the others'
messages are written by hand. Needs transformers >= 5.13."""

import json
import os

from transformers.utils.chat_parsing import parse_response

CALL = {"type": "function", "function": "{content}"}

FORMATS = {
    "hermes": {
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "reasoning_content": {"open": "<think>", "close": "</think>"},
            "tool_calls": {"open_pattern": r"\s*<tool_call>", "close": "</tool_call>", "repeats": True,
                           "content": "json", "transform": CALL},
            "content": {"close_pattern": r"\s*<\|im_end\|>"},
        },
    },
    "harmony": {
        "start_anchor": "<|start|>assistant",
        "fields": {
            "thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
            "content": {"open": "<|channel|>final<|message|>", "close": ["<|end|>", "<|return|>"]},
            "tool_calls": {
                "open_pattern": r"<\|channel\|>commentary to=functions\.(?P<name>\w+)[^<]*(?:<\|constrain\|>json)?<\|message\|>",
                "close": "<|call|>", "repeats": True, "content": "json",
                "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
            },
        },
    },
    "command": {
        "start_anchor": "<|CHATBOT_TOKEN|>",
        "fields": {
            "thinking": {"open": "<|START_THINKING|>", "close": "<|END_THINKING|>"},
            "content": {"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>"},
            "tool_calls": {
                "open": "<|START_ACTION|>", "close": "<|END_ACTION|>", "content": "json", "transform_each": True,
                "transform": {"type": "function", "function": {"name": "{tool_name}", "arguments": "{parameters}"}},
            },
        },
    },
    "blocks": {
        "start_anchor": "<|message_model|>",
        "fields": {
            "thinking": {"open_pattern": r"(?:<\|message_model\|>)?[^<]*<\|content_thinking\|>",
                         "close": "<|end_message|>", "repeats": True, "join": "", "content_args": {"strip": False}},
            "content": {"open_pattern": r"(?:<\|message_model\|>)?[^<]*<\|content_text\|>",
                        "close": "<|end_message|>", "repeats": True, "join": "", "content_args": {"strip": False}},
            "tool_calls": {"open_pattern": r"(?:<\|message_model\|>)?[^<]*<\|content_invoke_tool_json\|>",
                           "close": "<|end_message|>", "repeats": True, "content": "json",
                           "transform": {"type": "function",
                                         "function": {"name": "{content.name}", "arguments": "{content.args}"}}},
        },
    },
    "open_thought": {
        "start_anchor": "Assistant:",
        "fields": {
            "thinking": {"open_pattern": r"(?:^|<think>\s*)", "close": "</think>"},
            "content": {"open": "<response>\n", "close_pattern": r"\n?</response>"},
            "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "repeats": True, "content": "json",
                           "transform": CALL},
        },
    },
    "values": {
        "start_anchor": "A:",
        "fields": {
            "content": {},
            "count": {"open": "<n>", "close": "</n>", "content": "int"},
            "notes": {"open": "<meta>", "close": "</meta>", "content": "kv-lines"},
            "tags": {"open": "<tags>", "close": "</tags>", "content": "xml-inline",
                     "content_args": {"tag_pattern": r"<(?P<key>\w+)>(?P<value>.*?)</\w+>", "merge_duplicates": True,
                                      "value_parser": {"name": "json", "args": {"allow_non_json": True}}}},
        },
    },
    "overlap": {
        "start_anchor": "A:",
        "fields": {"thinking": {"open": "<x>", "close": ["END", "ENDX"]}, "content": {}},
    },
}

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "detail": {"type": "boolean"},
        "limit": {"type": ["number", "null"]},
        "options": {"$ref": "#/$defs/options"},
        "zip": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "unit": {"enum": ["C", "F"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
    "$defs": {"options": {"type": "object"}},
}}}
NOW = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
WRITE = {"name": "write_file", "parameters": {"properties": {"path": {"type": "string"}, "text": {"type": "string"}}}}
TOOLS = [WEATHER, NOW, WRITE]


def call(function, **arguments):
    return {"name": function, "arguments": arguments}


def message(content="", reasoning=None, calls=None, **others):
    result = {"content": content}
    if reasoning is not None:
        result["reasoning_content"] = reasoning
    result.update(others)
    if calls:
        result["tool_calls"] = calls
    return result


THINK = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n"
SILENT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
MODEL = "<bos><|turn>user\nHi<turn|>\n<|turn>model\n"


def qwen_call(name, **arguments):
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def q(text):
    return f'<|"|>{text}<|"|>'


CASES = []


def case(format, prompt, reply, expected, types=None, warnings=0, tools=TOOLS):
    CASES.append({"format": format, "prompt": prompt, "reply": reply, "message": expected, "types": types,
                  "warnings": warnings, "tools": tools is not None})


# ---- Qwen3.5 and 3.6 ----
case("qwen3_5", THINK, "The user greets me.\n</think>\n\nHello! How can I help?<|im_end|>",
     message("Hello! How can I help?", "The user greets me."), "rc")
case("qwen3_5", SILENT, "Hello!<|im_end|>\n<|endoftext|>", message("Hello!"), "c")
case("qwen3_5", THINK, "Cut off while it thi", message("", "Cut off while it thi"), "r")
case("qwen3_5", THINK, "\n</think>\n\nNothing to think of.", message("Nothing to think of."), "c")
case("qwen3_5", "", "<think>\nMine\n</think>\n\nYours", message("Yours", "Mine"), "rc")
case("qwen3_5", SILENT, "</think>\n\nAn end too many.", message("An end too many."), "c")
case("qwen3_5", THINK, "I look.\n</think>\n\n" + qwen_call("get_weather", city="Paris", days=3) + "<|im_end|>",
     message(None, "I look.", [call("get_weather", city="Paris", days=3)]), "rt")
case("qwen3_5", SILENT, "I look.\n\n" + qwen_call("get_weather", city="Paris") + "\n" + qwen_call("now") + "<|im_end|>",
     message("I look.", None, [call("get_weather", city="Paris"), call("now")]), "ctt")
case("qwen3_5", SILENT,
     qwen_call("get_weather", city="0044", days=" 7 ", detail="True", limit="null", options='{"a": [1, 2.5]}', zip="94103",
               tags='["x", "y"]', unit="C", either="42", more="7"),
     message(None, None, [call("get_weather", city="0044", days=7, detail=True, limit=None, options={"a": [1, 2.5]},
                               zip="94103", tags=["x", "y"], unit="C", either=42, more="7")]), "t")
case("qwen3_5", SILENT, qwen_call("get_weather", days="soon", detail="maybe", limit="1e3", options="[1]"),
     message(None, None, [call("get_weather", days="soon", detail="maybe", limit=1000.0, options="[1]")]), "t")
case("qwen3_5", SILENT, qwen_call("write_file", path="a.py", text="def f():\n    return '</parameter> <b>'\n\n\nf()"),
     message(None, None, [call("write_file", path="a.py", text="def f():\n    return '</parameter> <b>'\n\n\nf()")]), "t")
case("qwen3_5", SILENT, qwen_call("write_file", path="a", text="    indented\n</function> is no end\n"),
     message(None, None, [call("write_file", path="a", text="    indented\n</function> is no end\n")]), "t")
# Ends that are missing.
case("qwen3_5", SILENT, "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n<|im_end|>",
     message(None, None, [call("get_weather", city="Rome")]), "t")
case("qwen3_5", SILENT, "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>",
     message(None, None, [call("get_weather", city="Rome")]), "t")
case("qwen3_5", SILENT, "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter><|im_end|>",
     message(None, None, [call("get_weather", city="Rome")]), "t")
# Where tokens ran out, other parameters may be missing.
case("qwen3_5", SILENT, "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>",
     message("<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>"), "c", 1)
case("qwen3_5", SILENT, "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n<parameter=days>\n2\n</function>\n</tool_call>",
     message(None, None, [call("get_weather", city="Rome", days=2)]), "t")
case("qwen3_5", SILENT, "<tool_call>\n<function=now>\n</function>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
     message(None, None, [call("now"), call("now")]), "tt")
case("qwen3_5", SILENT, "<tool_call>\n<function=now>\n</function>\n<function=now>\n</function>\n</tool_call>",
     message(None, None, [call("now"), call("now")]), "tt")
case("qwen3_5", SILENT, "Well.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nRo",
     message("Well.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nRo"), "c", 1)
# Calls that are none.
case("qwen3_5", SILENT, 'Well. <tool_call>\n{"name": 1}\n</tool_call> And?',
     message('Well. <tool_call>\n{"name": 1}\n</tool_call> And?'), "c", 1)
case("qwen3_5", SILENT, "<tool_call>\n<function=now>\nextra words\n</function>\n</tool_call>",
     message("<tool_call>\n<function=now>\nextra words\n</function>\n</tool_call>"), "c", 1)
case("qwen3_5", SILENT, "A <tool_call>oops<tool_call>\n<function=now>\n</function>\n</tool_call>",
     message("A <tool_call>oops", None, [call("now")]), "ct", 1)
case("qwen3_5", SILENT, qwen_call("unknown", a="1"), message(None, None, [call("unknown", a="1")]), "t", 1)
# In the thought.
case("qwen3_5", THINK, "Now.\n" + qwen_call("now") + "<|im_end|>", message(None, "Now.", [call("now")]), "rt")
case("qwen3_5", THINK, "Now.\n" + qwen_call("now") + "\nDone.\n</think>\n\nBye.",
     message("Bye.", "Now.\n\nDone.", [call("now")]), "rtrc")
case("qwen3_5", THINK, "Is <tool_call> right?\n</tool_call> No.\n</think>\n\nBye.",
     message("Bye.", "Is <tool_call> right?\n</tool_call> No."), "rc", 1)
case("qwen3_5", SILENT, "a < b and <tool and </thin and <|im_en", message("a < b and <tool and </thin and <|im_en"), "c")
case("qwen3_5", SILENT, "Grüße, 世界! 👋🏽 \u00a0" + qwen_call("get_weather", city="Zürich 🏔️"),
     message("Grüße, 世界! 👋🏽", None, [call("get_weather", city="Zürich 🏔️")]), "ct")
case("qwen3_5", SILENT, "  \n ", message(""), "c")
case("qwen3_5", SILENT, "", message(""), "")
case("qwen3_5", "<|im_start|>assistant\n<think>\n\n</think>\n\nThe answer is", " 42, of course.",
     message(" 42, of course."), "c")
case("qwen3_5", "<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n<function=get_weather>\n",
     "<parameter=days>\n4\n</parameter>\n</function>\n</tool_call>",
     message(None, None, [call("get_weather", days=4)]), "t")
case("qwen3_5", "<|im_start|>assistant\n<think>\nold\n<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n",
     "<think>\nnew\n</think>\n\ny", message("y", "new"), "rc")

# ---- Qwen3 ----
def json_call(name, key, **arguments):
    return json.dumps({"name": name, key: arguments})


QWEN3_CALL = "<tool_call>\n" + json_call("get_weather", "arguments", city="Paris", days=3) + "\n</tool_call>"
case("qwen3", THINK, "I look.\n</think>\n\nSo.\n" + QWEN3_CALL + "<|im_end|>",
     message("So.", "I look.", [call("get_weather", city="Paris", days=3)]), "rct")
case("qwen3", SILENT, QWEN3_CALL + "\n" + QWEN3_CALL,
     message(None, None, [call("get_weather", city="Paris", days=3)] * 2), "tt")
case("qwen3", SILENT, "<tool_call>\nnothing\n</tool_call>", message("<tool_call>\nnothing\n</tool_call>"), "c", 1)

BARE_CALL = json_call("get_weather", "arguments", city="Paris", days=3)
for bare in (BARE_CALL + "<|im_end|>", "```json\n" + BARE_CALL + "\n```<|im_end|>", "\n" + BARE_CALL):
    case("qwen3", SILENT, bare, message(None, None, [call("get_weather", city="Paris", days=3)]), "t")
case("qwen3", SILENT, BARE_CALL + "\n" + json_call("get_weather", "arguments", city='}"{', options={"a": {}}) + "<|im_end|>",
     message(None, None, [call("get_weather", city="Paris", days=3), call("get_weather", city='}"{', options={"a": {}})]),
     "tt")
case("qwen3", SILENT, "```json\n" + BARE_CALL + "\n```\n```json\n" + BARE_CALL + "\n```<|im_end|>",
     message(None, None, [call("get_weather", city="Paris", days=3)] * 2), "tt")
case("qwen3", THINK, "I look.\n</think>\n\n" + BARE_CALL + "<|im_end|>",
     message(None, "I look.", [call("get_weather", city="Paris", days=3)]), "rt")
case("qwen3", SILENT, BARE_CALL + "<|im_end|>", message(BARE_CALL), "c", tools=None)
case("qwen3", SILENT, "So: " + BARE_CALL + "<|im_end|>", message("So: " + BARE_CALL), "c")
case("qwen3", SILENT, BARE_CALL + " Done.<|im_end|>", message(BARE_CALL + " Done."), "c", 1)
case("qwen3", SILENT, '{"name": "ada", "arguments": {}}<|im_end|>', message('{"name": "ada", "arguments": {}}'), "c", 1)

# ---- Llama 3 ----
HEADER = "<|start_header_id|>assistant<|end_header_id|>\n\n"
case("llama3", HEADER, "Hello!<|eot_id|>", message("Hello!"), "c")
case("llama3", HEADER, json_call("get_weather", "parameters", city="Rome", days=2) + "<|eom_id|>",
     message(None, None, [call("get_weather", city="Rome", days=2)]), "t")
case("llama3", HEADER, "<|python_tag|>" + json_call("now", "parameters") + "<|eom_id|>",
     message(None, None, [call("now")]), "t")
case("llama3", HEADER + "So: ", json_call("now", "parameters") + "<|eot_id|>", message(None, None, [call("now")]), "t")
case("llama3", HEADER, '{"name": "Ada", "age": 36}<|eot_id|>', message('{"name": "Ada", "age": 36}'), "c", 1)
case("llama3", HEADER, 'Write {"name": "now", "parameters": {}} to call it.<|eot_id|>',
     message('Write {"name": "now", "parameters": {}} to call it.'), "c")

# ---- No marks ----
PLAIN_CALL = json_call("get_weather", "arguments", city="Rome", days=2)
case("plain", "", " Hello! <b>x</b>\n", message(" Hello! <b>x</b>\n"), "c")
case("plain", "", PLAIN_CALL, message(None, None, [call("get_weather", city="Rome", days=2)]), "t")
case("plain", "", PLAIN_CALL, message(PLAIN_CALL), "c", tools=None)
case("plain", "", "So: " + PLAIN_CALL, message("So: " + PLAIN_CALL), "c")
case("plain", "", json_call("now", "parameters"), message(json_call("now", "parameters")), "c", 1)
case("think", THINK, "I look.\n</think>\n\n" + PLAIN_CALL,
     message(None, "I look.", [call("get_weather", city="Rome", days=2)]), "rt")

# ---- Gemma 4 ----
THOUGHT = "<|channel>thought\n"
case("gemma4", MODEL, THOUGHT + "Simple.\n<channel|>Hello!<turn|>", message("Hello!", "Simple."), "rc")
case("gemma4", MODEL + THOUGHT + "<channel|>", "Hello!<turn|>", message("Hello!"), "c")
case("gemma4", MODEL, THOUGHT + "<channel|>Hello!", message("Hello!"), "c")
case("gemma4", MODEL, f"<|tool_call>call:get_weather{{city:{q('New York, NY')},days:3}}<tool_call|><|tool_response>",
     message(None, None, [call("get_weather", city="New York, NY", days=3)]), "t")
case("gemma4", MODEL,
     THOUGHT + "Hm.<channel|>Wait. <|tool_call>call:get_weather{" + f"detail:true,limit:null,options:{{a:[1,2.5,{q('x')}],b-c:{{}}}}"
     + f",tags:[{q('{')},{q('a,b:c')}]}}<tool_call|>",
     message("Wait.", "Hm.", [call("get_weather", detail=True, limit=None, options={"a": [1, 2.5, "x"], "b-c": {}},
                                   tags=["{", "a,b:c"])]), "rct")
case("gemma4", MODEL, "<|tool_call>call:now{}<tool_call|><|tool_call>call:now{}<tool_call|><tool_call|>",
     message(None, None, [call("now"), call("now")]), "tt")
case("gemma4", MODEL, f"<|tool_call>call:get_weather{{city:{q('Rome')}}}<|tool_call>call:now{{}}",
     message(None, None, [call("get_weather", city="Rome"), call("now")]), "tt")
case("gemma4", MODEL, "<|tool_call>call:get_weather{zip:94103,days:2.0,city:true}<tool_call|>",
     message(None, None, [call("get_weather", zip="94103", days=2, city="true")]), "t")
case("gemma4", MODEL, f"<|tool_call>call:get_weather{{city:{q('Ro')},da", message(
    f"<|tool_call>call:get_weather{{city:{q('Ro')},da"), "c", 1)
case("gemma4", MODEL, "Hm <|tool_call>call:get_weather{city:Rome}<tool_call|> ok",
     message("Hm <|tool_call>call:get_weather{city:Rome}<tool_call|> ok"), "c", 1)
case("gemma4", MODEL, THOUGHT + "I call.\n<|tool_call>call:now{}<tool_call|> Done.<channel|>Bye",
     message("Bye", "I call.\n\nDone.", [call("now")]), "rtrc")
case("gemma4", MODEL, THOUGHT + "I call.\n<|tool_call>call:now{}<tool_call|><|tool_response>",
     message(None, "I call.", [call("now")]), "rt")
case("gemma4", "<|turn>model\n<|tool_call>call:now{}<tool_call|><|tool_response>response:now{}<tool_response|>",
     "It is noon.<turn|>", message("It is noon."), "c")
case("gemma4", MODEL, f"<|tool_call>call:write_file{{path:{q('a')},text:{q(chr(34) + 'quoted' + chr(34) + chr(10) + 'C:' + chr(92) + 'n')}}}<tool_call|>",
     message(None, None, [call("write_file", path="a", text='"quoted"\nC:\\n')]), "t")
case("gemma4", MODEL, "<|tool_call>call:get_weather{days:12345678901234567890}<tool_call|>",
     message(None, None, [call("get_weather", days=1.2345678901234567e19)]), "t")

# ---- Marks in prose ----
PROSE = "I could use <tool_call> here."
for format in ("qwen3", "qwen3_5"):
    case(format, "", "<think>" + PROSE + "</think>\n\nThe answer is 42.<|im_end|>",
         message("The answer is 42.", PROSE), "rc", 1)
    case(format, THINK, PROSE + "\n</think>\n\nThe <tool_call> and </tool_call> marks.<|im_end|>",
         message("The <tool_call> and </tool_call> marks.", PROSE), "rc", 2)
    case(format, SILENT, "A <think> tag, and </think> ends it.<|im_end|>",
         message("A <think> tag, and  ends it."), "c")
    case(format, SILENT, "<tool_call> <tool_call>\n</tool_call><|im_end|>",
         message("<tool_call> <tool_call>\n</tool_call>"), "c", 1)
case("qwen3", THINK, 'Now.\n<tool_call>\n{"name": "now", "arguments": {}}\n</think>\n\nBye.<|im_end|>',
     message("Bye.", "Now.", [call("now")]), "rtc")
case("qwen3", THINK, 'Now.\n<tool_call>\n{"name": "now", "argu\n</think>\n\nBye.<|im_end|>',
     message("Bye.", 'Now.\n<tool_call>\n{"name": "now", "argu'), "rc", 1)
case("qwen3_5", THINK, "I. <tool_call>\n<function=now>\n</think>\n\nBye.<|im_end|>",
     message("Bye.", "I. <tool_call>\n<function=now>"), "rc", 1)
# The end of a turn is no part of a malformed call.
case("gemma4", MODEL, "<|tool_call>call:f{n:1} and text<turn|>",
     message("<|tool_call>call:f{n:1} and text"), "c", 1)
case("gemma4", MODEL, "Use <|tool_call> for calls.<turn|>", message("Use <|tool_call> for calls."), "c", 1)
case("gemma4", MODEL, THOUGHT + "Use <|tool_call> here.<channel|>Bye.<turn|>",
     message("Bye.", "Use <|tool_call> here."), "rc", 1)
case("qwen3_5", SILENT, "<tool_call>\n<function=now>\n<|im_end|>",
     message(None, None, [call("now")]), "t")
case("qwen3", SILENT, '<tool_call>\n{"name": 1}<|im_end|>', message('<tool_call>\n{"name": 1}'), "c", 1)

# ---- Models that think alone ----
case("think", "<\uff5cAssistant\uff5c><think>\n", "Hm.\n</think>\n\n42", message("42", "Hm."), "rc")
case("think", "", "<think>\nHm.\n</think>\n\n42 </think>", message("42", "Hm."), "rc")
case("think", "", "No thought, <think>.", message("No thought, <think>."), "c")

# ---- gpt-oss ----
HARMONY = "<|start|>user<|message|>Hi<|end|><|start|>assistant"
PARIS = call("get_weather", city="Paris", days=3)
case("harmony", HARMONY, "<|channel|>analysis<|message|>They greet me.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>",
     message("Hello!", "They greet me."), "rc")
case("harmony", HARMONY, "<|channel|>final<|message|>Hello!<|return|>",
     message("Hello!"), "c")
case("harmony", HARMONY, "<|channel|>analysis<|message|>Cut off while",
     message("", "Cut off while"), "r")
case("harmony", HARMONY, '<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris", "days": 3}<|call|>',
     message(None, "I look.", [PARIS]), "rt")
case("harmony", HARMONY, '<|channel|>analysis<|message|>I look.<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris", "days": 3}<|call|>',
     message(None, "I look.", [PARIS]), "rt")
case("harmony", HARMONY, ' to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{"city": "Paris", "days": 3}<|call|>',
     message(None, None, [PARIS]), "t")
case("harmony", HARMONY, '<|channel|>commentary to=functions.get_weather<|message|>{"city": "Paris", "days": 3}',
     message(None, None, [PARIS]), "t")
case("harmony", HARMONY, '<|channel|>commentary<|message|>I look at two.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather json<|message|>{"city": "Paris", "days": 3}<|call|><|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|>',
     message("I look at two.", None, [PARIS, call("now")]), "ctt")
case("harmony", HARMONY, "<|channel|>final<|message|>Write to=functions.now and <|channel|> is a word.<|return|>",
     message("Write to=functions.now and <|channel|> is a word."), "c")
case("harmony", HARMONY, "<|channel|>commentary to=python code<|message|>print(1)<|call|>",
     message("<|channel|>commentary to=python code<|message|>print(1)<|call|>"), "c", 1)

# ---- Muse Glimmer ----
MUSE = "<|start|>user<|message|>Hi<|eot|><|start|>assistant"
SELF = " to=self<|message|>I look.<|eom|><|start|>assistant"


def atem(name, recipient=None, **arguments):
    inner = "".join(f'<atem:parameter name="{key}">{value}</atem:parameter>\n' for key, value in arguments.items())
    return (f' to={recipient or name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n{inner}'
            "</atem:invoke>\n</atem:function_calls>")


case("muse_glimmer", MUSE, SELF + " to=user<|message|>Hello!<|eot|>", message("Hello!", "I look."), "rc")
case("muse_glimmer", MUSE, " to=user<|message|>Hello!<|eot|>", message("Hello!"), "c")
case("muse_glimmer", MUSE, "<|message|>Hello!<|eot|>", message("Hello!"), "c")
case("muse_glimmer", MUSE + " to=self<|message|>", "So.<|eom|><|start|>assistant to=user<|message|>Hello!<|eot|>",
     message("Hello!", "So."), "rc")
case("muse_glimmer", MUSE, SELF + " to=self<|message|>And more.<|eom|><|start|>assistant<|message|>Hello!<|eot|>",
     message("Hello!", "I look.\n\nAnd more."), "rrc")
case("muse_glimmer", MUSE, " to=self<|message|>Cut off while", message("", "Cut off while"), "r")
case("muse_glimmer", MUSE, SELF + " to=user<|message|>Cut off", message("Cut off", "I look."), "rc")
case("muse_glimmer", MUSE, SELF + atem("get_weather", city="Paris", days=3) + "<|eot|>",
     message(None, "I look.", [PARIS]), "rt")
case("muse_glimmer", MUSE, atem("now") + "<|eot|>", message(None, None, [call("now")]), "t")
case("muse_glimmer", MUSE, SELF + atem("get_weather", city="Paris", days=3) + "<|eom|><|start|>assistant" +
     atem("now") + "<|eot|>", message(None, "I look.", [PARIS, call("now")]), "rtt")
# Two in one message, which the template never writes.
case("muse_glimmer", MUSE, atem("now").replace("</atem:function_calls>", "") +
     '<atem:invoke name="get_weather">\n<atem:parameter name="city">Rome</atem:parameter>\n</atem:invoke>\n'
     "</atem:function_calls><|eot|>", message(None, None, [call("now"), call("get_weather", city="Rome")]), "tt")
case("muse_glimmer", MUSE, " to=user<|message|>I look.<|eom|><|start|>assistant" + atem("now", "clock.now") + "<|eot|>",
     message("I look.", None, [call("now")]), "ct")
# Values stand as they are, with their white space; structures are JSON.
case("muse_glimmer", MUSE, atem("write_file", path=" a.xml", text='<a>\n"b" </atem:parameter></a>\n') + "<|eot|>",
     message(None, None, [call("write_file", path=" a.xml", text='<a>\n"b" </atem:parameter></a>\n')]), "t")
case("muse_glimmer", MUSE, atem("get_weather", city="7", tags='["a", "b"]', options='{"x": null}', detail="true") +
     "<|eot|>", message(None, None, [call("get_weather", city="7", tags=["a", "b"], options={"x": None},
                                          detail=True)]), "t")
# The end of the block may be missing, that of the function may not.
case("muse_glimmer", MUSE, atem("now").replace("</atem:function_calls>", ""), message(None, None, [call("now")]), "t")
case("muse_glimmer", MUSE, ' to=now<|message|><atem:function_calls>\n<atem:invoke name="now">\n',
     message('to=now<|message|><atem:function_calls>\n<atem:invoke name="now">'), "c", 1)
# Marks in prose.
case("muse_glimmer", MUSE, ' to=user<|message|>Write to=now, <atem:function_calls> and <atem:invoke name="now">.<|eot|>',
     message('Write to=now, <atem:function_calls> and <atem:invoke name="now">.'), "c")
case("muse_glimmer", MUSE, " to=user<|message|><atem:function_calls> begins a call.<|eot|>",
     message("<atem:function_calls> begins a call."), "c")
case("muse_glimmer", MUSE, " to=now<|message|><atem:function_calls> is a tag.<|eot|>",
     message("to=now<|message|><atem:function_calls> is a tag."), "c", 1)

# ---- Formats as transformers has them ----
HF = []


def same(format, prompt, reply, types):
    HF.append((format, prompt, reply, types))


same("hermes", "", '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"x": 1, "y": 0.1}}\n</tool_call><|im_end|>', "rt")
same("hermes", "<|im_start|>assistant\n<think>\n", 'Hm.\n</think>\n\nBye. <|im_end|>', "rc")
same("hermes", "", '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n<tool_call>{"name": "g", "arguments": {"s": "}\\n"}}</tool_call>', "tt")
same("harmony", "", '<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": [true]}<|call|>', "rt")
same("harmony", "<|start|>assistant", '<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>It is.', "rc")
same("command", "", '<|START_THINKING|>Both.<|END_THINKING|><|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}},\n {"tool_call_id": "1", "tool_name": "g", "parameters": {}}]<|END_ACTION|><|END_OF_TURN_TOKEN|>', "rtt")
same("blocks", "<|message_model|>", '<|content_thinking|>One, <|end_message|><|message_model|><|content_thinking|> two.<|end_message|><|message_model|><|content_text|>Now.<|end_message|><|message_model|>f<|content_invoke_tool_json|>{"name":"f","args":{"c":"T"}}<|end_message|><|content_model_end_sampling|>', "rrct")
same("open_thought", "", 'I think.\n</think>\n\n<response>\nYes.\n</response>\n</s>', "rc")
same("open_thought", "", 'I think.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"l": "P"}}\n</tool_call>\n</s>', "rt")
same("values", "", "There are <n> 42 </n>", "co")
same("values", "", "<meta>name: alice\nage: 30</meta>", "o")
same("values", "", "<tags><a>1</a><b>two</b><a>[3]</a></tags>", "o")
same("overlap", "", "<x>hiEND more", "rc")
same("overlap", "", "<x>hiENDX more", "rc")


def as_expected(parsed):
    names = {"thinking": "reasoning_content"}
    result = {names.get(key, key): value for key, value in parsed.items() if key != "role"}
    if "tool_calls" in result:
        result["tool_calls"] = [c["function"] for c in result["tool_calls"]]
    result.setdefault("content", None if "tool_calls" in result else "")
    return result


def main():
    for format, prompt, reply, types in HF:
        case(format, prompt, reply, as_expected(parse_response(reply, FORMATS[format], prefix=prompt)), types, 0, None)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replies.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"formats": FORMATS, "tools": TOOLS, "cases": CASES}, file, ensure_ascii=False, indent=1)
        file.write("\n")


main()
