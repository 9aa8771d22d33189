"""What is late is void only where the machine stood still, and never more than three times."""
import contextlib
import io
import unittest

import support


class Machine:
    """Stands still for so long."""

    def __init__(self, ms):
        self.ms = ms

    def longest(self):
        return self.ms * 1_000_000


class Late(support.CliTest):
    """By 100 ms, on one machine after the other; then on the last one for ever."""
    machines = []

    def is_late(self):
        self.made += 1
        stood = self.machines[min(self.made, len(self.machines)) - 1]
        self.in_time(100_000_000 if stood else -1, 0, "it was", Machine(stood or 0))

    made = 0


class Trials(unittest.TestCase):
    def outcome(self, *machines):
        """How often the test was made, whether it passed, and what was said."""
        late, said, result = Late("is_late"), io.StringIO(), unittest.TestResult()
        late.machines = machines
        with contextlib.redirect_stdout(said):
            late.run(result)
        self.assertEqual(result.errors, [])
        return late.made, result.wasSuccessful(), said.getvalue().count("void trial")

    def test_in_time(self):
        self.assertEqual(self.outcome(None), (1, True, 0))

    def test_late_on_a_machine_that_went_on(self):
        self.assertEqual(self.outcome(49), (1, False, 0))

    def test_late_once_on_a_machine_that_stood_still(self):
        self.assertEqual(self.outcome(51, None), (2, True, 1))

    def test_late_for_ever(self):
        self.assertEqual(self.outcome(51), (4, False, 3))


if __name__ == "__main__":
    unittest.main(verbosity=2)
