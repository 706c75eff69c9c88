# SPDX-License-Identifier: Apache-2.0
"""Schemas for the tests, and the program that is asked about them."""
import importlib
import json
import os
import random
import subprocess
import sys


def need(package):
    """The package; without it ctest skips the test."""
    try:
        return importlib.import_module(package)
    except ImportError:
        print(f"skipped: Python has no package {package}")
        sys.exit(77)


class Probe:
    """tests/grammar/schema/probe.c"""

    def __init__(self):
        self.process = subprocess.Popen([os.environ["GUMBEL_SCHEMA_PROBE"]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, schema, options=None, **question):
        question.update(schema=schema, options=options or {})
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the probe died of {json.dumps(schema)}"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def an_object(properties, required=(), **more):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
            **more}


TEXT, WHOLE, NUMBER, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
TREE = {"$ref": "#/$defs/tree", "$defs": {"tree": an_object(
    {"value": WHOLE, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 3}}, ["value"])}}

HAND_MADE = [
    True, {}, {"type": "object"}, {"type": "array"}, TEXT, WHOLE, NUMBER, TRUTH, {"type": "null"},
    {"type": ["string", "null"]}, {"type": ["integer", "string"], "maxLength": 3, "minimum": 5},
    {"enum": ["red", "green", "blue"]}, {"enum": [1, 2.5, None, True, "a\"b\\c\n", [1, {"a": []}], {}]},
    {"const": {"a": 1, "b": [True, None]}}, {"const": "ünï\u2028"}, {"type": "string", "enum": ["a", 1, None, "b"]},
    {"enum": ["a", "ab", "abc"], "minLength": 2}, {"enum": [1, 2, 3, 4, 5], "multipleOf": 2},
    {"enum": ["ab", "cd"], "pattern": "^a"}, {"enum": [{"k": 1}, {"k": "x"}], "properties": {"k": WHOLE}},
    {"type": "integer", "minimum": 0}, {"type": "integer", "maximum": -1}, {"type": "integer", "minimum": -17, "maximum": 305},
    {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 11}, {"type": "integer", "minimum": 1.5, "maximum": 99.5},
    {"type": "integer", "minimum": 1000, "maximum": 1000000}, {"type": "integer", "minimum": -9223372036854775808},
    {"type": "number", "minimum": 0, "maximum": 1}, {"type": "number", "exclusiveMinimum": 0}, {"type": "number", "exclusiveMaximum": 0},
    {"type": "number", "minimum": -1.25, "maximum": 3.125}, {"type": "number", "minimum": 0.001, "maximum": 0.002},
    {"type": "number", "minimum": 1e-7, "maximum": 1e6}, {"minimum": 3, "maximum": 4, "type": "number"},
    {"type": "number", "minimum": 5, "exclusiveMinimum": 5}, {"type": "integer", "multipleOf": 3},
    {"type": "integer", "multipleOf": 10}, {"type": "integer", "multipleOf": 7, "minimum": 20, "maximum": 60},
    {"type": "number", "multipleOf": 0.5}, {"type": "number", "multipleOf": 4, "minimum": 1}, {"type": "integer", "format": "int32"},
    {"type": "string", "minLength": 2}, {"type": "string", "maxLength": 4}, {"type": "string", "minLength": 3, "maxLength": 3},
    {"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "ab"}, {"type": "string", "pattern": "^a|b$"},
    {"type": "string", "pattern": "^(\\d{3}-)?\\d{4}$"}, {"type": "string", "pattern": "^\\w+\\s\\w+$", "maxLength": 9},
    {"type": "string", "pattern": "^[^\"\\\\]*$"}, {"type": "string", "pattern": "^\\\\\"$"}, {"type": "string", "pattern": "^.{2,4}$"},
    {"type": "string", "pattern": "^(a|bc)*$", "minLength": 4}, {"type": "string", "pattern": "^[À-ſ]{2}$"},
    {"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "z$"}, {"maxLength": 6}]},
    *({"type": "string", "format": name} for name in (
        "date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "uri-reference",
        "json-pointer")),
    {"type": "array", "items": WHOLE}, {"type": "array", "items": TEXT, "minItems": 2}, {"type": "array", "items": TRUTH, "maxItems": 3},
    {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 2}, {"type": "array", "maxItems": 0}, {"type": "array", "items": False},
    {"type": "array", "prefixItems": [WHOLE, TEXT], "items": False}, {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2},
    {"type": "array", "prefixItems": [TRUTH], "items": {"type": "null"}, "maxItems": 4},
    {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": WHOLE}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [WHOLE, TEXT], "additionalItems": TRUTH, "minItems": 1},
    {"type": "array", "uniqueItems": False, "items": WHOLE}, {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", 1, None]}, "minItems": 2},
    {"type": "array", "uniqueItems": True, "prefixItems": [TEXT, WHOLE, TRUTH], "items": False}, {"type": "array", "uniqueItems": True, "items": TRUTH},
    {"type": "array", "uniqueItems": True, "items": TEXT, "minItems": 2}, {"type": "array", "uniqueItems": True, "items": NUMBER, "minItems": 3},
    {"type": "array", "uniqueItems": True, "items": {"type": "integer", "minimum": -3, "maximum": 3}, "minItems": 6},
    {"type": "array", "uniqueItems": True, "items": {"type": ["string", "null", "boolean"], "pattern": "^[ab]?$"}, "minItems": 6},
    {"type": "array", "uniqueItems": True, "items": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 1}]}, "minItems": 4},
    {"type": "array", "items": WHOLE, "contains": {"maximum": 3}, "minItems": 2, "maxItems": 5}, {"type": "array", "prefixItems": [WHOLE, TEXT], "contains": {"enum": [1, "a"]}},
    {"type": "array", "items": WHOLE, "contains": {"maximum": 3}, "minContains": 2, "maxContains": 3}, {"allOf": [{"contains": {"const": 1}}, {"contains": WHOLE}], "type": "array"},
    an_object({}), an_object({"a": WHOLE}), an_object({"a": WHOLE, "b": TEXT}, ["a"]), an_object({"a": WHOLE, "b": TEXT}, ["a", "b"]),
    an_object({"a": WHOLE, "b": TEXT, "c": TRUTH, "d": {"type": "null"}}, ["c"]), an_object({"a": an_object({"b": an_object({"c": WHOLE}, ["c"])}, ["b"])}, ["a"]),
    {"type": "object", "properties": {"a": WHOLE}}, {"type": "object", "properties": {"a": WHOLE}, "additionalProperties": TEXT},
    {"type": "object", "additionalProperties": WHOLE}, {"type": "object", "required": ["x", "y"]}, {"type": "object", "required": ["x"], "additionalProperties": TRUTH},
    {"type": "object", "properties": {"a": False, "b": WHOLE}}, {"type": "object", "properties": {"a\"\\\n": WHOLE, "ü": TEXT}, "required": ["a\"\\\n"]},
    {"type": "object", "patternProperties": {"^n": WHOLE, "^t": TEXT}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"a": {"minimum": 3, "type": "integer"}, "b": {"maximum": 9}}, "additionalProperties": False},
    {"type": "object", "properties": {"name": TEXT}, "patternProperties": {"^n": {"maxLength": 3}, "^x-": True}, "additionalProperties": WHOLE},
    {"type": "object", "propertyNames": {"pattern": "^[a-c]{1,2}$"}, "additionalProperties": WHOLE}, {"type": "object", "propertyNames": {"enum": ["p", "q"]}},
    {"type": "object", "propertyNames": {"maxLength": 2}, "properties": {"ab": WHOLE, "abc": WHOLE}},
    {"type": "object", "maxProperties": 2, "additionalProperties": WHOLE}, {"type": "object", "minProperties": 1, "additionalProperties": WHOLE},
    an_object({"a": WHOLE, "b": WHOLE, "c": WHOLE}, minProperties=2), an_object({"a": WHOLE, "b": WHOLE, "c": WHOLE}, maxProperties=1),
    an_object({"a": WHOLE, "b": WHOLE, "c": WHOLE}, ["b"], minProperties=2, maxProperties=2), {"type": "object", "maxProperties": 0},
    {"anyOf": [TEXT, WHOLE]}, {"anyOf": [an_object({"a": WHOLE}, ["a"]), an_object({"b": TEXT}, ["b"])]}, {"anyOf": [{"type": "string", "maxLength": 2}, {"enum": [7, "seven"]}]},
    {"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 3}]}, {"properties": {"a": WHOLE}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
    {"oneOf": [TEXT, WHOLE, {"type": "null"}]}, {"oneOf": [{"type": "integer", "maximum": 4}, {"type": "integer", "minimum": 5}]},
    {"oneOf": [an_object({"kind": {"const": kind}, "v": value}, ["kind", "v"]) for kind, value in (("t", TEXT), ("n", NUMBER), ("l", {"type": "array"}))]},
    {"oneOf": [an_object({"a": WHOLE}, ["a"]), an_object({"b": WHOLE}, ["b"])]}, {"oneOf": [{"enum": [1, 2]}, {"enum": ["a", 3]}]},
    {"allOf": [{"minimum": 3}, {"maximum": 5}, {"type": "integer"}]}, {"allOf": [{"properties": {"a": WHOLE}, "required": ["a"]}, {"properties": {"b": TEXT}}], "type": "object"},
    {"allOf": [{"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"maximum": 2}}}], "type": "object", "properties": {"a": WHOLE}, "additionalProperties": False},
    {"allOf": [{"anyOf": [TEXT, WHOLE]}, {"anyOf": [WHOLE, {"type": "null"}]}]}, TREE,
    {"$ref": "#/definitions/p", "definitions": {"p": {"type": "integer", "minimum": 1}}}, {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": TRUTH}},
    {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}}, {"$id": "https://example.com/s", "$ref": "https://example.com/s#/$defs/a", "$defs": {"a": WHOLE}},
    {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"], "additionalProperties": False},
    {"$defs": {"e": {"anyOf": [WHOLE, {"type": "array", "prefixItems": [{"enum": ["+", "*"]}, {"$ref": "#/$defs/e"}, {"$ref": "#/$defs/e"}], "items": False, "minItems": 3}]}}, "$ref": "#/$defs/e"},
    {"type": "string", "nullable": True}, {"$ref": "#/$defs/a", "maximum": 3, "$defs": {"a": {"type": "integer", "minimum": 1}}},
    # Branches that overlap, and what some member has to be.
    {"oneOf": [TEXT, {"type": "string", "maxLength": 2}]}, {"oneOf": [{"multipleOf": 2, **WHOLE}, {"multipleOf": 3, **WHOLE}]},
    {"oneOf": [{"minimum": 3}, {"maximum": 5}, TEXT], "type": ["integer", "string"]}, {"oneOf": [{"enum": [1, 2, "a"]}, {"enum": [2, "a", "b"]}, {"const": "b"}]},
    {"type": "object", "properties": {"a": WHOLE, "b": TEXT}, "additionalProperties": False, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"oneOf": [an_object({"a": WHOLE}), an_object({"b": TEXT})]}, {"oneOf": [an_object({"a": WHOLE}, additionalProperties=False), an_object({"b": TEXT}, ["b"])]},
    {"$defs": {"t": an_object({"t": {"oneOf": [{"$ref": "#/$defs/t"}, {"type": "object", "required": ["u"]}]}})}, "$ref": "#/$defs/t"},
    {"type": "object", "not": {"additionalProperties": False, "properties": {"a": True}}}, {"type": "object", "not": {"additionalProperties": WHOLE}, "maxProperties": 2},
    {"type": "object", "not": {"patternProperties": {"^a": WHOLE}}, "properties": {"ab": TRUTH, "b": WHOLE}}, {"type": "object", "not": {"propertyNames": {"maxLength": 2}}},
    {"type": "object", "not": {"dependentRequired": {"a": ["b"]}}}, {"not": {"oneOf": [WHOLE, NUMBER, TEXT]}, "type": ["integer", "number", "string", "null"]},
    {"type": ["integer", "boolean"], "not": {"if": WHOLE, "then": {"minimum": 3}, "else": {"const": True}}}, {"type": "integer", "not": {"multipleOf": 3}},
    {"type": "array", "items": WHOLE, "maxItems": 2, "not": {"const": [1]}}, {"type": "object", "properties": {"a": WHOLE}, "not": {"enum": [{"a": 1}, {}]}, "additionalProperties": False},
    {"enum": [{"a": 1}, {"b": 1}, {}, {"a": "x"}], "not": {"additionalProperties": WHOLE}}, {"enum": [3, 4, 6, 9.0], "not": {"multipleOf": 2}},
    {"type": "array", "items": {"type": ["integer", "boolean"]}, "not": {"items": WHOLE}}, {"type": "array", "items": WHOLE, "not": {"contains": {"minimum": 3}}, "maxItems": 3},
    {"type": "array", "maxItems": 4, "items": WHOLE, "not": {"prefixItems": [True, True], "items": {"minimum": 2}}}, {"type": "array", "prefixItems": [TEXT], "items": WHOLE, "maxItems": 3, "not": {"prefixItems": [True, True], "items": {"maximum": 2}}},
    {"enum": [[1, 2], [1], [3, 1, 1], [1, 1, 3]], "not": {"prefixItems": [True], "items": {"maximum": 2}}}, {"type": "array", "items": WHOLE, "maxItems": 3, "not": {"contains": {"minimum": 3}, "minContains": 2}},
    {"oneOf": [{"type": "array", "items": WHOLE}, {"type": "array", "items": NUMBER, "minItems": 1}]},
    {"type": "array", "prefixItems": [WHOLE, TEXT], "not": {"prefixItems": [{"minimum": 3}, {"maxLength": 1}]}, "maxItems": 2},
    {"not": {"type": "string"}}, {"type": "string", "not": {"enum": ["a", "b"]}}, {"type": "integer", "not": {"const": 5}}, {"type": "number", "not": {"const": 0}},
    {"type": "string", "not": {"pattern": "^a"}}, {"type": "object", "not": {"required": ["a"]}}, {"not": {"anyOf": [TEXT, {"type": "object"}]}}, {"type": "integer", "not": {"minimum": 5}},
    {"type": "string", "not": {"minLength": 3}}, {"type": "number", "not": {"type": "integer"}}, {"type": "array", "not": {"maxItems": 1}},
    {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "integer"}}, {"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}},
    an_object({"k": {"enum": ["a", "b"]}, "a": WHOLE, "b": TEXT}, ["k"], **{"if": {"properties": {"k": {"const": "a"}}, "required": ["k"]}, "then": {"required": ["a"]}, "else": {"required": ["b"]}}),
    an_object({"a": WHOLE, "b": WHOLE}, dependentRequired={"a": ["b"]}), an_object({"a": WHOLE, "b": WHOLE}, dependentSchemas={"a": {"required": ["b"], "properties": {"b": {"minimum": 5}}}}),
    an_object({"a": WHOLE, "b": WHOLE}, dependencies={"b": ["a"]}), {"type": "object", "maxProperties": 3, "dependentRequired": {"a": ["b"], "b": ["c"], "d": []}, "additionalProperties": WHOLE}, {"title": "t", "description": "d", "default": 1, "examples": [], "$comment": "c", "type": "integer", "x-more": {}},
    {"type": "object", "properties": {"name": TEXT, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "email": {"type": "string", "format": "email"},
     "tags": {"type": "array", "items": TEXT, "maxItems": 5}, "address": an_object({"street": TEXT, "zip": {"type": "string", "pattern": "^\\d{5}$"}}, ["street"])}, "required": ["name", "age"]},
]


class Generator:
    """Random schemas of keywords that are honoured."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def schema(self, depth=0):
        kinds = [self.text, self.number, self.constant, lambda depth: {"type": self.random.choice(["boolean", "null"])}]
        if depth < 3:
            kinds += [self.array, self.object, self.object, self.branches, self.merged]
        return self.random.choice(kinds)(depth)

    def maybe(self, schema, keyword, value, chance=0.4):
        if self.random.random() < chance:
            schema[keyword] = value()

    def text(self, depth):
        schema = {"type": "string"}
        kind = self.random.random()
        if kind < 0.3:
            schema["pattern"] = self.pattern()
        elif kind < 0.45:
            schema["format"] = self.random.choice(["date", "date-time", "uuid", "ipv4", "email"])
            return schema
        self.maybe(schema, "minLength", lambda: self.random.randrange(4))
        self.maybe(schema, "maxLength", lambda: self.random.randrange(4, 12))
        return schema

    def pattern(self):
        atoms = ["[a-z]", "\\d", "x", "[^0-9]", "(?:ab|c)", "\\w", "é", ".", "[\"\\\\]"]
        body = "".join(self.random.choice(atoms) + self.random.choice(["", "", "+", "*", "?", "{1,3}"])
                       for _ in range(self.random.randrange(1, 4)))
        return self.random.choice(["^", ""]) + body + self.random.choice(["$", ""])

    def number(self, depth):
        schema = {"type": self.random.choice(["integer", "number"])}
        low = self.random.choice([self.random.randrange(-1000, 1000), round(self.random.uniform(-20, 20), 2)])
        self.maybe(schema, self.random.choice(["minimum", "exclusiveMinimum"]), lambda: low)
        self.maybe(schema, self.random.choice(["maximum", "exclusiveMaximum"]), lambda: low + self.random.choice([3, 40, 5000]))
        if schema["type"] == "integer" and not (len(schema) == 3 and schema):
            self.maybe(schema, "multipleOf", lambda: self.random.choice([1, 2, 3, 5]), 0.2)
        return schema

    def constant(self, depth):
        values = ["a", "b c", "", "é\"", 0, 1, -5, 2.5, True, False, None, [], [1], {}, {"a": "b"}]
        if self.random.random() < 0.3:
            return {"const": self.random.choice(values)}
        return {"enum": self.random.sample(values, self.random.randrange(1, 5))}

    def array(self, depth):
        schema = {"type": "array", "items": self.schema(depth + 1)}
        self.maybe(schema, "prefixItems", lambda: [self.schema(depth + 1) for _ in range(self.random.randrange(1, 3))], 0.3)
        self.maybe(schema, "minItems", lambda: self.random.randrange(3))
        self.maybe(schema, "maxItems", lambda: self.random.randrange(3, 5))
        return schema

    def object(self, depth):
        names = self.random.sample(["a", "b", "ab", "name", "x y", "é", "\""], self.random.randrange(1, 5))
        schema = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        schema["required"] = self.random.sample(names, self.random.randrange(len(names) + 1))
        self.maybe(schema, "additionalProperties", lambda: self.random.choice([False, False, self.schema(depth + 1)]), 0.8)
        return schema

    def branches(self, depth):
        return {"anyOf": [self.schema(depth + 1) for _ in range(self.random.randrange(1, 4))]}

    def merged(self, depth):
        first = self.object(depth)
        return {"allOf": [first, {"properties": {"b": self.schema(depth + 1)}}], "type": "object"}


def all_schemas(count=260):
    return HAND_MADE + [Generator(seed).schema() for seed in range(count)]
