// The calls that run, as a list, and the figures of each.

import { clock, element, make, say } from '../phone/elements.js';
import { Figures } from './figures.js';
import { figure, stateWords } from './text.js';

/** Rows that change in one frame, so that hundreds of calls do not hold up the page. */
const rowsInFrame = 24;

/** @typedef {{ call: any, figures: Figures, happened: { at: number, words: string }[], dropped: number, row: any, isOver: boolean }} Running */

export class RunningCalls {
  /** @type {Map<number, Running>} */
  #all = new Map();
  #list = element('calls');
  /** @type {number | undefined} */
  #chosen;
  /** @type {number[]} */
  #stale = [];
  #isDrawing = false;

  /** @param {number} number @returns {Running | undefined} */
  find(number) {
    return this.#all.get(number);
  }

  get count() {
    return [...this.#all.values()].filter((entry) => !entry.isOver).length;
  }

  /**
   * Takes what the device reports of its calls now.
   * @param {any[]} calls
   */
  note(calls) {
    const present = new Set(calls.map((call) => call.call));
    for (const call of calls) this.#noteOne(call);
    for (const [number, entry] of this.#all) {
      if (present.has(number)) continue;
      entry.isOver = true;
      entry.row.remove();
      if (number !== this.#chosen) this.#all.delete(number);
    }
    element('calls-none').hidden = calls.length > 0;
    this.#draw();
  }

  /** @param {any} call */
  #noteOne(call) {
    const found = this.#all.get(call.call);
    // A device that was started again gives the numbers of ended calls to new ones.
    const known = found?.isOver ? undefined : found;
    const entry = known ?? { call, figures: new Figures(), happened: [], dropped: 0, row: makeRow(call.call), isOver: false };
    entry.call = call;
    if (call.state === 'talking' || known?.figures.points.length) entry.figures.note(call.media);
    if (!known) {
      this.#all.set(call.call, entry);
      this.#list.append(entry.row);
    }
    this.#stale.push(call.call);
  }

  /**
   * Notes what happened to a call, for its list.
   * @param {number} number
   * @param {number} at milliseconds since 1970
   * @param {string} words
   */
  happened(number, at, words) {
    const entry = this.#all.get(number);
    if (!entry) return;
    entry.happened.push({ at, words });
    if (entry.happened.length <= 100) return;
    entry.happened.shift();
    entry.dropped += 1;
  }

  /** @param {number | undefined} number whose row is marked */
  choose(number) {
    const before = this.#chosen;
    this.#chosen = number;
    if (before !== undefined && before !== number && this.#all.get(before)?.isOver) this.#all.delete(before);
    for (const [other, entry] of this.#all) {
      const link = entry.row.querySelector('a');
      if (other === number) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  }

  #draw() {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    const step = () => {
      for (const number of this.#stale.splice(0, rowsInFrame)) {
        const entry = this.#all.get(number);
        if (entry && !entry.isOver) fillRow(entry);
      }
      this.#isDrawing = this.#stale.length > 0;
      if (this.#isDrawing) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}

/** @param {number} number */
function makeRow(number) {
  const cell = (/** @type {string} */ name) => make('span', { class: `cell-${name}` });
  return make('li', {}, make('a', { href: `#/calls/${number}`, class: 'row' },
    make('span', { class: 'names' }, make('strong', {}), make('small', {})),
    cell('time'), cell('loss'), cell('delay'), make('span', { class: 'cell-level', 'aria-hidden': 'true' }, make('i', {}), make('i', {}))));
}

/** @param {Running} entry */
function fillRow({ call, figures, row }) {
  const link = row.children[0];
  const [names, time, loss, delay, level] = link.children;
  const { newest } = figures;
  say(names.children[0], call.peer);
  say(names.children[1], `${call.incoming ? 'Incoming' : 'Outgoing'} · ${stateWords(call)}${call.account ? ` · ${call.account}` : ''}`);
  say(time, call.duration_s === undefined ? '' : clock(call.duration_s * 1000));
  say(loss, newest.loss === null ? '' : `${figure(newest.loss, '%', 1)} lost`);
  say(delay, newest.delay === null ? '' : figure(newest.delay, 'ms'));
  const isBad = (newest.loss ?? 0) > 3 || (newest.concealed ?? 0) > 3;
  if (row.getAttribute('data-bad') !== String(isBad)) row.setAttribute('data-bad', String(isBad));
  [newest.sent, newest.received].forEach((value, index) => {
    level.children[index].style.setProperty('--level', String(value === null ? 0 : Math.max(0, 1 + value / 60)));
  });
}
