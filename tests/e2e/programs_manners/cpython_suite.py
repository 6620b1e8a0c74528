"""Runs some of CPython's own test files and writes what became of each test, one a line.

    cpython_suite.py RESULTS MODULE...

The files are run as they are, in one process after the other's tests, with none of the optional
resources (large files, network, much CPU).
"""

import os
import sys
import tempfile
import unittest

from test import support


class Outcomes(unittest.TestResult):
    """Of every test its last word; a failing subtest speaks for its test."""

    def __init__(self):
        super().__init__()
        self.outcomes = {}

    def _note(self, test, outcome):
        name = test.id()
        if self.outcomes.get(name, "passed") == "passed":
            self.outcomes[name] = outcome

    def startTest(self, test):
        super().startTest(test)
        self.outcomes.pop(test.id(), None)

    def addSuccess(self, test):
        self._note(test, "passed")

    def addSkip(self, test, reason):
        self._note(test, "skipped")

    def addExpectedFailure(self, test, error):
        self._note(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self._note(test, "unexpected success")

    def addFailure(self, test, error):
        self._tell(test, error, "failed")

    def addError(self, test, error):
        self._tell(test, error, "error")

    def addSubTest(self, test, subtest, error):
        if error:
            self._tell(test, error, "failed")

    def _tell(self, test, error, outcome):
        print("%s: %s\n%s" % (test.id(), outcome, self._exc_info_to_string(error, test)))
        self._note(test, outcome)


def main():
    support.use_resources = []
    results, modules = os.path.abspath(sys.argv[1]), sys.argv[2:]
    outcomes = Outcomes()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for module in modules:
            unittest.defaultTestLoader.loadTestsFromName("test." + module).run(outcomes)
        os.chdir("/")
    with open(results, "w") as out:
        for name, outcome in sorted(outcomes.outcomes.items()):
            out.write("%s %s\n" % (name, outcome))


if __name__ == "__main__":
    main()
