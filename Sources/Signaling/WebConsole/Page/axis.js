// Plots on the axis of a call: lines, bars and waveforms at the times at which they were.

import { make } from '../phone/elements.js';
import { niceCeiling } from '../phone/plot.js';

/**
 * @typedef {import('./counters.js').Counters} Counters
 * @typedef {{ width: number, height: number, colour: (name: string) => string, x: (time: number) => number }} Area
 * @typedef {(context: CanvasRenderingContext2D, area: Area) => void} Paint
 */

/** Canvases that are shown, with what draws them. @type {Map<HTMLCanvasElement, () => void>} */
const shown = new Map();
let isFollowing = false;

function followColours() {
  if (isFollowing) return;
  isFollowing = true;
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const draw of shown.values()) draw();
  });
}

/**
 * A canvas that is drawn for its size and colours, again when they change.
 * @param {string} words what it shows, for those who do not see it
 * @param {number} length of the axis, in milliseconds
 * @param {Paint} paint
 * @returns {HTMLCanvasElement}
 */
function makeCanvas(words, length, paint) {
  const canvas = make('canvas', { role: 'img', 'aria-label': words });
  const draw = () => {
    const { clientWidth: width, clientHeight: height } = canvas;
    const context = canvas.getContext('2d');
    if (!context || width === 0) return;
    if (!shown.has(canvas)) {
      for (const old of shown.keys()) if (!old.isConnected) shown.delete(old);
      shown.set(canvas, draw);
    }
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(canvas);
    paint(context, { width, height, colour: (name) => style.getPropertyValue(name).trim(), x: (time) => (time / length) * width });
  };
  followColours();
  new ResizeObserver(draw).observe(canvas);
  return canvas;
}

/**
 * A lane with a plot.
 * @param {{ id: string, title: string, keys?: { words: string, colour: string }[], scale?: string, words: string, length: number, paint: Paint }} settings
 *   `scale`: what the top of the plot is; `words`: what it shows, for those who do not see it
 */
export function plotLane({ id, title, keys = [], scale = '', words, length, paint }) {
  const names = keys.map((key) => make('small', { class: `key plot-key-${key.colour}` }, key.words));
  return make('div', { class: 'lane lane-plot', id: `lane-${id}` },
    make('b', {}, title, ...names.flatMap((name) => [' ', name]), ...(scale ? [' ', make('small', { class: 'soft' }, scale)] : [])),
    make('div', { class: 'lane-track' }, makeCanvas(words, length, paint)));
}

/**
 * The plots of a record’s counters.
 * @param {Counters} counters
 * @param {number} length of the axis, in milliseconds
 * @returns {HTMLElement[]} none if the record has no counters
 */
export function counterLanes(counters, length) {
  if (counters.count === 0) return [];
  const lane = (/** @type {Omit<Parameters<typeof plotLane>[0], 'length'>} */ settings) => plotLane({ ...settings, length });
  const lanes = [levelLane(counters, lane), lossLane(counters, lane), concealedLane(counters, lane)];
  if (counters.has('accelerated_ms') || counters.has('decelerated_ms')) lanes.push(stretchLane(counters, lane));
  if (counters.has('delay_ms') || counters.has('target_delay_ms')) lanes.push(delayLane(counters, lane));
  if (counters.has('jitter_ms')) lanes.push(jitterLane(counters, lane));
  return lanes;
}

/** @typedef {(settings: Omit<Parameters<typeof plotLane>[0], 'length'>) => HTMLElement} Lane */

/** The highest value, 0 if there is none. @param {(number | null)[]} values */
const highest = (values) => values.reduce((/** @type {number} */ most, value) => Math.max(most, value ?? 0), 0);

/** The top of a plot. @param {(number | null)[]} values @param {number} least */
const top = (values, least) => Math.max(least, niceCeiling(Math.max(least, highest(values))));

/** @param {Counters} counters @param {Lane} lane */
function levelLane(counters, lane) {
  const lines = [{ values: counters.level('sent_level'), colour: '--plot-1' }, { values: counters.level('received_level'), colour: '--plot-4' }];
  const [sent, received] = lines.map(({ values }) => values.reduce((most, value) => Math.max(most, value), -100));
  const level = (/** @type {number} */ value) => (value <= -100 ? 'silence' : `at most ${value} dBFS`.replace('-', '−'));
  return lane({
    id: 'level', title: 'Level', keys: [{ words: 'sent', colour: '1' }, { words: 'received', colour: '4' }],
    words: `Level: sent ${level(sent)}, received ${level(received)}`, paint: paintLines(counters, lines, -90, 0),
  });
}

/** @param {Counters} counters @param {Lane} lane */
function lossLane(counters, lane) {
  const values = counters.loss;
  const scale = top(values, 5);
  const [lost, received] = [counters.sum('lost'), counters.sum('received')];
  return lane({
    id: 'loss', title: 'Loss', scale: `${scale} %`, words: `Loss: ${lost} of ${lost + received} packets, ${Math.round(highest(values))} % at most in one row`,
    paint: paintBars(counters, [{ values, colour: '--plot-3' }], scale),
  });
}

/** @param {Counters} counters @param {Lane} lane */
function concealedLane(counters, lane) {
  const [concealed, silent] = [counters.share('concealed_ms'), counters.share('silent_ms')];
  const scale = top(concealed, 5);
  return lane({
    id: 'concealed', title: 'Concealed', keys: counters.has('silent_ms') ? [{ words: 'silent', colour: '2' }] : [], scale: `${scale} %`,
    words: `Concealed: ${counters.sum('concealed_ms')} ms of sound, ${counters.sum('silent_ms')} ms of silence`,
    paint(context, area) {
      paintBars(counters, [{ values: concealed, colour: '--plot-3' }], scale)(context, area);
      // Silence is the peer’s pauses, too, and would hide what was concealed: it is a strip at the bottom, as dense as its share.
      context.fillStyle = area.colour('--plot-2');
      eachRow(counters, area, silent, (value, left, width) => {
        context.globalAlpha = value / 100;
        context.fillRect(left, area.height - 4, width, 4);
      });
      context.globalAlpha = 1;
    },
  });
}

/** @param {Counters} counters @param {Lane} lane */
function stretchLane(counters, lane) {
  const [faster, slower] = [counters.bySecond('accelerated_ms'), counters.bySecond('decelerated_ms')];
  const scale = top([...faster, ...slower], 10);
  return lane({
    id: 'stretch', title: 'Stretched', keys: [{ words: 'slower', colour: '1' }, { words: 'faster', colour: '4' }], scale: `${scale} ms`,
    words: `Stretched: ${counters.sum('decelerated_ms')} ms slower to raise the delay, ${counters.sum('accelerated_ms')} ms faster to lower it`,
    paint(context, area) {
      const middle = Math.round(area.height / 2);
      context.fillStyle = area.colour('--line');
      context.fillRect(0, middle, area.width, 1);
      const half = (/** @type {number} */ value) => Math.max(1.5, (value / scale) * (middle - 2));
      context.fillStyle = area.colour('--plot-1');
      eachRow(counters, area, slower, (value, left, width) => { if (value > 0) context.fillRect(left, middle - half(value), width, half(value)); });
      context.fillStyle = area.colour('--plot-4');
      eachRow(counters, area, faster, (value, left, width) => { if (value > 0) context.fillRect(left, middle + 1, width, half(value)); });
    },
  });
}

/** @param {Counters} counters @param {Lane} lane */
function delayLane(counters, lane) {
  const [delay, target] = [counters.column('delay_ms'), counters.column('target_delay_ms')];
  const scale = top([...delay, ...target], 50);
  return lane({
    id: 'delay', title: 'Delay', keys: [{ words: 'buffer', colour: '1' }, { words: 'aim', colour: '2' }], scale: `${scale} ms`,
    words: `Delay of the jitter buffer: at most ${highest(delay)} ms, it aimed at ${highest(target)} ms at most`,
    paint: paintLines(counters, [{ values: target, colour: '--plot-2' }, { values: delay, colour: '--plot-1' }], 0, scale),
  });
}

/** @param {Counters} counters @param {Lane} lane */
function jitterLane(counters, lane) {
  const values = counters.column('jitter_ms');
  const scale = top(values, 10);
  return lane({
    id: 'jitter', title: 'Jitter', scale: `${scale} ms`, words: `Jitter: at most ${highest(values)} ms`,
    paint: paintLines(counters, [{ values, colour: '--plot-2' }], 0, scale),
  });
}

/**
 * @param {Counters} counters
 * @param {Area} area
 * @param {(number | null)[]} values
 * @param {(value: number, left: number, width: number) => void} draw
 */
function eachRow(counters, area, values, draw) {
  values.forEach((value, row) => {
    const { from, to } = counters.span(row);
    if (value === null || to <= from) return;
    const left = area.x(from);
    draw(value, left, Math.max(1.5, area.x(to) - left - 0.5));
  });
}

/**
 * @param {Counters} counters
 * @param {{ values: (number | null)[], colour: string }[]} bars
 * @param {number} scale
 * @returns {Paint}
 */
const paintBars = (counters, bars, scale) => (context, area) => {
  baseLine(context, area);
  for (const { values, colour } of bars) {
    context.fillStyle = area.colour(colour);
    eachRow(counters, area, values, (value, left, width) => {
      const height = Math.min(1, value / scale) * (area.height - 3);
      if (value > 0) context.fillRect(left, area.height - Math.max(1.5, height), width, Math.max(1.5, height));
    });
  }
};

/**
 * @param {Counters} counters
 * @param {{ values: number[], colour: string }[]} lines
 * @param {number} bottom
 * @param {number} scale
 * @returns {Paint}
 */
const paintLines = (counters, lines, bottom, scale) => (context, area) => {
  baseLine(context, area);
  for (const { values, colour } of lines) {
    context.strokeStyle = area.colour(colour);
    context.lineWidth = 1.75;
    context.lineJoin = 'round';
    context.beginPath();
    values.forEach((value, row) => {
      const { from, to } = counters.span(row);
      if (to <= from) return;
      const y = area.height - 2 - ((Math.min(Math.max(value, bottom), scale) - bottom) / (scale - bottom)) * (area.height - 4);
      // A row is as long as it is: a step, so that a value is where it was counted.
      context.lineTo(area.x(from), y);
      context.lineTo(area.x(to), y);
    });
    context.stroke();
  }
};

/** @param {CanvasRenderingContext2D} context @param {Area} area */
function baseLine(context, area) {
  context.fillStyle = area.colour('--line');
  context.fillRect(0, area.height - 1, area.width, 1);
}

/**
 * The waveform of a recording: a row for each channel.
 * @param {import('./sound.js').Peaks} peaks
 * @param {{ from: number, to: number }} span of the recording on the axis, in milliseconds
 * @returns {Paint}
 */
export const paintWave = (peaks, { from, to }) => (context, area) => {
  const rows = peaks.channels.length;
  const size = area.height / rows;
  peaks.channels.forEach((values, row) => {
    const middle = (row + 0.5) * size;
    context.fillStyle = area.colour('--line');
    context.fillRect(area.x(from), middle - 0.5, area.x(to) - area.x(from), 1);
    // The other side is first, as in the file; what is alone is the other side’s.
    context.fillStyle = area.colour(row === 0 ? '--plot-4' : '--plot-1');
    const width = (area.x(to) - area.x(from)) / values.length;
    for (let index = 0; index < values.length; index += 1) {
      // Speech is quiet: the root shows it.
      const height = Math.sqrt(values[index]) * (size - 2);
      if (height >= 1) context.fillRect(area.x(from) + index * width, middle - height / 2, Math.max(0.75, width), height);
    }
  });
};
