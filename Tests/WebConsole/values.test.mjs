// What the page computes: figures from counters, addresses, words, and the course of a call.

import assert from 'node:assert/strict';
import test from 'node:test';
import { page } from './page.mjs';

const { Figures, capacity, pointBetween, span } = await page('figures.js');
const { read, write } = await page('route.js');
const { course, marks, wordsAt } = await page('timeline.js');
const { eventWords, figure, moment, outcomeWords, pair, problemWords } = await page('text.js');
const { dayBegin } = await page('history.js');

const counters = (more = {}) => ({
  sent: 0, received: 0, lost: 0, late: 0, discarded: 0, remote_lost: 0, frames_skipped: 0, jitter_ms: 4, delay_ms: 40, target_delay_ms: 60,
  played_ms: 0, concealed_ms: 0, silent_ms: 0, accelerated_ms: 0, decelerated_ms: 0, sent_dbfs: -100, received_dbfs: -20, ...more,
});

test('Loss and concealment are those since the last counters, and unknown without any before', () => {
  const first = counters({ received: 100, lost: 50, played_ms: 2000, concealed_ms: 1000 });
  assert.equal(pointBetween(null, first).loss, null);
  assert.equal(pointBetween(null, first).faster, null);
  const point = pointBetween(first, counters({ received: 145, lost: 55, played_ms: 3000, concealed_ms: 1100, decelerated_ms: 8 }));
  assert.equal(point.loss, 10);
  assert.equal(point.concealed, 10);
  assert.equal(point.slower, 8);
  assert.equal(point.roundTrip, null);
});

test('A packet that comes late after all makes no loss below zero', () => {
  assert.equal(pointBetween(counters({ lost: 5 }), counters({ lost: 3, received: 50 })).loss, 0);
});

test('Silence is at the bottom of the plot and not below it', () => {
  assert.equal(pointBetween(null, counters()).sent, -90);
});

test('The last five minutes are kept, with gaps where a call had no media', () => {
  const figures = new Figures();
  assert.equal(figures.newest.loss, null);
  for (let count = 0; count < capacity + 20; count += 1) figures.note(counters({ received: count * 50 }));
  assert.equal(figures.points.length, capacity);
  figures.note(undefined);
  assert.equal(figures.newest.delay, null);
  assert.equal(figures.line('delay').length, capacity);
  assert.equal(figures.line('delay').at(-2), 40);
});

test('A plot shows whole minutes, from one to five', () => {
  assert.deepEqual([0, 60, 61, 299, 1000].map(span), [60, 60, 120, 300, 300]);
});

test('An address and what is shown are the same, also with text that has a meaning in addresses', () => {
  for (const route of [
    { view: 'calls' }, { view: 'calls', call: 7 }, { view: 'history' }, { view: 'history', search: 'a&b=c#?/%', outcome: 'busy', from: '2026-11-29' },
    { view: 'record', record: 'a3f0-1' }, { view: 'record', record: 'a3f0-1', at: 12.3 },
  ]) assert.deepEqual(read(write(route)), route);
});

test('An address that makes no sense shows the calls, or the record from its beginning', () => {
  for (const hash of ['', '#', '#/x', '#/calls/0', '#/calls/-1', '#/calls/seven', '#/calls/99999999999999999999']) {
    assert.deepEqual(read(hash), { view: 'calls' }, hash);
  }
  assert.deepEqual(read('#/history/a%20b'), { view: 'history' });
  assert.deepEqual(read('#/history/a?at=-1'), { view: 'record', record: 'a' });
  assert.deepEqual(read('#/history/a?at=x'), { view: 'record', record: 'a' });
});

const record = {
  incoming: true, began_ms: 1000, ended_ms: 65_300, answered_after_ms: 2900, established_after_ms: 3050, media_after_ms: 3210, duration_ms: 61_250,
};

test('The course of a call goes from ringing over set-up to media, without a hole', () => {
  const { length, spans } = course(record);
  assert.equal(length, 64_300);
  for (const name of ['Signaling', 'Media']) {
    const lane = spans.filter((span) => span.lane === name);
    lane.slice(1).forEach((span, index) => assert.equal(span.from, lane[index].to));
    assert.equal(lane.at(-1).to, length);
  }
  assert.match(wordsAt(spans, 1000), /Rings here/);
  assert.match(wordsAt(spans, 30_000), /Media flows/);
});

test('Silence at the end is a gap from one second on', () => {
  assert.ok(!course({ ...record, media: { quiet_ms: 999 } }).spans.some((span) => span.kind === 'gap'));
  const gap = course({ ...record, media: { quiet_ms: 5400 } }).spans.find((span) => span.kind === 'gap');
  assert.deepEqual([gap.from, gap.to], [58_900, 64_300]);
  // Longer than the call has had media.
  assert.equal(course({ ...record, media: { quiet_ms: 1e9 } }).spans.find((span) => span.kind === 'gap').from, 3210);
});

test('A call that nobody answered, and one without any time, have a course', () => {
  const unanswered = course({ incoming: false, began_ms: 0, ended_ms: 30_000, duration_ms: 0 });
  assert.deepEqual(unanswered.spans.map((span) => [span.lane, span.to]), [['Signaling', 30_000]]);
  assert.equal(course({ incoming: false, began_ms: 5, ended_ms: 5, duration_ms: 0 }).length, 1);
  assert.equal(course({ incoming: false, established_after_ms: 100, answered_after_ms: 90, duration_ms: 900 }).length, 1000);
});

test('An axis has at most ten marks, however long the call was', () => {
  for (let length = 1; length < 1e9; length = Math.ceil(length * 1.7)) {
    const found = marks(length);
    assert.ok(found.length >= 1 && found.length <= 10, `${length}: ${found.length}`);
    assert.ok(found.at(-1) <= length);
  }
});

test('Numbers have their unit, and a dash while they are not known', () => {
  assert.equal(figure(-20.4, 'dB'), '−20 dB');
  assert.equal(figure(null, 'ms'), '–');
  assert.equal(pair(null, 7, 'ms'), '–, 7 ms');
});

test('A time of today has no date, and one that is not known says so', () => {
  const now = new Date(2026, 10, 29, 12, 0, 0);
  assert.ok(!moment(new Date(2026, 10, 29, 9, 0, 0).getTime(), now).includes('2026'));
  assert.match(moment(new Date(2026, 10, 28, 9, 0, 0).getTime(), now), /2026/);
  assert.equal(moment(undefined), 'unknown time');
});

test('A day begins at midnight here; the search until a day includes it', () => {
  assert.equal(dayBegin('2026-11-29', 0), new Date(2026, 10, 29).getTime());
  assert.equal(dayBegin('2026-11-30', 1), new Date(2026, 11, 1).getTime());
  assert.equal(dayBegin('', 0), undefined);
});

test('Outcomes, events and problems of later versions are shown as they are', () => {
  assert.equal(outcomeWords('completed'), 'Completed');
  assert.equal(outcomeWords('novel'), 'novel');
  assert.equal(eventWords({ event: 'levels' }), null);
  assert.equal(eventWords({ event: 'recording', state: 'started', path: '/a.opus' }), 'Is recorded to /a.opus');
  assert.equal(problemWords({ code: 'novel', message: 'there is no call 7' }), 'There is no call 7.');
});
