import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { Clock, settle } from './clock.mjs';
import { page } from './page.mjs';
import { Connection, Stream } from './webrtc.mjs';

const { Peer } = await page('peer.js');
console.warn = () => {};

/** @type {Clock} */
let clock;
beforeEach(() => {
  clock = new Clock();
  clock.install();
});

/** A peer, what it sends, and what it fires. */
function make(polite = false) {
  const sent = [], fired = [];
  const peer = new Peer({ iceServers: [], microphone: new Stream(), polite, send: (type, data) => sent.push([type, data]) });
  for (const name of ['connected', 'lost', 'left', 'troubled', 'changed']) peer.addEventListener(name, () => fired.push(name));
  return { peer, connection: Connection.made.at(-1), sent, fired };
}

/** One that has made the first offer and got the answer. */
async function settled(polite = false) {
  const made = make(polite);
  await made.peer.offer();
  await made.peer.accept({ type: 'answer', sdp: 'theirs' });
  made.peer.release();
  return made;
}

test('Candidates wait until the invite has gone out, and keep their order', async () => {
  const { peer, connection, sent } = make();
  await peer.offer();
  connection.find('one');
  connection.find('two');
  assert.deepEqual(sent, []);
  peer.release();
  connection.find(null);
  assert.deepEqual(sent.map(([type, data]) => [type, data.candidate]), [['candidate', 'one'], ['candidate', 'two'], ['candidate', '']]);
});

test('Candidates of the other side that come before its description are added after it', async () => {
  const { peer, connection } = make();
  await peer.offer();
  peer.take('candidate', { candidate: 'early' });
  await settle();
  assert.deepEqual(connection.candidates, []);
  await peer.accept({ type: 'answer', sdp: 'theirs' });
  peer.take('candidate', { candidate: 'late' });
  await settle();
  assert.deepEqual(connection.candidates, ['early', 'late']);
});

test('Signals that cannot be used are passed over, and those after them are not', async () => {
  const { peer, connection } = await settled();
  peer.take('candidate', { candidate: 'bad' });
  peer.take('offer', { sdp: 'bad' });
  peer.take('nonsense', null);
  peer.take('candidate', null);
  peer.take('candidate', { candidate: 'good' });
  await settle();
  assert.deepEqual(connection.candidates, ['good']);
});

test('Glare: the polite side takes its offer back and answers', async () => {
  const { peer, connection, sent } = await settled(true);
  connection.restartIce();
  await settle();
  peer.take('offer', { sdp: 'theirs' });
  await settle();
  assert.equal(connection.rollbacks, 1);
  assert.deepEqual(sent.map(([type]) => type), ['offer', 'answer']);
});

test('Glare: the other side passes the offer over and takes the answer to its own', async () => {
  const { peer, connection, sent } = await settled(false);
  connection.restartIce();
  await settle();
  peer.take('offer', { sdp: 'theirs' });
  await settle();
  assert.deepEqual(sent.map(([type]) => type), ['offer']);
  assert.equal(connection.signalingState, 'have-local-offer');
  peer.take('answer', { sdp: 'answer to ours' });
  await settle();
  assert.equal(connection.signalingState, 'stable');
});

test('An answer that nobody asked for is passed over', async () => {
  const { peer, connection, fired } = await settled();
  const before = connection.remoteDescription;
  peer.take('answer', { sdp: 'late' });
  await settle();
  assert.equal(connection.remoteDescription, before);
  assert.deepEqual(fired, []);
});

test('A path that is lost is looked for again after 3 seconds, three times, 7 seconds apart, and then the call is lost', async () => {
  const { connection, fired } = await settled();
  connection.become('connected');
  connection.become('disconnected');
  await clock.pass(2_999);
  assert.equal(connection.restarts, undefined);
  await clock.pass(1);
  assert.equal(connection.restarts, 1);
  await clock.pass(14_000);
  assert.equal(connection.restarts, 3);
  assert.ok(!fired.includes('lost'));
  await clock.pass(7_000);
  assert.equal(connection.restarts, 3);
  assert.deepEqual(fired.filter((name) => name === 'lost'), ['lost']);
});

test('A path that comes back ends the search, and the next loss has all three tries again', async () => {
  const { connection, fired } = await settled();
  for (let round = 1; round <= 5; round += 1) {
    connection.become('failed');
    connection.become('connected');
    await clock.pass(60_000);
    assert.equal(connection.restarts, round);
  }
  assert.ok(!fired.includes('lost'));
});

test('A goodbye on the way of the media ends the call a second later, unless the exchange was faster', async () => {
  for (const [isClosed, expected] of [[false, ['left']], [true, []]]) {
    const { peer, connection, fired } = await settled();
    const { transport } = connection.getSenders()[0];
    transport.state = 'closed';
    transport.dispatchEvent(new Event('statechange'));
    if (isClosed) peer.close();
    await clock.pass(1_000);
    assert.deepEqual(fired, expected);
  }
});

test('A call is on hold while the other side receives and does not send', async () => {
  const { peer, connection } = await settled();
  for (const [direction, isHeld] of [['sendrecv', false], ['sendonly', true], ['inactive', true], ['recvonly', false], [null, false]]) {
    connection.direction = direction;
    assert.equal(peer.isHeld, isHeld, String(direction));
  }
});

test('Keys are added to those still being sent, and refused where the other side takes none', async () => {
  const { peer, connection } = await settled();
  const { dtmf } = connection.getSenders()[0];
  peer.sendTones('1');
  peer.sendTones('2');
  assert.equal(dtmf.toneBuffer, '12');
  dtmf.canInsertDTMF = false;
  assert.equal(peer.sendTones('3'), false);
});

test('A peer that is closed sends and does nothing more', async () => {
  const { peer, connection, sent, fired } = await settled();
  connection.become('disconnected');
  const before = sent.length;
  peer.close();
  connection.find('late');
  peer.take('offer', { sdp: 'late' });
  await clock.pass(60_000);
  assert.equal(sent.length, before);
  assert.deepEqual(fired, ['troubled']);
  assert.equal(clock.pending, 0);
});
