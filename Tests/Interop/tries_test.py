"""Checks how tries are judged. Needs nothing but Python; ends with 0 if every check held."""

import unittest

import tries


class Stalls:
    """In place of the witness: the stalls of the tries, in seconds."""

    def __init__(self, stalls):
        self.stalls = stalls

    def __call__(self):
        return self

    def __enter__(self):
        self.worst = self.stalls.pop(0) if self.stalls else 0.0
        return self

    def __exit__(self, *_):
        pass


class Judging(unittest.TestCase):
    def judge(self, *figures, stalls=()):
        self.left = list(figures)
        return tries.judge("echo", 4.0, lambda: self.left.pop(0), Stalls(list(stalls)))

    def test_two_good_tries_are_enough_and_the_lower_counts(self):
        self.assertEqual(self.judge(4.2, 4.1, 1.0), {"tries": [4.2, 4.1], "median": 4.1})
        self.assertEqual(self.left, [1.0])

    def test_a_bad_first_try_needs_two_good_ones_and_is_reported(self):
        self.assertEqual(self.judge(3.0, 4.1, 4.2), {"tries": [3.0, 4.1, 4.2], "median": 4.1})

    def test_one_good_try_of_three_does_not_hold(self):
        with self.assertRaisesRegex(tries.TooLow, "3.90, 4.50, 3.80 is 3.90, and 4.0"):
            self.judge(3.9, 4.5, 3.8)

    def test_two_bad_tries_decide(self):
        with self.assertRaises(tries.TooLow):
            self.judge(3.9, 3.9, 4.5)
        self.assertEqual(self.left, [4.5])

    def test_a_bad_try_beside_a_stall_does_not_count_and_a_good_one_does(self):
        self.assertEqual(self.judge(3.0, 3.1, 4.1, 4.2, stalls=[0.03, 0.021, 0.5]), {"tries": [4.1, 4.2], "median": 4.1})

    def test_a_bad_try_on_a_quiet_machine_counts(self):
        with self.assertRaisesRegex(tries.TooLow, "3.00, 3.10 is 3.00"):
            self.judge(3.0, 3.1, stalls=[0.02, 0.019])

    def test_a_machine_that_is_never_quiet_is_named(self):
        with self.assertRaisesRegex(tries.TooLow, "too busy: a PESQ of 3.00 beside a stall of 30 ms"):
            self.judge(3.0, 3.0, 3.0, 3.0, 4.2, stalls=[0.03] * 5)

    def test_the_witness_notes_how_late_it_wakes(self):
        with tries.Witness() as seen:
            pass
        self.assertGreaterEqual(seen.worst, 0)


if __name__ == "__main__":
    unittest.main()
