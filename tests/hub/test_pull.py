# SPDX-License-Identifier: Apache-2.0
"""gumbel pull against a hub on this machine: what is downloaded, what is refused, and what survives."""

import hashlib
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from hub_server import Faults, Hub, file_hash, random_bytes

COMMAND = os.environ["GUMBEL"]
TOKEN = "hf_token_of_the_tests"


def checkpoint_files(seed=1, size=3_000_000):
    return {
        "config.json": b'{"model_type": "gemma4"}', "tokenizer.json": random_bytes(700_000, seed),
        "generation_config.json": b"", "chat_template.jinja": b"{{ messages }}",
        "additional_chat_templates/tool_use.jinja": b"{{ tools }}",
        "model.safetensors.index.json": json.dumps({"weight_map": {
            "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode(),
        "model-00001-of-00002.safetensors": random_bytes(size, seed + 1),
        "model-00002-of-00002.safetensors": random_bytes(size // 2 + 7, seed + 2),
        "README.md": b"text", "pytorch_model.bin": b"pickle", "original/params.json": b"{}",
        "onnx/model.onnx": b"onnx", "consolidated.safetensors": b"twice", ".gitattributes": b"", "x.msgpack": b"",
    }


UNWANTED = {"README.md", "pytorch_model.bin", "original/params.json", "onnx/model.onnx",
            "consolidated.safetensors", ".gitattributes", "x.msgpack"}


class PullTest(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.home = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.home)
        self.cache = self.home / "hub"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING", "GUMBEL_"))}
        self.environment = {**kept, "HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.home),
                            "XDG_CACHE_HOME": str(self.home / "caches"), "no_proxy": "*"}

    def start(self, *words, **environment):
        return subprocess.Popen([COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**self.environment, **environment})

    def command(self, *words, status=0, **environment):
        """(standard output, standard error) of a command that must end with status."""
        process = self.start(*words, **environment)
        output, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, status, errors)
        return output, errors

    def pull(self, *words, **more):
        return self.command("pull", *words, **more)

    def refused(self, *words, **environment):
        output, errors = self.pull(*words, status=1, **environment)
        self.assertEqual(output, "")
        self.assertNotIn(TOKEN, errors)
        return errors.splitlines()[-1]

    def folder(self, name="org/name"):
        return self.cache / ("models--" + name.replace("/", "--"))

    def check_snapshot(self, files, commit, name="org/name"):
        """Exactly these files, each a link to a blob that is named by its hash."""
        snapshot = self.folder(name) / "snapshots" / commit
        found = {str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if not path.is_dir()}
        self.assertEqual(found, set(files))
        for file, data in files.items():
            path = snapshot / file
            self.assertTrue(path.is_symlink())
            self.assertEqual(path.resolve(), (self.folder(name) / "blobs" / file_hash(file, data)).resolve())
            self.assertEqual(path.read_bytes(), data)

    def check_nothing_half(self, name="org/name"):
        """Every file that a reader can find is whole."""
        for path in (self.folder(name) / "snapshots").rglob("*"):
            if not path.is_dir():
                self.assertEqual(file_hash(path.name, path.read_bytes()), path.resolve().name)


class Files(PullTest):
    def test_a_checkpoint(self):
        files = checkpoint_files()
        commit = self.hub.add("org/name", files)
        output, errors = self.pull("org/name")
        wanted = {name: data for name, data in files.items() if name not in UNWANTED}
        self.check_snapshot(wanted, commit)
        self.assertEqual(output.strip(), str(self.folder() / "snapshots" / commit))
        self.assertEqual((self.folder() / "refs/main").read_text(), commit)
        self.assertIn(f"downloading org/name from {self.hub.url}: 8 files, 5.2 MB, to {self.folder()}", errors)
        self.assertIn("gumbel: model-00001-of-00002.safetensors", errors)
        before = len(self.hub.requests)
        output, errors = self.pull("org/name")
        self.assertEqual((len(self.hub.requests) - before, errors), (1, ""))

    def test_revisions(self):
        old = self.hub.add("org/name", {"a.gguf": b"GGUF old"}, "v1/rc")
        new = self.hub.add("org/name", {"a.gguf": b"GGUF new"})
        self.pull("org/name@v1/rc")
        self.assertEqual((self.folder() / "refs/v1/rc").read_text(), old)
        self.pull(f"org/name@{new}")
        self.assertFalse((self.folder() / "refs" / new).exists())
        self.check_snapshot({"a.gguf": b"GGUF old"}, old)
        self.check_snapshot({"a.gguf": b"GGUF new"}, new)
        self.assertIn("no such revision (status 404)", self.refused("org/name@v2"))

    def test_ggufs(self):
        files = {f"m-{quant}.gguf": quant.encode() for quant in ("Q4_K_M", "IQ4_XS", "Q8_0")}
        files |= {"BF16/m-BF16-00001-of-00002.gguf": b"1", "BF16/m-BF16-00002-of-00002.gguf": b"2",
                  "mmproj-F16.gguf": b"image", "config.json": b"{}"}
        commit = self.hub.add("org/name", files)
        for word, names in (("", ["m-Q4_K_M.gguf"]), (":q8_0", ["m-Q8_0.gguf"]), ("/m-IQ4_XS.gguf", ["m-IQ4_XS.gguf"]),
                            (":BF16", ["BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"])):
            output = self.pull("org/name" + word)[0]
            self.check_snapshot({name: files[name] for name in names}, commit)
            self.assertEqual(output.strip(), str(self.folder() / "snapshots" / commit / names[0]))
            shutil.rmtree(self.cache)
        self.assertIn("which model of Q2_K? There are m-Q4_K_M.gguf, m-IQ4_XS.gguf, m-Q8_0.gguf, "
                      "BF16/m-BF16-00001-of-00002.gguf; name one", self.refused("org/name:Q2_K"))
        self.hub.add("org/other", {"m-Q5_0.gguf": b"1", "m-Q6_K.gguf": b"2"})
        self.assertIn("which model? There are m-Q5_0.gguf, m-Q6_K.gguf; name one, as in org/other/m-Q5_0.gguf",
                      self.refused("org/other"))
        self.hub.add("org/nothing", {"README.md": b"", "pytorch_model.bin": b""})
        self.assertIn("org/nothing has no model that gumbel reads", self.refused("org/nothing"))

    def test_equal_files(self):
        files = {f"{name}.json": random_bytes(2_000_000, 5) for name in "abcdefgh"} | {
            "config.json": b"", "model.safetensors": random_bytes(2_000_000, 5), "x.json": b"", "y.jinja": b""}
        commit = self.hub.add("org/name", files)
        self.pull("org/name", "-j", "8")
        self.check_snapshot(files, commit)
        self.assertEqual(len(list((self.folder() / "blobs").iterdir())), 3)

    def test_json_and_dry_run(self):
        commit = self.hub.add("org/name", {"a.gguf": b"GGUF"})
        self.assertEqual(self.pull("org/name", "--dry-run")[0],
                         "   4 bytes  missing  a.gguf\n   4 bytes  to download\n")
        self.assertFalse((self.folder() / "blobs").exists())
        value = json.loads(self.pull("org/name", "--json", "-q")[0])
        self.assertEqual(value["commit"], commit)
        self.assertEqual(value["files"], [{"name": "a.gguf", "bytes": 4, "sha256": file_hash("a.gguf", b"GGUF"),
                                           "is_there": True}])

    def test_names_that_are_no_models(self):
        for name in ("gemma", "org/name:", "org/name@", "org/name@../x", "org/name/../x", "org/name:a b"):
            self.assertIn("expected ORG/NAME", self.command("pull", name, status=2)[1])

    def test_a_hostile_listing(self):
        good = {"rfilename": "a.gguf", "size": 4, "lfs": {"sha256": file_hash("a.gguf", b"GGUF"), "size": 4}}
        commit = self.hub.add("org/name", {"a.gguf": b"GGUF"})
        bad = [dict(good, rfilename=name) for name in (
            "../a.gguf", "/etc/a.gguf", "x/../../a.gguf", "a\u001b[2J.gguf", "./b.gguf", "c\0.gguf", "a" * 5000 + ".gguf")]
        self.hub.faults.listing = json.dumps({"sha": commit, "siblings": bad + [good]})
        self.pull("org/name")
        self.check_snapshot({"a.gguf": b"GGUF"}, commit)
        for text, part in (("{", "list of files: line 1"), ("[]", "sha"), (json.dumps({"sha": "../../x"}), "the commit"),
                           (json.dumps({"sha": commit}), "siblings"),
                           (json.dumps({"sha": commit, "siblings": [dict(good, size=-1, lfs=None)]}), "size"),
                           (json.dumps({"sha": commit, "siblings": [dict(good, lfs={"size": 1 << 60})]}), "size"),
                           (json.dumps({"sha": commit, "siblings": [dict(good, lfs={"sha256": "../x"})]}), "sha256")):
            self.hub.faults.listing = text
            self.assertIn(part, self.refused("org/name"))


class Access(PullTest):
    def test_the_token_stays_with_the_hub(self):
        self.hub.faults.token = TOKEN
        self.hub.add("org/name", {"a.gguf": b"GGUF" * 100_000, "config.json": b"{}"})
        self.assertIn("set HF_TOKEN", self.refused("org/name"))
        self.pull("org/name", HF_TOKEN=TOKEN)
        hosts = {(host, headers.get("Authorization")) for host, _, _, headers in self.hub.requests if host == "files"}
        self.assertEqual(hosts, {("files", None)})
        shutil.rmtree(self.cache)
        (self.home / "token").write_text(TOKEN + "\n")
        self.pull("org/name")
        self.assertIn("a token of 600 bytes", self.refused("org/name", HF_TOKEN="x" * 600))
        self.assertIn("not a token", self.refused("org/name", HF_TOKEN=TOKEN + "\nX-Header: 1"))

    def test_gated(self):
        self.hub.faults.gated = True
        self.hub.add("org/name", {"a.gguf": b"GGUF"})
        page = f"accept them at {self.hub.url}/org/name"
        self.assertIn(page + " and set HF_TOKEN", self.refused("org/name"))
        self.assertIn(page + " and check that the token", self.refused("org/name", HF_TOKEN=TOKEN))

    def test_what_is_not_there(self):
        self.assertIn("org/none: the hub refuses it (status 401): there is no such repository", self.refused("org/none"))
        self.hub.faults.statuses = [("hub", 404, {})]
        self.assertIn("the hub has no such repository (status 404)", self.refused("org/none"))
        self.assertIn("HF_HUB_OFFLINE is set", self.refused("org/name", HF_HUB_OFFLINE="1"))
        self.assertIn("HF_ENDPOINT=ftp://x: expected a URL", self.refused("org/name", HF_ENDPOINT="ftp://x"))
        self.assertEqual(len(self.hub.requests), 2)

    def test_busy_hub(self):
        self.hub.add("org/name", {"a.gguf": b"GGUF"})
        self.hub.faults.statuses = [("hub", 429, {"Retry-After": "2"}), ("hub", 503, {}), ("files", 500, {})]
        begin = time.monotonic()
        errors = self.pull("org/name")[1]
        self.assertIn("the hub answers with status 429; trying again in 2 s", errors)
        self.assertGreater(time.monotonic() - begin, 2)
        self.hub.add("org/other", {"a.gguf": b"GGUF other"})
        self.hub.faults.statuses = [("files", 403, {})]
        self.assertIn("(status 403)", self.refused("org/other"))

    def test_no_hub(self):
        self.hub.close()
        self.assertIn("org/name: " + self.hub.url + ":", self.refused("org/name"))

    def test_no_room(self):
        self.hub.add("org/name", {"a.gguf": b"GGUF"})
        self.hub.faults.listing = json.dumps({"sha": "0" * 40, "siblings": [
            {"rfilename": "a.gguf", "lfs": {"size": 1 << 50, "sha256": "0" * 64}}]})
        self.assertIn("the download needs 1125899907 MB", self.refused("org/name"))


class Broken(PullTest):
    def setUp(self):
        super().setUp()
        self.files = {"a.gguf": random_bytes(9_000_001, 1)}
        self.commit = self.hub.add("org/name", self.files)

    def test_cut_connections(self):
        chance = random.Random(7)
        self.hub.faults.cut = lambda: chance.choice([None, 0, 1, 4096, chance.randrange(3_000_000)])
        self.pull("org/name")
        self.check_snapshot(self.files, self.commit)

    def test_a_server_without_ranges(self):
        cuts = [5_000_000, None]
        self.hub.faults.ignores_ranges = True
        self.hub.faults.cut = lambda: cuts.pop(0) if cuts else None
        self.pull("org/name")
        self.check_snapshot(self.files, self.commit)

    def test_always_cut(self):
        self.hub.faults.cut = lambda: 0
        self.assertIn("a.gguf: " + self.hub.url, self.refused("org/name", "-j", "1"))
        self.check_nothing_half()

    def test_wrong_bytes(self):
        self.hub.faults.spoil = lambda data: b"x" + bytes(data)[1:]
        self.assertIn("a.gguf: what came has the SHA-256 ", self.refused("org/name"))
        self.assertEqual([path.name for path in (self.folder() / "blobs").iterdir()], [])
        self.hub.faults = Faults()
        self.pull("org/name")
        self.check_snapshot(self.files, self.commit)

    def test_wrong_sizes(self):
        self.hub.faults.cut = lambda: 5_000_000
        self.hub.faults.total = 77
        self.assertIn("the hub sends a file of size 77, expected 9000001", self.refused("org/name", "-j", "1"))
        self.check_nothing_half()

    def test_another_file(self):
        self.hub.faults.etag = "0" * 64
        self.assertIn("the hub sends a file with the hash 000", self.refused("org/name"))
        self.check_nothing_half()

    def test_many_connections(self):
        files = {f"model-{i}.safetensors": random_bytes(i * 300_000, i) for i in range(20)} | {"config.json": b"{}"}
        files["tokenizer.json"] = random_bytes(100_000, 99)
        commit = self.hub.add("org/many", files)
        self.pull("org/many", "-j", "16")
        self.check_snapshot(files, commit, "org/many")


class Interrupted(PullTest):
    def setUp(self):
        super().setUp()
        self.files = {name: data for name, data in checkpoint_files(5, 12_000_000).items() if name not in UNWANTED}
        self.commit = self.hub.add("org/name", self.files)
        self.hub.faults.delay = 0.01

    def test_killed_at_random(self):
        chance = random.Random(11)
        kills, self.hub.faults.delay = 0, 0.05
        rounds = 6 if "GUMBEL_SHORT_TESTS" in os.environ else 20
        for _ in range(rounds):
            process = self.start("pull", "org/name")
            try:
                process.communicate(timeout=chance.uniform(0.05, 0.35))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
            self.check_nothing_half()
        self.hub.faults.delay = 0
        self.pull("org/name")
        self.check_snapshot(self.files, self.commit)
        self.assertGreaterEqual(kills, rounds * 3 // 4)
        self.assertEqual([path for path in (self.folder() / "blobs").iterdir() if "incomplete" in path.name], [])

    def test_goes_on_where_it_was(self):
        size = sum(map(len, self.files.values()))
        process = self.start("pull", "org/name")
        while self.hub.sent < size // 2:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate()[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn("cancelled; what was downloaded is kept", errors)
        before, self.hub.faults.delay = self.hub.sent, 0
        self.pull("org/name")
        self.check_snapshot(self.files, self.commit)
        self.assertLess(self.hub.sent - before, size * 2 // 3)

    def test_a_damaged_rest_is_downloaded_again(self):
        process = self.start("pull", "org/name")
        large = file_hash("model-00001-of-00002.safetensors", self.files["model-00001-of-00002.safetensors"])
        while self.hub.sent < 4_000_000:
            time.sleep(0.02)
        process.kill()
        process.communicate()
        rest = self.folder() / "blobs" / (large + ".gumbel.incomplete")
        with open(rest, "r+b") as file:
            file.write(b"damage")
        self.hub.faults.delay = 0
        self.pull("org/name")
        self.check_snapshot(self.files, self.commit)

    def test_the_revision_moves_meanwhile(self):
        process = self.start("pull", "org/name")
        while self.hub.sent < 1_000_000:
            time.sleep(0.02)
        process.kill()
        process.communicate()
        files = dict(self.files, **{"model-00001-of-00002.safetensors": random_bytes(11_000_000, 77)})
        commit = self.hub.add("org/name", files)
        self.hub.faults.delay = 0
        self.pull("org/name")
        self.check_snapshot(files, commit)
        self.assertEqual((self.folder() / "refs/main").read_text(), commit)

    def test_two_at_once(self):
        first, second = self.start("pull", "org/name"), self.start("pull", "org/name")
        errors = [process.communicate(timeout=600)[1] for process in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0])
        self.assertIn("another gumbel downloads org/name; waiting for it", "".join(errors))
        self.check_snapshot(self.files, self.commit)
        self.assertLess(self.hub.sent, 1.1 * sum(map(len, self.files.values())))


class Commands(PullTest):
    """Other commands that are given a model's name."""

    def setUp(self):
        super().setUp()
        model = pathlib.Path(os.environ["GUMBEL_MODELS"]) / "gemma4-tiny"
        self.hub.add("org/tiny", {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()})

    def run_model(self, *words, **more):
        return self.command("run", *words, "--tokens", "2,17,99", "--print-tokens", "-n", "4", "--temp", "0", **more)

    def test_downloads_where_told(self):
        errors = self.run_model("org/tiny", status=1)[1]
        self.assertIn("get it with: gumbel pull org/tiny", errors)
        self.assertEqual(self.hub.requests, [])
        self.assertIn("get it with", self.run_model("-hf", "org/tiny", "--no-pull", status=1)[1])
        self.assertIn("get it with", self.run_model("--offline", "-hf", "org/tiny", status=1)[1])
        self.assertIn("get it with", self.run_model("-hf", "org/tiny", status=1, GUMBEL_NO_PULL="1")[1])
        output, errors = self.run_model("-hf", "org/tiny")
        self.assertIn("downloading org/tiny from ", errors)
        self.assertIn("exporting org/tiny with recipe none", errors)
        count = len(self.hub.requests)
        self.assertEqual(self.run_model("org/tiny", "--pull")[0], output)
        self.assertEqual(self.run_model("org/tiny", HF_HUB_OFFLINE="1")[0], output)
        self.assertEqual(len(self.hub.requests), count)

    def test_completes_what_is_there_in_part(self):
        self.pull("org/tiny")
        weights = next(self.folder("org/tiny").glob("snapshots/*/model.safetensors"))
        weights.resolve().unlink()
        weights.unlink()
        self.assertIn("gumbel pull org/tiny", self.run_model("org/tiny", status=1)[1])
        self.assertIn("downloading org/tiny", self.run_model("org/tiny", "--pull")[1])

    def damage(self, name, at=100):
        """Changes one byte of a file's blob; its size stays, and a tool may have kept its time."""
        blob = next(self.folder("org/tiny").glob(f"snapshots/*/{name}")).resolve()
        data = bytearray(blob.read_bytes())
        data[at] ^= 1
        blob.write_bytes(data)
        return blob

    def records(self):
        return {path.name for path in (self.home / "caches/gumbel/blobs").iterdir()}

    def test_a_damaged_blob_is_found(self):
        self.pull("org/tiny")
        for name in ("model.safetensors", "tokenizer.json"):  # SHA-256, and git's
            blob = self.damage(name, 5000)
            errors = self.run_model("org/tiny", status=1)[1]
            self.assertIn(f"/{name}: it is damaged: ", errors)
            self.assertIn(f"{blob.name}; get it again with: gumbel pull org/tiny", errors)
            self.command("export", "org/tiny", "-o", str(self.home / "out.gumbel"), status=1)
            self.assertFalse((self.home / "out.gumbel").exists())
            errors = self.pull("org/tiny")[1]
            self.assertIn(f"{name}: {blob} is damaged, and is downloaded again", errors)
            self.assertIn("1 of ", errors)
            self.assertEqual(file_hash(name, blob.read_bytes()), blob.name)
        self.run_model("org/tiny")

    def test_a_blob_is_hashed_once(self):
        self.pull("org/tiny")
        blobs = {path.name for path in (self.folder("org/tiny") / "blobs").iterdir()}
        self.assertEqual(self.records(), blobs)  # a download has hashed them
        shutil.rmtree(self.home / "caches")
        self.run_model("org/tiny")  # as after a download of another tool
        self.assertLessEqual(self.records(), blobs)
        weights = next(self.folder("org/tiny").glob("snapshots/*/model.safetensors")).resolve()
        self.assertIn(weights.name, self.records())
        time_before = weights.stat().st_mtime_ns  # who keeps all that is looked at is believed
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
        os.utime(weights, ns=(time_before, time_before))
        self.assertEqual(self.pull("org/tiny")[1], "")
        os.utime(weights)
        self.assertIn("is damaged", self.pull("org/tiny")[1])

    def test_a_mirror_may_name_blobs_by_their_plain_sha1(self):
        self.pull("org/tiny")
        link = next(self.folder("org/tiny").glob("snapshots/*/tokenizer.json"))
        blob = link.resolve()
        data = blob.read_bytes()
        named = blob.rename(blob.parent / hashlib.sha1(data).hexdigest())
        link.unlink()
        link.symlink_to(f"../../blobs/{named.name}")
        self.run_model("org/tiny")
        named.write_bytes(data.replace(b"the", b"teh", 1))
        self.assertIn("it is damaged", self.run_model("org/tiny", status=1)[1])

    def test_at_a_terminal(self):
        keyboard, terminal = pty.openpty()
        self.addCleanup(os.close, keyboard)
        process = subprocess.Popen([COMMAND, "run", "org/tiny", "Hello", "-n", "4", "--seed", "1"], stdin=terminal,
                                   stdout=subprocess.PIPE, stderr=terminal, env=self.environment)
        os.close(terminal)
        output = process.communicate(timeout=600)[0]
        self.assertEqual(process.returncode, 0)
        self.assertGreater(len(output), 4)
        shown = os.read(keyboard, 65536).decode()
        self.assertIn("downloading org/tiny from ", shown)
        self.assertIn("downloaded org/tiny: ", shown)

    def test_a_path_that_was_mistyped(self):
        self.assertIn("no such repository, or it is private: set HF_TOKEN to a token that may read it; and no file or "
                      "folder has this name", self.run_model("models/gemm", "--pull", status=1)[1])

    def test_export(self):
        program = self.home / "tiny.gumbel"
        self.command("export", "org/tiny", "-o", str(program), "--pull", "-q")
        self.assertTrue(program.exists())


if __name__ == "__main__":
    unittest.main()
