# SPDX-License-Identifier: Apache-2.0
"""One cache for gumbel and huggingface_hub: each finds what the other has downloaded."""

import subprocess
import sys
import unittest

from test_pull import UNWANTED, PullTest, checkpoint_files


class Interop(PullTest):
    def setUp(self):
        super().setUp()
        self.files = {name: data for name, data in checkpoint_files(3).items() if name not in UNWANTED}
        self.commit = self.hub.add("org/name", self.files)

    def python(self, call):
        """What huggingface_hub prints for a call; its settings are those of the environment."""
        result = subprocess.run([sys.executable, "-c", f"from huggingface_hub import *; print({call})"],
                                env={**self.environment, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"},
                                capture_output=True, text=True, timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_finds_what_gumbel_has_pulled(self):
        path = self.pull("org/name")[0].strip()
        before = len(self.hub.requests)
        self.assertEqual(self.python("snapshot_download('org/name', local_files_only=True)"), path)
        self.assertEqual(self.python("hf_hub_download('org/name', 'config.json', local_files_only=True)"),
                         path + "/config.json")
        self.assertEqual(self.python("[(r.repo_id, r.nb_files) for r in scan_cache_dir().repos]"),
                         f"[('org/name', {len(self.files)})]")
        self.assertEqual(self.python("len(scan_cache_dir().warnings)"), "0")
        paths = [path for _, _, path, _ in self.hub.requests[before:]]
        self.assertEqual([path for path in paths if "org/name" in path], [])

    def test_downloads_nothing_again(self):
        self.pull("org/name")
        before = self.hub.sent
        self.python(f"snapshot_download('org/name', allow_patterns={list(self.files)!r})")
        self.assertEqual(self.hub.sent, before)

    def test_gumbel_finds_what_it_has_downloaded(self):
        path = self.python(f"snapshot_download('org/name', allow_patterns={list(self.files)!r})")
        before = self.hub.sent
        output, errors = self.pull("org/name")
        self.assertEqual((output.strip(), errors, self.hub.sent), (path, "", before))
        self.check_snapshot(self.files, self.commit)


del PullTest  # its tests are run as test_pull

if __name__ == "__main__":
    unittest.main()
