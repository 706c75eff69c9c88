# SPDX-License-Identifier: Apache-2.0
"""Schemas by the package jsonschema: what is drawn from a grammar validates, and what validates is taken."""
import json
import os
import random
import re
import unittest

from cases import Probe, all_schemas, need

jsonschema = need("jsonschema")
WALKS = 4 if "GUMBEL_SHORT_TESTS" in os.environ else 12
SPELLINGS = [{"space": "flexible", "longest_space": 2}, {"space": "none"}, {"space": "single"},
             {"space": "none", "in_order": True}]


SPACES = r"[\\t\\n\\v\\f\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]"


def search(validator, pattern, instance, schema):
    """As ECMA 262 has it: classes of ASCII alone but for \\s, and $ is the end."""
    python = re.sub(r"\\s", SPACES, re.sub(r"\$$", r"\\Z", pattern))
    if isinstance(instance, str) and not re.search(python, instance, re.ASCII):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": search})
OLD_VALIDATOR = jsonschema.validators.extend(jsonschema.Draft7Validator, {"pattern": search})


def validator_of(schema):
    if isinstance(schema, dict) and ("draft-07" in schema.get("$schema", "") or "dependencies" in schema):
        return OLD_VALIDATOR(schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    if isinstance(schema, dict) and schema.get("nullable"):
        schema = {**schema, "type": [schema["type"], "null"]}
    return VALIDATOR(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


class Instances:
    """Values that may or may not satisfy a schema: of what stands in it, and of any kind."""

    def __init__(self, seed, schema):
        self.random = random.Random(seed)
        self.names, self.values = ["a", "b", "zz"], ["", "a", "ab", "abc", "12345", "x y", 0, 1, 2, -3, 10, 2.5, None, True, False, [], {}]
        self.collect(schema)

    def collect(self, schema):
        if isinstance(schema, dict):
            self.names += schema.get("properties", {}) if isinstance(schema.get("properties"), dict) else []
            self.values += schema.get("enum", []) if isinstance(schema.get("enum"), list) else []
            self.values += [schema["const"]] if "const" in schema else []
            for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
                if keyword in schema and isinstance(schema[keyword], (int, float)):
                    self.values += [schema[keyword], schema[keyword] + 1, schema[keyword] - 1]
            schema = list(schema.values())
        for part in schema if isinstance(schema, list) else []:
            self.collect(part)

    def draw(self, depth=0):
        kind = self.random.random()
        if depth > 3 or kind < 0.5:
            return self.random.choice(self.values)
        if kind < 0.7:
            return [self.draw(depth + 1) for _ in range(self.random.randrange(4))]
        names = self.random.sample(sorted(set(self.names)), min(self.random.randrange(5), len(set(self.names))))
        return {name: self.draw(depth + 1) for name in names}


def has_unchecked_format(schema):
    """Formats that the package asserts with the help of others, which may not be there."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    if isinstance(schema, dict):
        return schema.get("format", "date") not in checker.checkers or any(map(has_unchecked_format, schema.values()))
    return isinstance(schema, list) and any(map(has_unchecked_format, schema))


def shuffled(value, draw):
    """The value with its members in another order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name], draw) for name in draw.sample(list(value), len(value))}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


def can_be_spelled(value):
    """Numbers that Python writes with an exponent, or as an integer with a point, are not written so here; nor are
    those that a double cannot hold."""
    return not re.search(r"\de[+-]|\d\.0\b|Infinity", json.dumps(value))


class Answers(unittest.TestCase):
    def setUp(self):
        self.probe = Probe()

    def tearDown(self):
        self.assertEqual(self.probe.close(), 0)

    def test_walks_are_valid(self):
        schemas = all_schemas()
        self.assertGreaterEqual(len(schemas), 300)
        whole = 0
        for number, schema in enumerate(schemas):
            options = SPELLINGS[number % len(SPELLINGS)]
            answer = self.probe.ask(schema, options, walks=WALKS, seed=number)
            if "error" in answer:
                self.assert_unsatisfiable(schema, answer)
                continue
            for is_whole, text in answer["walks"]:
                whole += is_whole
                if is_whole:
                    with self.subTest(schema=schema, text=text):
                        validator_of(schema).validate(json.loads(text))
        self.assertGreater(whole, 0.8 * WALKS * len(schemas))

    def assert_unsatisfiable(self, schema, answer):
        """The generator makes schemas that nothing satisfies; no other error is right."""
        with self.subTest(schema=schema):
            self.assertRegex(answer["error"], "no value satisfies|allows no text|in order, beside")
            if "in order" not in answer["error"]:
                instances = Instances(1, schema)
                self.assertFalse(any(validator_of(schema).is_valid(instances.draw()) for _ in range(300)))

    def test_valid_instances_are_taken(self):
        taken = 0
        for number, schema in enumerate(all_schemas()):
            instances = Instances(number, schema)
            validator = validator_of(schema)
            values = [value for value in (instances.draw() for _ in range(300)) if can_be_spelled(value)]
            texts = sorted({json.dumps(value, ensure_ascii=False) for value in values})
            answer = self.probe.ask(schema, {"space": "single"}, texts=texts)
            for text, accepted in zip(texts, answer.get("accepted", [False] * len(texts))):
                with self.subTest(schema=schema, text=text):
                    is_valid = validator.is_valid(json.loads(text))
                    self.assertTrue(accepted == is_valid or (not accepted and has_unchecked_format(schema)))
                    taken += accepted
        self.assertGreater(taken, 1500)

    def test_other_orders_are_taken(self):
        """What is drawn in a schema's order is taken in any other."""
        taken = 0
        for number, schema in enumerate(all_schemas()):
            if "const" in schema if isinstance(schema, dict) else False:
                continue  # members of a const stand in its order
            drawn = self.probe.ask(schema, {"space": "none", "in_order": True}, walks=WALKS, seed=number)
            values = [json.loads(text) for is_whole, text in drawn.get("walks", []) if is_whole]
            values = [value for value in values if can_be_spelled(value)]
            texts = [json.dumps(shuffled(value, random.Random(number)), ensure_ascii=False) for value in values]
            answer = self.probe.ask(schema, {"space": "single"}, texts=texts)
            for text, accepted in zip(texts, answer.get("accepted", [])):
                with self.subTest(schema=schema, text=text):
                    self.assertTrue(accepted)
                    taken += 1
        self.assertGreater(taken, 2000 * WALKS / 12)


if __name__ == "__main__":
    unittest.main()
