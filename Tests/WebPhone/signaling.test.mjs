// The connection while it stands: beginning, requests, events, silence, and ends that are final.

import assert from 'node:assert/strict';
import test from 'node:test';
import { settle } from './clock.mjs';
import { Exchange } from './exchange.mjs';
import { page } from './page.mjs';

const { RestError } = await page('login.js');

test('A phone logs in, starts a session, registers, subscribes, and only then is ready', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  assert.deepEqual(phone.states, ['connecting', 'ready']);
  assert.deepEqual(exchange.methods(), ['session.start', 'device.register', 'presence.subscribe']);
  assert.equal(exchange.requests[0].params.token, 'token-1');
  assert.equal(phone.user, 'alice');
  assert.deepEqual(phone.met.map(({ resumed, people }) => ({ resumed, people })), [{ resumed: false, people: [] }]);
});

test('An exchange that does not tell who is there gives people as null, and the phone is ready', async () => {
  const exchange = new Exchange();
  exchange.refuse('presence.subscribe', 'notAllowed');
  const phone = await exchange.connected();
  assert.equal(phone.state, 'ready');
  assert.equal(phone.met[0].people, null);
});

for (const step of ['session.start', 'device.register', 'presence.subscribe']) {
  test(`A connection that drops at ${step} is not shown as ready, and the next attempt succeeds`, async () => {
    const exchange = new Exchange();
    exchange.instead[step] = (socket) => socket.end(1006);
    const phone = await exchange.connected();
    assert.deepEqual(phone.states, ['connecting', 'reconnecting']);
    assert.deepEqual(phone.met, []);
    delete exchange.instead[step];
    await exchange.clock.pass(500);
    assert.equal(phone.state, 'ready');
  });

  test(`A ${step} that is not answered ends the attempt after 10 seconds`, async () => {
    const exchange = new Exchange();
    exchange.instead[step] = () => {};
    const phone = await exchange.connected();
    await exchange.clock.pass(9_999);
    assert.deepEqual(phone.states, ['connecting']);
    await exchange.clock.pass(1);
    assert.deepEqual(phone.states, ['connecting', 'reconnecting']);
    assert.ok(exchange.socket.isClosedByClient);
  });
}

test('A WebSocket that does not open is given up after 10 seconds', async () => {
  const exchange = new Exchange();
  const phone = exchange.phone();
  phone.start();
  exchange.sockets.push = function (socket) {  // Silent from the moment at which the WebSocket is made.
    exchange.state = 'silent';
    return Array.prototype.push.call(this, socket);
  };
  await exchange.clock.pass(10_000);
  assert.deepEqual(phone.states, ['connecting', 'reconnecting']);
});

test('A request gets its own answer, and a refusal is thrown with its name', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.instead.slow = () => {};
  const slow = phone.request('slow');
  exchange.refuse('bad', 'unknownUser');
  await assert.rejects(phone.request('bad'), (error) => error.reason === 'unknownUser');
  exchange.socket.say({ jsonrpc: '2.0', id: 999, result: 'of nobody' });
  exchange.socket.say({ jsonrpc: '2.0', id: 4, result: 'mine' });
  assert.equal(await slow, 'mine');
});

test('When the connection drops, waiting requests fail as offline, and so do later ones at once', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.instead.slow = () => {};
  const slow = assert.rejects(phone.request('slow'), (error) => error.reason === 'offline');
  await exchange.kill();
  await slow;
  await assert.rejects(phone.request('ping'), (error) => error.reason === 'offline');
  assert.equal(phone.state, 'reconnecting');
});

test('An exchange that goes silent is noticed at the next ping, and the phone is not shown as online after that', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  await exchange.clock.pass(24_000);
  exchange.state = 'silent';
  await exchange.clock.pass(10_999);
  assert.equal(phone.state, 'ready');
  await exchange.clock.pass(1);
  assert.equal(phone.state, 'reconnecting');
});

test('A ping goes out in each keepalive interval, on one connection only', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  await exchange.clock.pass(100_000);
  assert.equal(exchange.methods().filter((method) => method === 'ping').length, 4);
  exchange.socket.end(1006);
  await exchange.clock.pass(1_000);
  assert.equal(phone.state, 'ready');
  const before = exchange.requests.length;
  await exchange.clock.pass(100_000);
  assert.deepEqual(exchange.methods(before), ['ping', 'ping', 'ping', 'ping']);
});

test('When the network changes or the page is seen again, a dead connection is noticed within 5 seconds', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.state = 'silent';
  exchange.change();
  await exchange.clock.pass(5_000);
  assert.equal(phone.state, 'reconnecting');
});

test('When the network changes and the exchange is still there, the connection goes on', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.change();
  await exchange.clock.pass(60_000);
  assert.deepEqual(phone.states, ['connecting', 'ready']);
  assert.equal(exchange.sockets.length, 1);
});

test('A phone that is replaced stays so, and tries no more', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  exchange.socket.end(1008, 'replaced by another connection');
  await exchange.clock.pass(3_600_000);
  assert.deepEqual(phone.states, ['connecting', 'ready', 'replaced']);
  assert.equal(exchange.sockets.length, 1);
});

test('A wrong password is final: the phone says why, and tries no more', async () => {
  const exchange = new Exchange();
  exchange.refusal = new RestError('wrongPassword', 'No.', 401);
  const phone = await exchange.connected();
  await exchange.clock.pass(3_600_000);
  assert.deepEqual(phone.states, ['connecting', 'refused']);
  assert.equal(phone.refusal.code, 'wrongPassword');
  assert.equal(exchange.visits.length, 1);
});

test('A kept login without a password is refused once the exchange does not know it', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected(null, { user: 'alice', token: 'of-yesterday' });
  assert.deepEqual(phone.states, ['connecting', 'refused']);
  assert.equal(phone.grant, null);
});

test('A kept login that is still good needs no password', async () => {
  const exchange = new Exchange();
  exchange.tokens.add('kept');
  const phone = await exchange.connected(null, { user: 'alice', token: 'kept' });
  assert.equal(phone.state, 'ready');
  assert.equal(exchange.logins, 0);
});

test('Signing out says goodbye, closes the WebSocket, and ends', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  await phone.end();
  await exchange.clock.pass(3_600_000);
  assert.equal(exchange.methods().at(-1), 'session.end');
  assert.ok(exchange.socket.isClosedByClient);
  assert.deepEqual(phone.states, ['connecting', 'ready', 'off']);
  assert.equal(exchange.sockets.length, 1);
});

test('Signing out while the phone connects leaves no connection behind', async () => {
  const exchange = new Exchange();
  const phone = exchange.phone();
  phone.start();
  phone.end();
  await exchange.clock.pass(60_000);
  assert.equal(exchange.sockets.length, 0);
  assert.equal(phone.state, 'off');
});

test('A page that goes away says goodbye without waiting', async () => {
  const exchange = new Exchange();
  const phone = await exchange.connected();
  phone.leave();
  assert.equal(exchange.methods().at(-1), 'session.end');
});

test('STUN and TURN servers are asked for again when half of their time has passed', async () => {
  const exchange = new Exchange();
  exchange.resourcesExtra = { ice_servers: [{ urls: 'turn:one' }], ice_servers_seconds: 100 };
  const phone = await exchange.connected();
  exchange.resourcesExtra = { ice_servers: [{ urls: 'turn:two' }], ice_servers_seconds: 100 };
  await exchange.clock.pass(49_999);
  assert.equal((await phone.servers())[0].urls, 'turn:one');
  await exchange.clock.pass(1);
  assert.equal((await phone.servers())[0].urls, 'turn:two');
  exchange.refusal = new RestError('unavailable', 'Not now.', 503);
  await exchange.clock.pass(50_000);
  assert.equal((await phone.servers())[0].urls, 'turn:two');
  await settle();
});
