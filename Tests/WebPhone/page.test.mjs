// What the page shows: elements, words, numbers and plots.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Element, install } from './dom.mjs';
import { page } from './page.mjs';

install({ here: {} });
const elements = await page('elements.js');
const words = await page('words.js');
const { Plot, niceCeiling } = await page('plot.js');
const { Sampler, decibels, delayBetween, lossBetween } = await page('stats.js');

test('An element that the page lacks is named', () => {
  assert.equal(elements.element('here').getAttribute('id'), 'here');
  assert.throws(() => elements.element('gone'), /#gone/);
});

test('Elements are made with attributes, text that is never markup, and handlers', () => {
  let clicks = 0;
  const made = elements.make('button', { class: 'quiet', disabled: false, hidden: true, onclick: () => { clicks += 1; } }, '<b>', elements.make('i'));
  assert.deepEqual([...made.attributes], [['class', 'quiet'], ['hidden', '']]);
  assert.equal(made.children[0], '<b>');
  assert.equal(made.children[1].tagName, 'i');
  made.click();
  assert.equal(clicks, 1);
});

test('Text is written only where it is another, so that nothing is read out twice', () => {
  const target = new Element('p');
  elements.say(target, 'one');
  elements.say(target, 'one');
  elements.say(target, 'two');
  assert.equal(target.written, 2);
});

test('One or two letters stand for a name', () => {
  for (const [name, letters] of [['Anna Maria Berg', 'AB'], ['bob@localhost', 'B'], ['+1555', '1'], ['', '?'], ['élan vital', 'ÉV']]) {
    assert.equal(elements.initials(name), letters);
  }
});

test('A name has always the same colour, between 0 and 359 degrees', () => {
  const hue = (name) => {
    const face = new Element('div');
    elements.paintFace(face, name);
    return Number(face.style.values['--hue']);
  };
  assert.equal(hue('alice'), hue('alice'));
  assert.notEqual(hue('alice'), hue('bob'));
  for (const name of ['', 'x'.repeat(10_000), '😀😀']) assert.ok(hue(name) >= 0 && hue(name) < 360);
});

test('A clock shows minutes and seconds, and hours once there are any', () => {
  for (const [milliseconds, text] of [[-1, '0:00'], [59_999, '0:59'], [60_000, '1:00'], [3_599_999, '59:59'], [3_600_000, '1:00:00'], [36_061_000, '10:01:01']]) {
    assert.equal(elements.clock(milliseconds), text);
  }
});

test('Online is said of a connection that stands, and of no other', () => {
  assert.equal(words.linkWords('ready'), 'Online');
  for (const state of ['off', 'connecting', 'reconnecting', 'replaced', 'refused']) assert.notEqual(words.linkWords(state), 'Online');
  const titles = ['ready', 'connecting', 'replaced'].map((state) => words.restWords(state).title);
  assert.equal(new Set(titles).size, 3);
  assert.equal(words.restWords('reconnecting').title, words.restWords('connecting').title);
});

test('Each ending of a call has words of its own, and each side its own', () => {
  const reasons = ['declined', 'busy', 'noAnswer', 'acceptFailed', 'unknownUser', 'noDeviceOnline', 'acceptedElsewhere',
    'declinedElsewhere', 'connectionLost', 'offline', 'noCommonMedia', 'cancelled', 'completed'];
  const titles = reasons.map((reason) => words.farewell({ reason }, 'bob', 'outgoing').title);
  assert.equal(new Set(titles).size, reasons.length);
  assert.equal(words.farewell({ reason: 'cancelled' }, 'bob', 'incoming').title, 'Missed call');
  assert.deepEqual(words.farewell({ reason: 'odd', detail: 'Why.' }, 'bob', 'outgoing'), { title: 'The call failed', text: 'Why.' });
  assert.equal(words.farewell({ reason: 'microphone', detail: 'taken' }, 'bob', 'outgoing').title, 'The microphone is in use');
  assert.ok(words.isProblem('busy') && !words.isProblem('completed'));
});

test('What strangers call themselves ends no quotation, and turns nothing around it', () => {
  assert.equal(words.outsideLabel('+1', 'x”, of the bank: "y" «z»'),
    'Telephone \u2068+1\u2069, which says it is “\u2068x’, of the bank: ’y’ ’z’\u2069”');
  assert.equal(words.outsideLabel('a\u2069b', undefined), 'Telephone \u2068a’b\u2069');
});

test('Each reason why nobody can sign in, and why there is no microphone, has words of its own', () => {
  const codes = ['wrongPassword', 'wrongMediaToken', 'tokenExpired', 'tooManyRequests', 'unreachable', 'unavailable'];
  assert.equal(new Set(codes.map((code) => words.signInProblem({ code }))).size, codes.length);
  assert.equal(words.signInProblem({ reason: 'offline' }), words.signInProblem({ code: 'unreachable' }));
  assert.equal(words.signInProblem({ code: 'other', message: 'As it says.' }), 'As it says.');
  const microphones = ['insecure', 'refused', 'missing', 'taken', 'failed'];
  assert.equal(new Set(microphones.map((code) => words.microphoneProblem(code).title)).size, microphones.length);
});

test('Delay and loss are those since the last sample, and unknown where nothing came', () => {
  assert.equal(delayBetween({ delay: 1, emitted: 48_000 }, { delay: 961, emitted: 96_000 }), 20);
  assert.equal(delayBetween({ delay: 1, emitted: 5 }, { delay: 2, emitted: 5 }), null);
  assert.equal(lossBetween({ lost: 10, received: 100 }, { lost: 15, received: 145 }), 10);
  assert.equal(lossBetween({ lost: 10, received: 100 }, { lost: 8, received: 150 }), 0, 'late packets make the count fall');
  assert.equal(lossBetween({ lost: 1, received: 1 }, { lost: 1, received: 1 }), null);
});

test('Levels are in dBFS, not below −90, and unknown where there is none', () => {
  assert.deepEqual([1, 0.1, 0, undefined].map(decibels), [0, -20, -90, null]);
});

test('A sample takes the selected pair, its path and its codec out of what getStats says', async () => {
  const report = new Map(Object.entries({
    T: { type: 'transport', selectedCandidatePairId: 'P' },
    P: { type: 'candidate-pair', nominated: true, currentRoundTripTime: 0.025, localCandidateId: 'L', remoteCandidateId: 'R' },
    Q: { type: 'candidate-pair', nominated: true, currentRoundTripTime: 9 },
    L: { type: 'local-candidate', candidateType: 'relay', protocol: 'udp' },
    R: { type: 'remote-candidate', candidateType: 'host' },
    I: { type: 'inbound-rtp', kind: 'audio', codecId: 'C', jitterBufferDelay: 960, jitterBufferEmittedCount: 48_000, packetsLost: 1, packetsReceived: 99, audioLevel: 0.1 },
    S: { type: 'media-source', kind: 'audio', audioLevel: 1 },
    C: { type: 'codec', mimeType: 'audio/opus', clockRate: 48_000 },
  }));
  const sampler = new Sampler();
  const connection = { getStats: async () => report };
  assert.deepEqual(await sampler.sample(connection), {
    roundTrip: 25, jitterBuffer: 20, loss: 1, levelHere: 0, levelThere: -20, codec: 'opus 48 kHz', path: 'relayed over UDP, encrypted',
  });
  const again = await sampler.sample(connection);
  assert.deepEqual([again.jitterBuffer, again.loss], [null, null]);
  assert.deepEqual(await new Sampler().sample({ getStats: async () => new Map() }), {
    roundTrip: null, jitterBuffer: null, loss: null, levelHere: null, levelThere: null, codec: '', path: '',
  });
});

test('The top of a plot is the next of 1, 2, 5, 10, …', () => {
  assert.deepEqual([0.3, 1, 1.1, 4.2, 101, 5_000].map(niceCeiling), [0.5, 1, 2, 5, 200, 5_000]);
});

/** A plot of 121 × 50 pixels whose drawing is kept. */
function plot(options) {
  const drawn = [];
  const context = new Proxy({}, {
    get: (target, name) => target[name] ?? ((...given) => drawn.push([name, ...given])),
    set: (target, name, value) => { target[name] = value; return true; },
  });
  globalThis.ResizeObserver = /** @type {any} */ (class { observe() {} });
  globalThis.getComputedStyle = /** @type {any} */ (() => ({ getPropertyValue: (name) => ` ${name}` }));
  globalThis.devicePixelRatio = 2;
  const canvas = { clientWidth: 121, clientHeight: 50, width: 0, height: 0, getContext: () => context };
  const made = new Plot(canvas, { lines: ['--a'], bottom: 0, top: 100, ...options });
  const points = (name) => drawn.filter(([what]) => what === name).map(([, ...given]) => given);
  return { plot: made, canvas, drawn, points };
}

test('A plot draws the newest value at the right, the lowest at the bottom and the highest at the top', () => {
  const { plot: made, canvas, drawn, points } = plot({});
  made.push(0);
  drawn.length = 0;
  made.push(100);
  assert.deepEqual([canvas.width, canvas.height], [242, 100], 'as many pixels as the screen has');
  const [, [fromX, fromY]] = points('moveTo');
  const [, [toX, toY]] = points('lineTo');
  assert.equal(toX, 120);
  assert.ok(fromX === 119 && fromY === 48.5 && toY === 2.5, `${fromX} ${fromY} ${toY}`);
});

test('A plot leaves a gap where a value is not known, and keeps the last 120', () => {
  const { plot: made, drawn, points } = plot({});
  for (let number = 0; number < 130; number += 1) made.push(50);
  made.push(null);
  drawn.length = 0;
  made.push(50);
  assert.equal(points('moveTo').length, 3, 'the ground, and two parts');
  assert.ok(points('moveTo').every(([x]) => x >= 0));
});

test('A plot that grows shows what is above its top, and one that does not cuts it off', () => {
  for (const [grows, expected] of [[true, 48.5 - 300 / 500 * 46], [false, 2.5]]) {
    const { plot: made, drawn, points } = plot({ grows });
    drawn.length = 0;
    made.push(300);
    assert.equal(points('moveTo').at(-1)[1], expected);
  }
});

test('A plot that is cleared is empty, and one of bars draws those above its ground', () => {
  const { plot: made, drawn, points } = plot({ isBar: true });
  made.push(0);
  drawn.length = 0;
  made.push(50);
  assert.equal(points('fillRect').length, 1);
  drawn.length = 0;
  made.clear();
  assert.equal(points('fillRect').length, 0);
});
