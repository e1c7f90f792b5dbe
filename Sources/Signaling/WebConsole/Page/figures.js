// What the counters of a call say of each second of it.

/**
 * Numbers are `null` while they are not known. Times in milliseconds, loss and concealment in per cent, levels in dBFS.
 * @typedef {{
 *   delay: number | null, target: number | null, loss: number | null, concealed: number | null, jitter: number | null,
 *   roundTrip: number | null, sent: number | null, received: number | null, faster: number | null, slower: number | null,
 * }} Point
 */

/** @type {Point} */
const unknown = {
  delay: null, target: null, loss: null, concealed: null, jitter: null, roundTrip: null, sent: null, received: null,
  faster: null, slower: null,
};

/** Points that are kept of a call: five minutes of one a second. */
export const capacity = 300;

/**
 * The seconds that a plot shows: whole minutes, one at least.
 * @param {number} points that there are
 */
export const span = (points) => Math.min(capacity, Math.max(60, Math.ceil(points / 60) * 60));

/** The last minutes of one call, from the counters that the device reports of it. */
export class Figures {
  /** @type {Point[]} */
  #points = [];
  /** @type {any} */
  #last = null;

  /** @param {any} media `media` of the call; undefined while it has none */
  note(media) {
    this.#points.push(media ? pointBetween(this.#last, media) : unknown);
    if (this.#points.length > capacity) this.#points.shift();
    this.#last = media ?? null;
  }

  get points() {
    return this.#points;
  }

  /** @returns {Point} */
  get newest() {
    return this.#points[this.#points.length - 1] ?? unknown;
  }

  /**
   * One line of a plot.
   * @param {keyof Point} name
   */
  line(name) {
    return this.#points.map((point) => point[name]);
  }
}

/**
 * @param {any} last the counters before, or null
 * @param {any} now
 * @returns {Point}
 */
export function pointBetween(last, now) {
  const since = (/** @type {string} */ name) => Math.max(0, now[name] - (last?.[name] ?? now[name]));
  const lost = since('lost');
  return {
    delay: now.delay_ms, target: now.target_delay_ms, jitter: now.jitter_ms, roundTrip: now.round_trip_ms ?? null,
    loss: share(lost, lost + since('received')), concealed: share(since('concealed_ms'), since('played_ms')),
    sent: Math.max(-90, now.sent_dbfs), received: Math.max(-90, now.received_dbfs),
    faster: last ? since('accelerated_ms') : null, slower: last ? since('decelerated_ms') : null,
  };
}

/** @param {number} part @param {number} whole */
const share = (part, whole) => (whole > 0 ? (100 * part) / whole : null);
