// The stream of events: cut from any pieces, followed over a break, and ended by a wrong token.

import assert from 'node:assert/strict';
import test from 'node:test';
import { page } from './page.mjs';

const { EventCutter, EventFollower } = await page('events.js');
const { Client, Problem, withQuery } = await page('client.js');

const text = 'retry: 1000\n\nid: a-1\nevent: incoming\ndata: {"call":1,"from":"zoë"}\n\n: here\n\nid: a-2\nevent: ended\ndata: {"call":1}\n\n';

test('Events come out the same in whatever pieces they arrive', () => {
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size <= bytes.length; size += 1) {
    const cutter = new EventCutter();
    const events = [];
    for (let begin = 0; begin < bytes.length; begin += size) events.push(...cutter.take(bytes.slice(begin, begin + size)));
    assert.deepEqual(events.map(({ id, event }) => [id, event]), [['a-1', 'incoming'], ['a-2', 'ended']]);
    assert.equal(events[0].data.from, 'zoë');
  }
});

test('What is no event is passed over', () => {
  const cutter = new EventCutter();
  assert.deepEqual(cutter.take(new TextEncoder().encode('id: 1\nevent: x\ndata: {nonsense\n\n: only a comment\n\n')), []);
});

/** A client whose streams are given one after the other; an error is thrown. */
function scripted(...streams) {
  const cursors = [];
  return {
    cursors,
    async events(cursor, signal) {
      cursors.push(cursor);
      const next = streams.shift();
      if (next instanceof Error) throw next;
      return new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(next ?? ''));
          if (next !== undefined) controller.close();
          signal.addEventListener('abort', () => { if (next === undefined) controller.error(new Error('aborted')); });
        },
      });
    },
  };
}

test('After a break it continues behind the last event that came', async () => {
  const client = scripted(text, undefined);
  const links = [];
  let follower;
  await new Promise((resolve) => {
    follower = new EventFollower(client, 'a-0', {
      event() {}, refused() {},
      link(isThere) {
        links.push(isThere);
        if (links.length === 3) resolve();
      },
    });
    follower.follow();
  });
  follower.end();
  assert.deepEqual(client.cursors, ['a-0', 'a-2']);
  assert.deepEqual(links, [true, false, true]);
});

test('A token that the device does not know any more ends it', async () => {
  const refused = [];
  const follower = new EventFollower(scripted(new Problem('unauthorized', 'no', 401)), 'a-0', {
    event() {}, link() {}, refused: (error) => refused.push(error.code),
  });
  await follower.follow();
  assert.deepEqual(refused, ['unauthorized']);
});

test('The token travels in a field of each request, and never in its URL', async () => {
  const asked = [];
  globalThis.document = /** @type {any} */ ({ baseURI: 'http://device.test/' });
  globalThis.fetch = /** @type {any} */ (async (url, options) => {
    asked.push([String(url), options.headers.Authorization]);
    return new Response('{}', { status: 200 });
  });
  const client = new Client('secret');
  await client.get('v1/history', { search: 'a&b', outcome: '' });
  await client.post('v1/calls/7/hangup');
  await client.events('a-0', new AbortController().signal);
  assert.deepEqual(asked.map(([url]) => url), ['http://device.test/v1/history?search=a%26b', 'http://device.test/v1/calls/7/hangup', 'http://device.test/v1/events']);
  assert.ok(asked.every(([url, token]) => token === 'Bearer secret' && !url.includes('secret')));
});

test('An answer that is a problem has its code, and no answer is told from one', async () => {
  globalThis.fetch = /** @type {any} */ (async () => new Response('{"code":"no_such_call","detail":"there is no call 7"}', { status: 404 }));
  await assert.rejects(new Client('t').get('v1/calls/7'), { code: 'no_such_call', status: 404, message: 'there is no call 7' });
  globalThis.fetch = /** @type {any} */ (async () => { throw new TypeError('failed'); });
  await assert.rejects(new Client('t').get('v1/calls/7'), { code: 'unreachable', status: 0 });
});

test('Parameters that are not given are left out', () => {
  assert.equal(withQuery('v1/calls', { after: undefined, name: '' }), 'v1/calls');
  assert.equal(withQuery('v1/calls', { after: 7 }), 'v1/calls?after=7');
});
