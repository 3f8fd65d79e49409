# SPDX-License-Identifier: Apache-2.0
"""Shows which subjects check_commits.py takes, and which commits it looks at."""

import pathlib
import subprocess
import tempfile
import unittest

import check_commits


class CheckSubjectTest(unittest.TestCase):
    def test_takes_an_area_and_a_sentence(self):
        for subject in ("core/ops: fold constants in groups", "docs: define concepts once", "cpu/{gemm,matmul}: x"):
            self.assertIsNone(check_commits.check_subject(subject), subject)

    def test_refuses_a_subject_without_an_area(self):
        self.assertIn("area", check_commits.check_subject("Fold constants in groups"))
        self.assertIn("area", check_commits.check_subject("docs:no space"))

    def test_refuses_a_long_subject(self):
        self.assertIsNone(check_commits.check_subject("docs: " + "x" * 66))
        self.assertIn("73 characters", check_commits.check_subject("docs: " + "x" * 67))

    def test_refuses_a_full_stop(self):
        self.assertIn("full stop", check_commits.check_subject("docs: define every concept."))


class ListCommitsTest(unittest.TestCase):
    def test_begins_after_the_commit_that_made_the_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            def git(*arguments):
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=folder, check=True,
                               capture_output=True)

            git("init", "-q")
            git("commit", "--allow-empty", "-m", "Before the rule")
            self.assertEqual(check_commits.list_commits(folder, None), [])
            (pathlib.Path(folder) / "tools").mkdir()
            (pathlib.Path(folder) / "tools" / "check_commits.py").write_text("")
            git("add", ".")
            git("commit", "-m", "Make the rule")
            git("commit", "--allow-empty", "-m", "docs: after the rule")
            ((_, subject),) = check_commits.list_commits(folder, None)
            self.assertEqual(subject, "docs: after the rule")
            self.assertEqual(len(check_commits.list_commits(folder, "HEAD~2..HEAD")), 2)


if __name__ == "__main__":
    unittest.main()
