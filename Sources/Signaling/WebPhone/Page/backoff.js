// When to try again: the first time within half a second, then at growing distances, never all at once.

const first = 500;
const longest = 30_000;

/**
 * How long to wait before attempt number `attempt`, counted from 0.
 * @param {number} attempt
 * @param {() => number} [random] from 0 to 1
 * @returns {number} milliseconds
 */
export function delayBefore(attempt, random = Math.random) {
  return random() * Math.min(longest, first * 2 ** Math.min(attempt, 10));
}
