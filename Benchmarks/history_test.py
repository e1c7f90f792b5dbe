#!/usr/bin/env python3
"""Tests of history.py: what it calls too much, and what it refuses."""

import json
import pathlib
import tempfile
import unittest

import history


def result(opus=1_000_000, ours=20_000, crypto=2_000, slow=5_000, **more):
    parts = {"opus": opus, "ours": ours, "crypto": crypto, "slow": slow}
    row = {"kind": "echo", "complexity": 5, "instructions": parts, "total": opus + ours + crypto}
    return {"run": {"commit": "0123abcd"}, "instructions": [row], **more}


def too_much(older, newer):
    return {part for _, part, _, _, is_too_much in history.growth(older, newer) if is_too_much}


class GrowthTest(unittest.TestCase):
    def test_ten_per_cent_more_passes_and_a_little_more_fails(self):
        self.assertEqual(too_much(result(ours=20_000), result(ours=22_000)), set())
        self.assertEqual(too_much(result(ours=20_000), result(ours=22_001)), {"ours"})

    def test_a_large_part_fails_in_all_too(self):
        self.assertEqual(too_much(result(), result(opus=1_200_000)), {"opus", "in all"})

    def test_a_part_below_a_hundredth_of_the_call_is_not_compared(self):
        self.assertEqual(too_much(result(crypto=2_000), result(crypto=9_000)), set())
        self.assertEqual(too_much(result(crypto=2_000), result(crypto=12_000)), {"crypto"})

    def test_what_the_rig_executes_is_not_compared(self):
        self.assertEqual(too_much(result(slow=1), result(slow=900_000)), set())

    def test_a_part_that_is_new_fails_if_it_matters(self):
        newer = result()
        newer["instructions"][0]["instructions"]["other"] = 50_000
        self.assertEqual(too_much(result(), newer), {"other"})

    def test_calls_that_only_one_result_has_are_left_out(self):
        newer = result()
        newer["instructions"][0]["complexity"] = 1
        with self.assertRaises(SystemExit) as ended:
            history.compare(result(), newer)
        self.assertIn("no call in common", str(ended.exception))


class FilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_versions_are_ordered_by_number_and_other_files_ignored(self):
        for name in ("0.9.0", "0.10.0", "notes", "0.2.1"):
            (self.folder / f"{name}.json").write_text("{}")
        self.assertEqual(history.newest(self.folder).stem, "0.10.0")

    def test_without_a_release_there_is_nothing_to_compare_with(self):
        (self.folder / "notes.json").write_text("{}")
        self.assertIsNone(history.newest(self.folder))

    def test_a_file_that_is_no_result_is_refused(self):
        for text in ("", "[]", "{}", "\0"):
            path = self.folder / "result.json"
            path.write_text(text)
            with self.assertRaises(SystemExit, msg=text):
                history.read(path)
        path.write_text(json.dumps(result()))
        self.assertEqual(history.read(path)["run"]["commit"], "0123abcd")


if __name__ == "__main__":
    unittest.main()
