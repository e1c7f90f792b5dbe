// The connection after it was lost: when it comes back, and what it brings.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Exchange, seeded } from './exchange.mjs';
import { page } from './page.mjs';

const { RestError } = await page('login.js');

test('CONN-4: A phone is back within twice the time that the exchange was away, though that forgot all logins', async () => {
  for (const away of [1_000, 3_000, 8_000, 14_000]) {
    for (let seed = 0; seed < 50; seed += 1) {
      const exchange = new Exchange();
      exchange.luck = seeded(seed);
      const phone = await exchange.connected();
      await exchange.clock.pass(60_000);
      const lost = exchange.clock.now;
      await exchange.kill();
      assert.equal(phone.state, 'reconnecting', 'not shown as online from the moment at which the exchange is gone');
      await exchange.clock.pass(away);
      exchange.restart();
      await exchange.clock.pass(120_000, () => phone.state === 'ready');
      const took = exchange.clock.now - lost;
      assert.ok(took <= 2 * away + 500, `away for ${away} ms, back after ${took} ms (seed ${seed})`);
      assert.equal(exchange.logins, 2);
    }
  }
});

test('CONN-4: Connections that stood for ten seconds and dropped do not make later waits longer', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  for (let round = 1; round <= 12; round += 1) {
    await exchange.clock.pass(10_000);
    exchange.socket.end(1006);
    await exchange.clock.pass(500);
    assert.equal(phone.state, 'ready', `round ${round}`);
    assert.equal(exchange.sockets.length, round + 1);
  }
});

test('CONN-4: Connections that drop as soon as they stand make each wait longer', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  const waits = [];
  for (let round = 0; round < 8; round += 1) {
    const from = exchange.clock.now;
    const count = exchange.sockets.length;
    exchange.socket.end(1006);
    await exchange.clock.pass(60_000, () => exchange.sockets.length > count && phone.state === 'ready');
    waits.push(exchange.clock.now - from);
  }
  assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test('CONN-4: A phone never asks before the time that Retry-After names', async () => {
  const exchange = new Exchange();
  exchange.luck = () => 0;
  exchange.refusal = new RestError('unavailable', 'Going down.', 503, 7);
  const phone = await exchange.connected();
  await exchange.clock.pass(6_999);
  assert.equal(exchange.visits.length, 1);
  exchange.refusal = null;
  await exchange.clock.pass(1);
  assert.equal(phone.state, 'ready');
});

test('The user can have the next attempt at once', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  await exchange.kill();
  await exchange.clock.pass(20_000);
  exchange.restart();
  phone.retry();
  await exchange.clock.pass(0);
  assert.equal(phone.state, 'ready');
});

test('The next attempt comes at once when the network is back', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  await exchange.kill();
  await exchange.clock.pass(20_000);
  exchange.restart();
  exchange.change();
  await exchange.clock.pass(0);
  assert.equal(phone.state, 'ready');
});

test('A login that the exchange refuses again is tried once in each attempt, not in a loop', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.tokens.add = () => exchange.tokens;  // It forgets each token as soon as it has made it.
  await exchange.kill();
  exchange.restart();
  await exchange.clock.pass(500);
  assert.equal(phone.state, 'reconnecting');
  assert.equal(exchange.logins, 2);
});

test('A session that refuses the token leads to another login', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.socket.end(4001, 'token expired');
  await exchange.clock.pass(500);
  assert.equal(phone.state, 'ready');
  assert.equal(exchange.logins, 2);
  exchange.refuse('session.start', 'tokenExpired');
  exchange.socket.end(1006);
  await exchange.clock.pass(1_000);
  exchange.instead = {};
  await exchange.clock.pass(4_000);
  assert.equal(phone.state, 'ready');
  assert.ok(exchange.logins >= 3);
});

test('A session is resumed after the last event that was heard, and nothing is heard twice', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.event('one');
  exchange.event('two');
  const before = exchange.requests.length;
  exchange.socket.end(1006);
  await exchange.clock.pass(500);
  const [start, ...others] = exchange.requests.slice(before);
  assert.deepEqual(start.params.resume, { session: [...exchange.sessions][0], after: 2 });
  assert.deepEqual(others.map(({ method }) => method), ['presence.subscribe'], 'a session that is resumed knows the device');
  assert.equal(phone.met.at(-1).resumed, true);
  exchange.event('two', 2);
  exchange.event('three', 3);
  assert.deepEqual(phone.events, ['one', 'two', 'three']);
});

test('A session that is not resumed registers again and counts events from the new start', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.event('old', 40);
  exchange.sessions.clear();
  exchange.sequence = 7;
  const before = exchange.requests.length;
  exchange.socket.end(1006);
  await exchange.clock.pass(500);
  assert.deepEqual(exchange.methods(before), ['session.start', 'device.register', 'presence.subscribe']);
  exchange.event('before', 7);
  exchange.event('after', 8);
  assert.deepEqual(phone.events, ['old', 'after']);
});

test('What was to be told while there was no connection is told once there is, in order and up to 128 of them', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  await exchange.kill();
  for (let number = 0; number < 130; number += 1) phone.tell('call.signal', { number });
  await exchange.clock.pass(1_000);
  exchange.restart();
  await exchange.clock.pass(2_000);
  const told = exchange.requests.filter(({ method }) => method === 'call.signal').map(({ params }) => params.number);
  assert.deepEqual(told, Array.from({ length: 128 }, (_, number) => number));
});

test('What the exchange refuses is not told again', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.refuse('call.end', 'unknownInvite');
  phone.tell('call.end', {});
  await exchange.clock.pass(0);
  exchange.socket.end(1006);
  await exchange.clock.pass(500);
  assert.equal(exchange.methods().filter((method) => method === 'call.end').length, 1);
});
