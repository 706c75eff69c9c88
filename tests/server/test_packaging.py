# SPDX-License-Identifier: Apache-2.0
"""The files of packaging/: the dashboard asks for metrics that there are, systemd takes the units, Kubernetes' schemas
take the manifest, and the flags and routes that they use are the command's."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import COMMAND, GEMMA, Server, chat

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "packaging"
FUNCTIONS = {"sum", "rate", "by", "le", "histogram_quantile"}


def manifests():
    try:
        import yaml
    except ImportError:
        raise unittest.SkipTest("there is no package yaml") from None
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))


def container():
    return manifests()[0]["spec"]["template"]["spec"]["containers"][0]


def values_of(node, name):
    """All values of that key, at any depth."""
    if isinstance(node, list):
        return [value for part in node for value in values_of(part, name)]
    if not isinstance(node, dict):
        return []
    return [value for key, part in node.items() for value in ([part] if key == name else values_of(part, name))]


class Packaging(unittest.TestCase):
    def assert_flags(self, words):
        text = subprocess.run([COMMAND, "help", "serve"], capture_output=True, text=True, check=True).stdout
        for word in words:
            if word.startswith("--"):
                self.assertRegex(text, rf"(^|[ ,]){re.escape(word)}\b", word)

    def test_dashboard(self):
        queries = values_of(json.loads((FOLDER / "grafana.json").read_text()), "expr")
        self.assertGreater(len(queries), 10)
        with Server() as server:
            server.post("/v1/chat/completions", chat("Hi", max_tokens=3))
            lines = [line for line in server.request("GET", "/metrics")[2].splitlines() if not line.startswith("#")]
        for query in queries:
            for name in set(re.findall(r"[a-z_]+:?[a-z_]+", re.sub(r"\$\w+|by \([a-z, ]*\)", "", query))) - FUNCTIONS:
                found = [line for line in lines if re.match(re.escape(name) + r"[ {]", line)]
                self.assertTrue(found, f"{name} is not in /metrics: {query}")
                for label in re.findall(r"by \(([a-z, ]*)\)", query):
                    self.assertTrue(all(f'{part.strip()}="' in found[0] for part in label.split(",")), query)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
    def test_units(self):
        """The installed command is where this machine may have none, so that the one under test stands for it."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("gumbel.service", "gumbel.socket"):
                text = (FOLDER / name).read_text()
                (pathlib.Path(folder) / name).write_text(text.replace("/usr/bin/gumbel", COMMAND))
            result = subprocess.run(["systemd-analyze", "verify", "--man=no", f"{folder}/gumbel.service",
                                     f"{folder}/gumbel.socket"], capture_output=True, text=True)
        ours = [line for line in result.stderr.splitlines() if folder in line or "gumbel" in line]
        self.assertEqual((result.returncode, ours), (0, []), result.stderr)
        self.assert_flags((FOLDER / "gumbel.service").read_text().split())

    def test_manifest(self):
        words = container()["args"]
        self.assertEqual(words[0], "serve")
        self.assert_flags(words)
        port = container()["ports"][0]
        self.assertEqual(str(port["containerPort"]), words[words.index("--port") + 1])
        service = manifests()[1]["spec"]
        self.assertEqual(service["ports"][0]["targetPort"], port["name"])
        self.assertEqual(service["selector"], manifests()[0]["spec"]["template"]["metadata"]["labels"])

    def test_manifest_is_served(self):
        """With the manifest's flags but those of the machine: what the probes ask for is there without a key."""
        words = container()["args"]
        ours = ("--backend", "--host", "--port", "--alias")  # the test's server has its own
        flags = [word for before, word in zip(words[1:], words[2:]) if before not in ours and word not in ours]
        with Server(*flags, "--api-key", "secret", program=GEMMA) as server:
            for probe in values_of(container(), "httpGet"):
                self.assertEqual(server.request("GET", probe["path"])[0], 200, probe)
            path = manifests()[0]["spec"]["template"]["metadata"]["annotations"]["prometheus.io/path"]
            self.assertEqual(server.request("GET", path)[0], 401)
            self.assertEqual(server.request("GET", path, headers={"Authorization": "Bearer secret"})[0], 200)

    def test_schema(self):
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("there is no package kubernetes-validate")
        for manifest in manifests():
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
