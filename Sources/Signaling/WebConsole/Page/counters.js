// What a record’s counters by second say: rows, gaps between packets, moments, and words for one second.

/** Rows and moments of a record at most. */
const mostRows = 240;
const mostMoments = 64;

/**
 * The numbers of a column, such as `50*12,0*5,49`.
 * @param {unknown} text
 * @param {number} count of rows; what is missing is zero
 * @returns {number[]}
 */
export function numbers(text, count) {
  const found = [];
  for (const part of typeof text === 'string' ? text.split(',') : []) {
    const [value, times = '1'] = part.split('*').map(Number);
    if (!Number.isFinite(value)) break;
    for (let left = Math.min(Number(times) || 0, count - found.length); left > 0; left -= 1) found.push(value);
  }
  return [...found, ...Array(count - found.length).fill(0)];
}

/** The counters of a call that ended, on the axis of its course. Times are in milliseconds from the call’s beginning. */
export class Counters {
  #timeline;
  #begin;
  #length;
  /** @type {Map<string, number[]>} */
  #columns = new Map();

  /** Rows. */
  count;
  /** Milliseconds of a row. */
  step;

  /**
   * @param {any} timeline of the record; undefined if it has none
   * @param {number} began when the axis begins, in milliseconds since 1970
   * @param {number} length of the axis, in milliseconds
   */
  constructor(timeline, began, length) {
    const rows = Number(timeline?.rows);
    this.#timeline = timeline;
    this.count = rows > 0 ? Math.min(mostRows, Math.floor(rows)) : 0;
    this.step = 1000 * Math.max(1, Number(timeline?.step_s) || 1);
    const begins = Number(timeline?.begins);
    this.#begin = Number.isFinite(begins) ? begins - began : 0;
    this.#length = length;
  }

  /** Whether a column has anything but zeros. @param {string} name */
  has(name) {
    return this.count > 0 && typeof this.#timeline[name] === 'string';
  }

  /** @param {string} name @returns {number[]} a number for each row */
  column(name) {
    const known = this.#columns.get(name);
    if (known) return known;
    const values = this.count > 0 ? numbers(this.#timeline[name], this.count) : [];
    this.#columns.set(name, values);
    return values;
  }

  /** When a row begins, and when it ends, within the axis. @param {number} row */
  span(row) {
    const inside = (/** @type {number} */ time) => Math.min(this.#length, Math.max(0, time));
    return { from: inside(this.#begin + row * this.step), to: inside(this.#begin + (row + 1) * this.step) };
  }

  /** The row of a moment; -1 if there is none. @param {number} time */
  rowAt(time) {
    if (time < 0 || time > this.#length) return -1;
    const row = Math.floor((time - this.#begin) / this.step);
    // The end of the axis belongs to the last second.
    if (row === this.count && time - this.#begin < (this.count + 1) * this.step) return this.count - 1;
    return row >= 0 && row < this.count ? row : -1;
  }

  /** Packets of each row that never came, in per cent; null where none was expected. */
  get loss() {
    const received = this.column('received');
    return this.column('lost').map((lost, row) => share(lost, lost + received[row]));
  }

  /** What of each row’s time a column of milliseconds is, in per cent. @param {string} name */
  share(name) {
    return this.column(name).map((value) => Math.min(100, (100 * value) / this.step));
  }

  /** A column of milliseconds, for each second of its rows. @param {string} name */
  bySecond(name) {
    return this.column(name).map((value) => (1000 * value) / this.step);
  }

  /** A column of levels, in dBFS. @param {string} name */
  level(name) {
    return this.column(name).map((value) => Math.max(-100, Math.min(0, value - 100)));
  }

  /** The sum of a column. @param {string} name */
  sum(name) {
    return this.column(name).reduce((sum, value) => sum + value, 0);
  }
}

/** @param {number} part @param {number} whole */
const share = (part, whole) => (whole > 0 ? (100 * part) / whole : null);

/**
 * What happened in the call, on its axis and in its order.
 * @typedef {{ at: number, kind: string, text: string, words: string, isBad: boolean }} Moment
 * @param {any} record
 * @param {number} began when the axis begins, in milliseconds since 1970
 * @param {number} length of the axis, in milliseconds
 * @returns {Moment[]}
 */
export function moments(record, began, length) {
  const given = Array.isArray(record.moments) ? record.moments.slice(0, mostMoments) : [];
  return given.filter((/** @type {any} */ moment) => Number.isFinite(moment?.at)).map((/** @type {any} */ moment) => ({
    at: Math.min(length, Math.max(0, moment.at - began)), kind: String(moment.kind), text: String(moment.text ?? ''),
    words: momentWords(String(moment.kind), String(moment.text ?? '')), isBad: badMoments.has(String(moment.kind)),
  }));
}

const badMoments = new Set(['path_lost', 'description_refused', 'program_failed', 'program_behind', 'file_failed', 'service_lost']);

/** @type {Record<string, string>} */
const kindWords = {
  answered: 'Answered', established: 'The call can carry media', first_packet: 'The other side’s first packet comes', flowing: 'Media flows both ways',
  path_lost: 'Nothing comes on any path', path_back: 'The path is back', description_refused: 'A new description of the other side cannot be used',
  program_failed: 'The program failed', program_behind: 'The program does not read in time', file_failed: 'A file failed',
  service_lost: 'The connection to the service is lost', service_back: 'The connection to the service is back', shut_down: 'The device is being shut down',
};

/** Directions as they are seen from here. @type {Record<string, string>} */
const directionWords = {
  inactive: 'On hold: no sound in either direction', sendonly: 'On hold: only this side sends', recvonly: 'On hold: only the other side sends',
  sendrecv: 'Sound in both directions again',
};

/** @param {string} kind @param {string} text */
function momentWords(kind, text) {
  if (kind === 'direction') return directionWords[text] ?? `Another direction: ${text}`;
  const words = kindWords[kind] ?? kind.replaceAll('_', ' ');
  return text ? `${words}: ${text}` : words;
}

/**
 * Where no packet came between others, and whether one was expected.
 * @param {Counters} counters
 * @param {Moment[]} happened
 * @returns {{ from: number, to: number, isHeld: boolean }[]}
 */
export function gaps(counters, happened) {
  const received = counters.column('received');
  const first = received.findIndex((value) => value > 0);
  const last = received.findLastIndex((value) => value > 0);
  const found = [];
  for (let row = first + 1; first >= 0 && row < last; row += 1) {
    if (received[row] > 0) continue;
    const begin = row;
    while (received[row + 1] === 0) row += 1;
    const [from, to] = [counters.span(begin).from, counters.span(row).to];
    if (to > from) found.push({ from, to, isHeld: isHeld(happened, (from + to) / 2) });
  }
  return found;
}

/**
 * Whether it was agreed that the other side sends nothing.
 * @param {Moment[]} happened
 * @param {number} time
 */
export function isHeld(happened, time) {
  const direction = happened.findLast((moment) => moment.kind === 'direction' && moment.at <= time);
  return direction !== undefined && ['inactive', 'sendonly'].includes(direction.text);
}

/**
 * What the counters say of a moment.
 * @param {Counters} counters
 * @param {number} time
 * @returns {string} empty if there are none
 */
export function secondWords(counters, time) {
  const row = counters.rowAt(time);
  if (row < 0) return '';
  const value = (/** @type {string} */ name) => counters.column(name)[row];
  const [received, lost] = [value('received'), value('lost')];
  const parts = [lost > 0 ? `${lost} of ${lost + received} packets lost` : received > 0 ? `${received} packets came, none is lost` : 'no packet came'];
  const add = (/** @type {string} */ name, /** @type {string} */ words) => { if (value(name) > 0) parts.push(`${value(name)} ${words}`); };
  add('unplayed', 'came too late');
  add('remote_lost', 'of this side’s packets lost');
  add('concealed_ms', 'ms concealed');
  add('silent_ms', 'ms silent');
  add('accelerated_ms', 'ms faster');
  add('decelerated_ms', 'ms slower');
  if (counters.has('delay_ms')) parts.push(`delay ${value('delay_ms')} ms, aims at ${value('target_delay_ms')} ms`);
  if (counters.has('jitter_ms')) parts.push(`jitter ${value('jitter_ms')} ms`);
  parts.push(`sent ${levelWords(value('sent_level'))}`, `received ${levelWords(value('received_level'))}`);
  add('skipped', 'frames skipped here');
  add('card_gap_ms', 'ms missing at the sound card');
  const seconds = counters.step / 1000;
  return `${seconds === 1 ? 'In this second' : `In these ${seconds} s`}: ${parts.join('; ')}`;
}

/** @param {number} value in dB above −100 dBFS */
const levelWords = (value) => (value > 0 ? `${value - 100} dBFS`.replace('-', '−') : 'silence');
