// The course of a call that ended, on one axis from its signaling to its media.

import { make, say } from '../phone/elements.js';
import { counterLanes } from './axis.js';
import { Counters, gaps, isHeld, moments, secondWords } from './counters.js';
import { seconds } from './text.js';

/**
 * Times are in milliseconds from the call's beginning.
 * @typedef {{ lane: string, kind: string, from: number, to: number, text: string }} Span
 * @typedef {{ length: number, began: number, spans: Span[], counters: Counters, happened: import('./counters.js').Moment[] }} Course
 *   `began`: when the axis begins, in milliseconds since 1970
 */

/**
 * What the record knows of the call's course.
 * @param {any} record
 * @returns {Course}
 */
export function course(record) {
  const { answered_after_ms: answered, established_after_ms: established, media_after_ms: flowing } = record;
  const length = Math.max(1, lengthOf(record), answered ?? 0, flowing ?? 0);
  const began = record.began_ms ?? (record.ended_ms ?? 0) - length;
  const counters = new Counters(record.timeline, began, length);
  const happened = moments(record, began, length);
  /** @type {Span[]} */
  const spans = [];
  const add = (/** @type {string} */ lane, /** @type {string} */ kind, /** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ text) => {
    if (to > from) spans.push({ lane, kind, from, to, text });
  };
  const waits = record.incoming ? 'Rings here' : 'Rings there';
  add('Signaling', 'wait', 0, answered ?? length, answered === undefined ? `${waits}, without an answer` : `${waits} until the answer`);
  if (answered !== undefined) add('Signaling', 'call', answered, length, 'Answered');
  if (answered !== undefined) add('Media', 'wait', answered, established ?? length, established === undefined ? 'Media never could flow' : 'The path is set up');
  if (established === undefined) return { length, began, spans, counters, happened };
  const begin = flowing ?? established;
  const quiet = record.media?.quiet_ms ?? 0;
  const end = quiet >= 1000 ? Math.max(begin, length - quiet) : length;
  add('Media', 'wait', established, begin, 'Waits for the other side’s sound');
  let from = begin;
  for (const gap of gaps(counters, happened)) {
    const [first, last] = [Math.max(from, gap.from), Math.min(end, gap.to)];
    if (last <= first) continue;
    add('Media', 'flow', from, first, 'Media flows');
    add('Media', gap.isHeld ? 'hold' : 'gap', first, last, gap.isHeld ? 'On hold: nothing comes, as agreed' : `No packet came for ${seconds(gap.to - gap.from)}`);
    from = last;
  }
  add('Media', 'flow', from, end, 'Media flows');
  const isHeldAtEnd = isHeld(happened, (end + length) / 2);
  add('Media', isHeldAtEnd ? 'hold' : 'gap', end, length, isHeldAtEnd ? 'On hold: nothing comes, as agreed' : `Nothing came in the last ${seconds(quiet)}`);
  return { length, began, spans, counters, happened };
}

/** @param {any} record */
function lengthOf(record) {
  if (record.began_ms !== undefined && record.ended_ms !== undefined) return record.ended_ms - record.began_ms;
  return (record.established_after_ms ?? 0) + record.duration_ms;
}

/**
 * Marks on the axis: at most ten, at whole steps.
 * @param {number} length
 */
export function marks(length) {
  const steps = [100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000];
  const step = steps.find((step) => length / step <= 8) ?? Math.ceil(length / 8 / 3_600_000) * 3_600_000;
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, index) => index * step);
}

/** @param {number} milliseconds */
function markText(milliseconds) {
  if (milliseconds < 60_000) return `${milliseconds / 1000} s`;
  const whole = Math.round(milliseconds / 1000);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/**
 * What happens at a moment, in words.
 * @param {Span[]} spans
 * @param {number} time
 */
export function wordsAt(spans, time) {
  const found = spans.filter((span) => span.from <= time && time <= span.to);
  return found.length ? found.map((span) => span.text).join('; ') : 'Nothing is known of this moment';
}

/** A record's course, and a moment in it that can be moved. */
export class Timeline {
  #course;
  #heard;
  #words = make('output', { class: 'timeline-words', for: 'timeline-at' });
  #slider;
  #board;
  #mark = make('i', { class: 'timeline-mark' });

  /** @type {HTMLElement} */
  element;

  /**
   * @param {Course} course
   * @param {number | undefined} at seconds, where the moment is at first
   * @param {{ moving: (time: number) => void, moved: (time: number) => void }} heard the user moves the moment, and has moved it; milliseconds
   */
  constructor(course, at, heard) {
    const { length, spans, counters, happened } = course;
    this.#course = course;
    this.#heard = heard;
    this.#slider = make('input', {
      type: 'range', id: 'timeline-at', min: '0', max: String(length), step: '100', 'aria-label': 'Moment of the call',
    });
    const lanes = ['Signaling', 'Media'].map((name) => lane(name, spans.filter((span) => span.lane === name), length));
    if (happened.length > 0) lanes.push(momentLane(happened, length));
    this.#board = make('div', { class: 'timeline-board' }, ...lanes, ...counterLanes(counters, length), axis(length), this.#mark);
    this.#followPointer();
    this.#slider.addEventListener('input', () => {
      this.#show();
      this.#heard.moving(this.time);
    });
    this.#slider.addEventListener('change', () => this.#heard.moved(this.time));
    this.set((at ?? 0) * 1000);
    this.element = make('div', { class: 'timeline' }, this.#board, this.#slider, this.#words);
  }

  /** The moment, in milliseconds from the call's beginning. */
  get time() {
    return Number(this.#slider.value);
  }

  /** Moves the moment. @param {number} time in milliseconds */
  set(time) {
    this.#slider.value = String(Math.min(this.#course.length, Math.max(0, Math.round(time))));
    this.#show();
  }

  /** Whether each moment is read out; not while they pass by. @param {boolean} isSpoken */
  speak(isSpoken) {
    this.#words.setAttribute('aria-live', isSpoken ? 'polite' : 'off');
  }

  /** Adds a lane above the counters. @param {HTMLElement} lane */
  addLane(lane) {
    const before = this.#board.querySelector('.lane-plot') ?? this.#board.querySelector('.timeline-axis');
    this.#board.insertBefore(lane, before);
  }

  #show() {
    const time = this.time;
    const counted = secondWords(this.#course.counters, time);
    const text = `${seconds(time)}: ${wordsAt(this.#course.spans, time)}${counted ? `. ${counted}` : ''}`;
    say(this.#words, text);
    this.#slider.setAttribute('aria-valuetext', text);
    this.#board.style.setProperty('--at', String(time / this.#course.length));
  }

  /** A press in the lanes moves the moment there. */
  #followPointer() {
    const move = (/** @type {PointerEvent} */ event) => {
      const { left, width } = this.#board.querySelector('.lane-track').getBoundingClientRect();
      this.set(((event.clientX - left) / width) * this.#course.length);
      this.#heard.moving(this.time);
    };
    this.#board.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0 || !(/** @type {Element} */ (event.target)).closest('.lane-track')) return;
      this.#board.setPointerCapture(event.pointerId);
      move(event);
    });
    this.#board.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
      if (this.#board.hasPointerCapture(event.pointerId)) move(event);
    });
    this.#board.addEventListener('lostpointercapture', () => this.#heard.moved(this.time));
  }
}

/** @param {string} name @param {Span[]} spans @param {number} length */
function lane(name, spans, length) {
  const bars = spans.map((span) => {
    const bar = make('span', { class: `bar-${span.kind}`, title: `${span.text} (${seconds(span.from)} to ${seconds(span.to)})` });
    bar.style.setProperty('--from', String(span.from / length));
    bar.style.setProperty('--size', String((span.to - span.from) / length));
    return bar;
  });
  const list = spans.map((span) => make('li', {}, `${span.text}: ${seconds(span.from)} to ${seconds(span.to)}`));
  return make('div', { class: 'lane' }, make('b', {}, name), make('div', { class: 'lane-track', 'aria-hidden': 'true' }, ...bars),
    make('ul', { class: 'unseen' }, ...list));
}

/**
 * Marks of what happened; {@link momentList} has them as text.
 * @param {import('./counters.js').Moment[]} happened
 * @param {number} length
 */
function momentLane(happened, length) {
  const ticks = happened.map((moment) => {
    const tick = make('span', { class: moment.isBad ? 'tick tick-bad' : 'tick', title: `${seconds(moment.at)}: ${moment.words}` });
    tick.style.setProperty('--from', String(moment.at / length));
    return tick;
  });
  return make('div', { class: 'lane lane-moments' }, make('b', {}, 'Moments'), make('div', { class: 'lane-track', 'aria-hidden': 'true' }, ...ticks));
}

/**
 * What happened, as a list whose entries move the moment.
 * @param {import('./counters.js').Moment[]} happened
 * @param {(time: number) => void} go
 */
export function momentList(happened, go) {
  return make('ol', { class: 'moments' }, ...happened.map((moment) => make('li', {},
    make('button', { type: 'button', class: moment.isBad ? 'quiet moment bad-moment' : 'quiet moment', onclick: () => go(moment.at) },
      make('span', { class: 'moment-time' }, seconds(moment.at)), make('span', {}, moment.words)))));
}

/**
 * The marks of an axis. A mark near the end has no text: on a telephone that would reach over the page's edge.
 * @param {number} length
 */
function axis(length) {
  return make('div', { class: 'timeline-axis', 'aria-hidden': 'true' }, ...marks(length).map((mark) => {
    const place = mark / length;
    const label = make('small', {}, place > 0.87 ? '' : markText(mark));
    label.style.setProperty('--from', String(place));
    return label;
  }));
}
