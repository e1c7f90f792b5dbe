// The course of a call that ended, on one axis from its signaling to its media.

import { make, say } from '../phone/elements.js';
import { seconds } from './text.js';

/**
 * Times are in milliseconds from the call's beginning.
 * @typedef {{ lane: string, kind: string, from: number, to: number, text: string }} Span
 */

/**
 * What the record knows of the call's course.
 * @param {any} record
 * @returns {{ length: number, spans: Span[] }}
 */
export function course(record) {
  const { answered_after_ms: answered, established_after_ms: established, media_after_ms: flowing } = record;
  const length = Math.max(1, lengthOf(record), answered ?? 0, flowing ?? 0);
  /** @type {Span[]} */
  const spans = [];
  const add = (/** @type {string} */ lane, /** @type {string} */ kind, /** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ text) => {
    if (to > from) spans.push({ lane, kind, from, to, text });
  };
  const waits = record.incoming ? 'Rings here' : 'Rings there';
  add('Signaling', 'wait', 0, answered ?? length, answered === undefined ? `${waits}, without an answer` : `${waits} until the answer`);
  if (answered !== undefined) add('Signaling', 'call', answered, length, 'Answered');
  if (answered !== undefined) add('Media', 'wait', answered, established ?? length, established === undefined ? 'Media never could flow' : 'The path is set up');
  if (established === undefined) return { length, spans };
  const quiet = record.media?.quiet_ms ?? 0;
  const isGap = quiet >= 1000;
  add('Media', 'wait', established, flowing ?? established, 'Waits for the other side’s sound');
  add('Media', 'flow', flowing ?? established, isGap ? Math.max(flowing ?? established, length - quiet) : length, 'Media flows');
  if (isGap) add('Media', 'gap', Math.max(flowing ?? established, length - quiet), length, `Nothing came in the last ${seconds(quiet)}`);
  return { length, spans };
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

/**
 * Shows a record's course, and a moment in it that can be moved.
 * @param {any} record
 * @param {number | undefined} at seconds, where the moment is at first
 * @param {(at: number) => void} moved
 * @returns {HTMLElement}
 */
export function makeTimeline(record, at, moved) {
  const { length, spans } = course(record);
  const lanes = ['Signaling', 'Media'].map((name) => lane(name, spans.filter((span) => span.lane === name), length));
  const words = make('output', { class: 'timeline-words', for: 'timeline-at' });
  const slider = make('input', {
    type: 'range', id: 'timeline-at', min: '0', max: String(length), step: '100', 'aria-label': 'Moment of the call',
  });
  const board = make('div', { class: 'timeline-board' }, ...lanes, axis(length), make('i', { class: 'timeline-mark' }));
  const show = () => {
    const time = Number(slider.value);
    const text = `${seconds(time)}: ${wordsAt(spans, time)}`;
    say(words, text);
    slider.setAttribute('aria-valuetext', text);
    board.style.setProperty('--at', String(time / length));
  };
  slider.value = String(Math.min(length, Math.round((at ?? 0) * 1000)));
  slider.addEventListener('input', show);
  slider.addEventListener('change', () => moved(Number(slider.value) / 1000));
  show();
  return make('div', { class: 'timeline' }, board, slider, words);
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
