// The device's events as they come. EventSource cannot send the token in a header field, so the stream is read here.

import { delayBefore } from '../phone/backoff.js';

/** Milliseconds without a byte after which the connection counts as lost: a heartbeat comes every 15 s. */
const patience = 40_000;

/** @typedef {{ id: string, event: string, data: any }} DeviceEvent */

/** Cuts a stream of server-sent events into events; parts of one may come in any pieces. */
export class EventCutter {
  #rest = '';
  #decoder = new TextDecoder();

  /**
   * @param {Uint8Array} bytes
   * @returns {DeviceEvent[]}
   */
  take(bytes) {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const blocks = this.#rest.split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.map(parse).filter((event) => event !== null);
  }
}

/**
 * One event; null for a comment, and for what is no event of this device.
 * @param {string} block
 * @returns {DeviceEvent | null}
 */
function parse(block) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '');
  }
  if (!fields.event && !fields.id) return null;
  try {
    return { id: fields.id ?? '', event: fields.event ?? '', data: fields.data ? JSON.parse(fields.data) : {} };
  } catch {
    return null;
  }
}

/**
 * Follows the events until it is ended, and connects again from where it was.
 */
export class EventFollower {
  #client;
  #cursor;
  #heard;
  #ended = new AbortController();

  /**
   * @param {import('./client.js').Client} client
   * @param {string} cursor after which events are new
   * @param {{ event: (event: DeviceEvent) => void, link: (isThere: boolean) => void, refused: (error: any) => void }} heard
   */
  constructor(client, cursor, heard) {
    this.#client = client;
    this.#cursor = cursor;
    this.#heard = heard;
  }

  /** The newest event that came. */
  get cursor() {
    return this.#cursor;
  }

  end() {
    this.#ended.abort();
  }

  async follow() {
    let since = performance.now();
    while (!this.#ended.signal.aborted) {
      try {
        await this.#readOnce(() => { since = performance.now(); });
      } catch (error) {
        if (this.#ended.signal.aborted) return;
        if (/** @type {any} */ (error).status === 401) return this.#heard.refused(error);
      }
      if (this.#ended.signal.aborted) return;
      this.#heard.link(false);
      await new Promise((resolve) => { setTimeout(resolve, 250 + delayBefore(performance.now() - since, 0)); });
    }
  }

  /** @param {() => void} alive */
  async #readOnce(alive) {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), patience);
    try {
      const signal = AbortSignal.any([this.#ended.signal, silent.signal]);
      const reader = (await this.#client.events(this.#cursor, signal)).getReader();
      this.#heard.link(true);
      const cutter = new EventCutter();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), patience);
        alive();
        for (const event of cutter.take(value)) this.#note(event);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {DeviceEvent} event */
  #note(event) {
    if (event.id) this.#cursor = event.id;
    if (event.event) this.#heard.event(event);
  }
}
