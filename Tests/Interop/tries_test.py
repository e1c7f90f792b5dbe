"""Checks how tries are judged. Needs nothing but Python; ends with 0 if every check held."""

import unittest

import tries


class Judging(unittest.TestCase):
    def judge(self, *figures):
        self.left = list(figures)
        return tries.judge("echo", 4.0, lambda: self.left.pop(0))

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


if __name__ == "__main__":
    unittest.main()
