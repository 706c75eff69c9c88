# SPDX-License-Identifier: Apache-2.0
"""Random conversations with tools, results, reasoning and variables, as transformers' apply_chat_template takes them."""
import string

MARKER = "<|HOSTILE|>"  # a special token of nobody, put into texts that come from users
WORDS = ["sky", "Blue", "42", "3.5", "naïve", "日本", "😀", "a'b", 'say "hi"', "{{ x }}", "{% if %}", "back\\slash",
         "tab\there", "&lt;", "<b>", "null", "None", "[1, 2]", "- item", "# head", "\u00a0nb", "\u2028"]
SPACES = [" ", " ", " ", "\n", "\n\n", "  ", "\t"]
KINDS = ["string", "integer", "number", "boolean", "array", "object"]


class Conversations:
    """Draws conversations; with hostile, the marker stands in every text that a caller gives."""

    def __init__(self, random, hostile):
        self.random, self.hostile = random, hostile

    def chance(self, probability):
        return self.random.random() < probability

    def text(self, empty=0.05):
        if self.chance(empty):
            return ""
        pieces = []
        for _ in range(self.random.randint(1, 6)):
            pieces += [self.random.choice(WORDS), self.random.choice(SPACES)]
        if self.chance(0.7):
            pieces.pop()
        if self.chance(0.15):
            pieces.insert(0, self.random.choice(SPACES))
        if self.hostile:
            pieces.insert(self.random.randrange(len(pieces) + 1), MARKER)
        return "".join(pieces)

    def name(self):
        name = self.random.choice(["get_weather", "search", "add", "python", "send-mail", "f2"])
        return name + MARKER if self.hostile and self.chance(0.3) else name

    def id(self):
        return "".join(self.random.choices(string.ascii_letters + string.digits, k=9))

    def value(self, depth=0):
        kind = self.random.choice(["text", "text", "int", "float", "bool", "none", "list", "dict"])
        if kind in ("list", "dict") and depth > 1:
            kind = "text"
        if kind == "list":
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
        if kind == "dict":
            return self.arguments(depth + 1)
        return {"text": self.text(), "int": self.random.randint(-10**6, 10**6), "bool": self.chance(0.5),
                "float": self.random.choice([0.5, -1.25, 1e-7, 3.0, 1e20, 0.1]), "none": None}[kind]

    def arguments(self, depth=0):
        keys = self.random.sample(["city", "unit", "a", "B", "query", "n", "é"], self.random.randint(0, 3))
        if self.hostile and self.chance(0.3):
            keys.append("k" + MARKER)
        return {key: self.value(depth) for key in keys}

    def schema(self, depth=0):
        kind = self.random.choice(KINDS if depth < 2 else KINDS[:4])
        schema = {"type": kind}
        if self.chance(0.7):
            schema["description"] = self.text(0)
        if kind == "string" and self.chance(0.3):
            schema["enum"] = [self.text(0) for _ in range(self.random.randint(1, 3))]
        if kind == "array":
            schema["items"] = self.schema(depth + 1)
        if kind == "object":
            schema |= self.properties(depth + 1)
        if self.chance(0.1):
            schema["default"] = self.value(1)
        return schema

    def properties(self, depth=0):
        names = self.random.sample(["city", "unit", "a", "B", "query", "n", "é"], self.random.randint(0, 3))
        found = {"properties": {name: self.schema(depth) for name in names}}
        if self.chance(0.7):
            found["required"] = names[:self.random.randint(0, len(names))]
        return found

    def tool(self):
        function = {"name": self.name(), "description": self.text(0),
                    "parameters": {"type": "object"} | self.properties()}
        if self.chance(0.1):
            function["return"] = {"type": "string", "description": self.text(0)}
        return {"type": "function", "function": function}

    def content(self):
        if self.chance(0.12):
            return [{"type": "text", "text": self.text()} for _ in range(self.random.randint(1, 3))]
        return self.text()

    def call(self):
        return {"id": self.id(), "type": "function",
                "function": {"name": self.name(), "arguments": self.arguments()}}

    def assistant(self, calls):
        message = {"role": "assistant", "content": self.content()}
        if self.chance(0.3):
            message[self.random.choice(["reasoning_content", "reasoning", "thinking"])] = self.text(0)
        if self.chance(0.1) and isinstance(message["content"], str):
            message["content"] = f"<think>\n{self.text(0)}\n</think>\n\n{message['content']}"
        if calls:
            message["tool_calls"] = [self.call() for _ in range(self.random.choice([1, 1, 2, 3]))]
            if self.chance(0.4):
                message["content"] = self.random.choice(["", None])
        return message

    def turn(self, with_tools):
        """A question, calls and their results, and an answer."""
        messages = [{"role": "user", "content": self.content()}]
        while with_tools and self.chance(0.5):
            messages.append(self.assistant(True))
            for call in messages[-1]["tool_calls"]:
                result = {"role": "tool", "content": self.content(), "tool_call_id": call["id"]}
                if self.chance(0.6):
                    result["name"] = call["function"]["name"]
                messages.append(result)
        return messages + [self.assistant(False)]

    def variables(self):
        drawn = {}
        for name, values in dict(enable_thinking=[True, False], thinking=[True, False],
                                 reasoning_effort=["low", "medium", "high"], preserve_thinking=[True, False],
                                 date_string=["26 Jul 2026"], keep_all_reasoning=[True, False]).items():
            if self.chance(0.2):
                drawn[name] = self.random.choice(values)
        if self.hostile and self.chance(0.3):
            drawn[self.random.choice(["date_string", "model_identity", "tools_prompt"])] = self.text(0)
        return drawn

    def draw(self):
        """messages, tools or None, variables, and whether to generate or to continue."""
        with_tools = self.chance(0.5)
        messages = []
        if self.chance(0.4):
            messages.append({"role": "developer" if self.chance(0.1) else "system", "content": self.content()})
        for _ in range(self.random.choice([1, 1, 2, 3])):
            messages += self.turn(with_tools)
        ending = self.random.random()
        if ending < 0.75:  # before an answer
            messages.pop()
            generate, goes_on = self.chance(0.9), False
        else:
            generate, goes_on = self.chance(0.2), ending > 0.9
        tools = [self.tool() for _ in range(self.random.randint(1, 3))] if with_tools or self.chance(0.1) else None
        return dict(messages=messages, tools=tools, variables=self.variables(),
                    generate=generate and not goes_on, goes_on=goes_on)
