// Time that passes when a test says so.

/** Lets everything that has been promised happen. */
export const settle = () => new Promise((resolve) => setImmediate(resolve));

export class Clock {
  /** Milliseconds. */
  now = 0;
  #timers = new Map();
  #last = 0;

  /** @param {() => void} act @param {number} [milliseconds] */
  after(act, milliseconds = 0) {
    this.#timers.set(++this.#last, { act, at: this.now + milliseconds });
    return this.#last;
  }

  /** @param {any} timer */
  cancel(timer) {
    this.#timers.delete(timer);
  }

  /** How many timers wait. */
  get pending() { return this.#timers.size; }

  /** @param {number} milliseconds @param {() => boolean} [isEnough] ends it early @returns {Promise<boolean>} whether it did */
  async pass(milliseconds, isEnough = () => false) {
    const end = this.now + milliseconds;
    await settle();
    for (let steps = 0; !isEnough(); steps += 1) {
      if (steps > 10_000) throw new Error(`time stands still at ${this.now} ms`);
      const next = [...this.#timers].filter(([, { at }]) => at <= end).sort(([one, a], [other, b]) => a.at - b.at || one - other)[0];
      if (!next) {
        this.now = end;
        return isEnough();
      }
      this.#timers.delete(next[0]);
      this.now = Math.max(this.now, next[1].at);
      next[1].act();
      await settle();
    }
    return true;
  }

  /** Makes this the clock of the page's modules that ask the browser for the time. */
  install() {
    globalThis.setTimeout = /** @type {any} */ ((act, milliseconds) => this.after(act, milliseconds));
    globalThis.clearTimeout = (timer) => this.cancel(timer);
    Object.defineProperty(performance, 'now', { value: () => this.now, configurable: true });
  }
}
