// When to try again, so that a crowd is back soon after the exchange is, and never all at once (docs/protocol.md).

const shortest = 500;
const longest = 30_000;

/**
 * How long to wait before the next attempt: up to as long as the connection has been away, and longer for an exchange
 * that took attempts up in vain.
 * @param {number} away milliseconds since the connection was lost
 * @param {number} burdens attempts before this one that the exchange took up in vain
 * @param {() => number} [random] from 0 to 1
 * @returns {number} milliseconds
 */
export function delayBefore(away, burdens, random = Math.random) {
  return random() * Math.min(longest, Math.max(away, shortest * 2 ** Math.min(burdens, 10)));
}
