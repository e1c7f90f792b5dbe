// What the page reads from a record's counters by second: rows, gaps, moments and words.

import assert from 'node:assert/strict';
import test from 'node:test';
import { page } from './page.mjs';

const { Counters, gaps, moments, numbers, secondWords } = await page('counters.js');
const { course, wordsAt } = await page('timeline.js');

test('A column has a number for each row, whatever its text is', () => {
  assert.deepEqual(numbers('50*3,0*2,49', 6), [50, 50, 50, 0, 0, 49]);
  assert.deepEqual(numbers('7*9', 3), [7, 7, 7]);
  assert.deepEqual(numbers('1,2', 4), [1, 2, 0, 0]);
  for (const text of [undefined, '', '*,*3,x', '1*99999999999', '1*-5,2*x', 12, {}]) assert.equal(numbers(text, 3).length, 3, String(text));
});

const began = 1_764_417_790_000;
const timeline = {
  begins: began + 3000, step_s: 1, rows: 10, received: '50*3,40,0*3,50*2,20', lost: '0*3,10', concealed_ms: '0*3,200,120', sent: '50*10',
  sent_level: '80*10', delay_ms: '40*3,60*7', target_delay_ms: '40*10', jitter_ms: '4*10', accelerated_ms: '0*8,4', decelerated_ms: '0*3,12',
};

test('A row is where it was counted, and the end of the axis belongs to the last one', () => {
  const counters = new Counters(timeline, began, 13_400);
  assert.deepEqual([counters.count, counters.step], [10, 1000]);
  assert.deepEqual(counters.span(0), { from: 3000, to: 4000 });
  assert.deepEqual([2999, 3000, 3999, 12_999, 13_400, 13_401].map((time) => counters.rowAt(time)), [-1, 0, 0, 9, 9, -1]);
  assert.deepEqual(new Counters(timeline, began, 12_500).span(9), { from: 12_000, to: 12_500 });
  assert.deepEqual(new Counters(undefined, began, 1000).rowAt(500), -1);
});

test('Loss is of what was expected, and unknown where nothing was', () => {
  const counters = new Counters(timeline, began, 13_400);
  assert.deepEqual(counters.loss.slice(2, 6), [0, 20, null, null]);
  assert.equal(counters.share('concealed_ms')[3], 20);
  assert.equal(counters.level('sent_level')[0], -20);
  assert.equal(counters.level('received_level')[0], -100);
  assert.equal(new Counters({ ...timeline, step_s: 16 }, began, 999_999).bySecond('decelerated_ms')[3], 0.75);
});

test('A record that says nothing sensible has no rows, or 240 at most', () => {
  for (const odd of [undefined, null, {}, { rows: -1 }, { rows: 'x', begins: 'y' }, { rows: 0 }]) assert.equal(new Counters(odd, began, 1000).count, 0);
  const many = new Counters({ rows: 1e9, step_s: -4, begins: 'x' }, began, 1000);
  assert.equal(many.count, 240);
  assert.equal(many.column('received').length, 240);
  assert.match(secondWords(many, 500), /^In this second: no packet came; sent silence/);
});

test('A gap is where no packet came between others, and a hold is none', () => {
  const counters = new Counters(timeline, began, 13_400);
  assert.deepEqual(gaps(counters, []), [{ from: 7000, to: 10_000, isHeld: false }]);
  const held = moments({ moments: [{ at: began + 6900, kind: 'direction', text: 'sendonly' }, { at: began + 9900, kind: 'direction', text: 'sendrecv' }] }, began, 13_400);
  assert.equal(gaps(counters, held)[0].isHeld, true);
  assert.equal(gaps(counters, [held[1]])[0].isHeld, false);
  for (const received of ['0*10', '50*10', '50,0*9', '0*9,50', undefined]) assert.deepEqual(gaps(new Counters({ ...timeline, received }, began, 13_400), []), [], received);
});

const record = { incoming: true, began_ms: began, ended_ms: began + 13_400, answered_after_ms: 2000, established_after_ms: 2500, media_after_ms: 3000, duration_ms: 10_900 };

test('Gaps are in their place in the course, which has no hole, and the silence at the end is exact', () => {
  const { spans } = course({ ...record, timeline: { ...timeline, received: '50*3,0*2,50*3,0*2' }, media: { quiet_ms: 2100 } });
  const media = spans.filter((span) => span.lane === 'Media');
  assert.deepEqual(media.map(({ kind, from, to }) => [kind, from, to]), [
    ['wait', 2000, 2500], ['wait', 2500, 3000], ['flow', 3000, 6000], ['gap', 6000, 8000], ['flow', 8000, 11_300], ['gap', 11_300, 13_400],
  ]);
  assert.match(wordsAt(spans, 7000), /No packet came for 2\.0 s/);
  const held = course({ ...record, timeline, moments: [{ at: began + 5000, kind: 'direction', text: 'inactive' }], media: { quiet_ms: 4000 } });
  assert.deepEqual(held.spans.filter((span) => span.kind === 'hold').map(({ from, to }) => [from, to]), [[7000, 9400], [9400, 13_400]]);
});

test('A second is said in words: what came, what the jitter buffer did, and the levels', () => {
  const counters = new Counters(timeline, began, 13_400);
  assert.equal(secondWords(counters, 6500),
    'In this second: 10 of 50 packets lost; 200 ms concealed; 12 ms slower; delay 60 ms, aims at 40 ms; jitter 4 ms; sent −20 dBFS; received silence');
  assert.match(secondWords(counters, 7500), /^In this second: no packet came; 120 ms concealed/);
  assert.match(secondWords(counters, 3500), /^In this second: 50 packets came, none is lost; delay/);
  assert.equal(secondWords(counters, 1000), '');
  assert.match(secondWords(new Counters({ ...timeline, step_s: 16 }, began, 999_999), 3500), /^In these 16 s: /);
});

test('Moments are in words, on the axis, and those of later versions as they are', () => {
  const given = { moments: [{ at: began - 5, kind: 'answered' }, { at: began + 700, kind: 'program_failed', text: 'it ended' }, { at: began + 99_999, kind: 'new_kind' }, { kind: 'x' }, null] };
  assert.deepEqual(moments(given, began, 1000).map(({ at, words, isBad }) => [at, words, isBad]),
    [[0, 'Answered', false], [700, 'The program failed: it ended', true], [1000, 'new kind', false]]);
  assert.deepEqual(moments({ moments: 'x' }, began, 1000), []);
  assert.equal(moments({ moments: Array(100).fill({ at: began, kind: 'answered' }) }, began, 1000).length, 64);
});
