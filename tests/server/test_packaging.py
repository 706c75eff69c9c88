# SPDX-License-Identifier: Apache-2.0
"""The files of packaging/: the dashboard and the fleet's picker ask for metrics that there are, systemd takes the
units, Kubernetes' schemas take the manifests, and the names, ports, flags and routes that they use are there."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import COMMAND, GEMMA, Server, chat

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging"
FUNCTIONS = {"sum", "rate", "by", "le", "histogram_quantile"}


def read_yaml(text):
    try:
        import yaml
    except ImportError:
        raise unittest.SkipTest("there is no package yaml") from None
    return list(yaml.safe_load_all(text))


def manifests(name="kubernetes.yaml"):
    return read_yaml((FOLDER / name).read_text())


def fleet():
    """The manifests of gateway.yaml by their kinds; it has one of each."""
    return {manifest["kind"]: manifest for manifest in manifests("gateway.yaml")}


def template_of(deployment):
    """(labels, specification) of a deployment's pods."""
    template = deployment["spec"]["template"]
    return template["metadata"]["labels"], template["spec"]


def ports_of(specification):
    return {port["name"]: port["containerPort"] for part in specification["containers"] for port in part["ports"]}


def picker_configuration():
    return read_yaml(fleet()["ConfigMap"]["data"]["picker.yaml"])[0]


def picker_parameters(plugin):
    return next(part["parameters"] for part in picker_configuration()["plugins"] if part["type"] == plugin)


def container():
    return manifests()[0]["spec"]["template"]["spec"]["containers"][0]


def notes():
    """For Prometheus, which finds the metrics by them."""
    return manifests()[0]["spec"]["template"]["metadata"]["annotations"]


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
        self.assertEqual(notes()["prometheus.io/port"], str(port["containerPort"]))
        service = manifests()[1]["spec"]
        self.assertEqual(service["ports"][0]["targetPort"], port["name"])
        self.assertEqual(service["selector"], manifests()[0]["spec"]["template"]["metadata"]["labels"])

    def test_manifest_is_served(self):
        """With the manifest's flags but those of the machine: probes and metrics alone want no key."""
        words = container()["args"]
        ours = ("--backend", "--host", "--port", "--alias")  # the test's server has its own
        flags = [word for before, word in zip(words[1:], words[2:]) if before not in ours and word not in ours]
        with Server(*flags, "--api-key", "secret", program=GEMMA) as server:
            for probe in values_of(container(), "httpGet"):
                self.assertEqual(server.request("GET", probe["path"])[0], 200, probe)
            self.assertEqual(server.request("GET", notes()["prometheus.io/path"])[0], 200)
            self.assertEqual(server.request("GET", "/v1/models")[0], 401)

    def test_fleet(self):
        """The pool takes the servers' pods alone, and the picker is where the pool says."""
        parts = fleet()
        pool, service = parts["InferencePool"], parts["Service"]
        labels, specification = template_of(parts["Deployment"])
        chosen = pool["spec"]["selector"]["matchLabels"].items()
        self.assertLessEqual(chosen, template_of(manifests()[0])[0].items())
        self.assertFalse(chosen <= labels.items())
        self.assertEqual([port["number"] for port in pool["spec"]["targetPorts"]],
                         [container()["ports"][0]["containerPort"]])
        reference = pool["spec"]["endpointPickerRef"]
        self.assertEqual(reference["name"], service["metadata"]["name"])
        self.assertIn(reference["port"]["number"], [port["port"] for port in service["spec"]["ports"]])
        self.assertEqual(service["spec"]["selector"], labels)
        for port in service["spec"]["ports"]:
            self.assertEqual(ports_of(specification)[port["targetPort"]], port["port"])
        self.assertIn(f"--pool-name={pool['metadata']['name']}", specification["containers"][0]["args"])
        for backend in values_of(parts["HTTPRoute"], "backendRefs")[0]:
            self.assertEqual((backend["kind"], backend["name"]), ("InferencePool", pool["metadata"]["name"]))

    def test_picker(self):
        """The metrics that it asks for are gauges, its plugins are there, and it has the rights of its account."""
        source = (ROOT / "src/server/metrics.c").read_text()
        engines = picker_parameters("core-metrics-extractor")["engineConfigs"]
        names = [value for engine in engines for key, value in engine.items() if key.endswith("Spec")]
        self.assertEqual(len(names), 2)
        for name in names:
            self.assertRegex(source, rf'\{{"{re.escape(name)}", (NULL|"[^"]*"), "gauge"', name)
        configuration = picker_configuration()
        plugins = {plugin["type"] for plugin in configuration["plugins"]}
        self.assertLessEqual(set(values_of(configuration, "pluginRef")), plugins)
        parts = fleet()
        specification = template_of(parts["Deployment"])[1]
        account = parts["ServiceAccount"]["metadata"]["name"]
        self.assertEqual(specification["serviceAccountName"], account)
        self.assertEqual(parts["RoleBinding"]["subjects"], [{"kind": "ServiceAccount", "name": account}])
        self.assertEqual(parts["RoleBinding"]["roleRef"]["name"], parts["Role"]["metadata"]["name"])
        mount = specification["containers"][0]["volumeMounts"][0]["mountPath"]
        files = [f"--config-file={mount}/{name}" for name in parts["ConfigMap"]["data"]]
        self.assertIn(files[0], specification["containers"][0]["args"])
        self.assertEqual(specification["volumes"][0]["configMap"], {"name": parts["ConfigMap"]["metadata"]["name"]})

    def test_schema(self):
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("there is no package kubernetes-validate")
        ours = {"InferencePool", "HTTPRoute"}  # kinds that Kubernetes itself has not
        for manifest in manifests() + [part for kind, part in fleet().items() if kind not in ours]:
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
