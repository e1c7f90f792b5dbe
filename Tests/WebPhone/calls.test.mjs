// One call's states, told by what the exchange hears and what the page is shown.

import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { Clock, settle } from './clock.mjs';
import { page } from './page.mjs';
import { Connection, Stream } from './webrtc.mjs';

const { Calls } = await page('calls.js');
const { SoundError } = await page('sound.js');
const { RpcError } = await page('signaling.js');
console.warn = () => {};

const failure = (name) => new RpcError({ code: -32000, message: name, data: { name } });

class Signaling extends EventTarget {
  user = 'alice';
  told = [];
  asked = [];
  /** By method, what is answered: a value, an error to throw, or a promise. */
  answers = { 'invite.send': { invite: 'I1' }, 'invite.accept': {} };
  async request(method, params) {
    this.asked.push([method, params]);
    const answer = await this.answers[method];
    if (answer instanceof Error) throw answer;
    return answer;
  }
  tell(method, params) { this.told.push([method, params]); }
  async servers() { return [{ urls: 'stun:one' }]; }
  hear(type, data) { this.dispatchEvent(new CustomEvent('event', { detail: { type, data } })); }
  meet(resumed) { this.dispatchEvent(new CustomEvent('session', { detail: { resumed } })); }
}

class Sound {
  heard = [];
  microphones = [];
  refusal = null;
  async openMicrophone() {
    if (this.refusal) throw this.refusal;
    this.microphones.push(new Stream());
    return this.microphones.at(-1);
  }
  async play(stream) { this.heard.push(stream ? 'play' : 'stop'); return true; }
  ring() { this.heard.push('ring'); }
  ringBack() { this.heard.push('ringBack'); }
  quiet() { this.heard.push('quiet'); }
}

/** @type {Clock} */
let clock;
beforeEach(() => {
  clock = new Clock();
  clock.now = 5_000;  // No page is loaded at its own zero.
  clock.install();
});

class Memory {
  kept = new Map();
  getItem(key) { return this.kept.get(key) ?? null; }
  setItem(key, value) { this.kept.set(key, value); }
  removeItem(key) { this.kept.delete(key); }
}

function make(memory = new Memory()) {
  const signaling = new Signaling();
  const sound = new Sound();
  const calls = new Calls(signaling, sound, memory);
  const phases = [], endings = [], missed = [];
  calls.addEventListener('change', () => {
    if (phases.at(-1) !== calls.call?.phase) phases.push(calls.call?.phase);
  });
  calls.addEventListener('ended', ({ detail }) => endings.push(detail.ending.reason));
  calls.addEventListener('missed', ({ detail }) => missed.push(detail));
  return { signaling, sound, calls, memory, phases, endings, missed };
}

const invite = (more = {}) => ({
  invite: 'I2', inviter: 'bob', invitees: ['alice'], data: { offer: { type: 'offer', sdp: 'theirs' } }, ...more,
});
const answer = { type: 'answer', sdp: 'theirs' };
const connection = () => Connection.made.at(-1);

/** One that talks, after a call to bob. */
async function talking() {
  const made = make();
  await made.calls.dial('bob');
  made.signaling.hear('inviteAccepted', { invite: 'I1', data: { answer } });
  await settle();
  connection().become('connected');
  return made;
}

test('A call goes from the microphone over ringing to talking, and is hung up with its duration', async () => {
  const made = await talking();
  assert.deepEqual(made.phases, ['preparing', 'calling', 'connecting', 'talking']);
  const [[method, params]] = made.signaling.asked;
  assert.equal(method, 'invite.send');
  assert.equal(params.to, 'bob');
  assert.equal(params.ttl, 30);
  assert.equal(params.online_only, true);
  assert.equal(params.data.offer.type, 'offer');
  assert.ok(params.idempotency_key);
  assert.deepEqual(connection().options.iceServers, [{ urls: 'stun:one' }]);
  await clock.pass(2_500);
  made.calls.hangUp();
  assert.deepEqual(made.signaling.told, [['call.end', { invite: 'I1', reason: 'completed', duration_ms: 2_500 }]]);
  assert.deepEqual(made.endings, ['completed']);
  assert.ok(connection().isClosed);
  assert.ok(made.sound.microphones[0].tracks[0].isStopped);
  assert.equal(made.calls.call, null);
});

test('CALL-8: The other side has us call somebody: the old call goes on until the exchange has taken the invite', async () => {
  const made = await talking();
  const old = connection();
  made.signaling.answers['invite.send'] = { invite: 'I9' };
  made.signaling.hear('callSignal', { invite: 'I1', type: 'transfer', data: { to: 'carol' } });
  await settle();
  const [, [method, params]] = made.signaling.asked;
  assert.equal(method, 'invite.send');
  assert.equal(params.to, 'carol');
  assert.deepEqual(params.data.transfer, { invite: 'I1' });
  assert.deepEqual(made.signaling.told.map(([name, { invite, data }]) => [name, invite, data?.state]), [
    ['call.signal', 'I1', 'trying'], ['call.end', 'I1', undefined],
  ]);
  assert.ok(old.isClosed);
  assert.equal(made.calls.call.name, 'carol');
  made.signaling.hear('inviteAccepted', { invite: 'I9', data: { answer } });
  await settle();
  connection().become('connected');
  assert.equal(made.calls.call.phase, 'talking');
});

test('CALL-8: A transfer that names nobody, or that the exchange does not take, is told', async () => {
  const made = await talking();
  made.signaling.hear('callSignal', { invite: 'I1', type: 'transfer', data: {} });
  assert.deepEqual(made.signaling.told.map(([, { data }]) => data.state), ['refused']);
  made.signaling.answers['invite.send'] = failure('notAllowed');
  made.signaling.hear('callSignal', { invite: 'I1', type: 'transfer', data: { to: 'carol' } });
  await settle();
  assert.deepEqual(made.signaling.told.map(([, { data }]) => data?.state), ['refused', 'trying', 'failed', undefined]);
  assert.equal(made.calls.call, null);
});

test('A call that comes in rings, is answered, and talks', async () => {
  const made = make();
  made.signaling.hear('inviteReceived', invite());
  assert.equal(made.calls.call.phase, 'ringing');
  assert.ok(made.sound.heard.includes('ring'));
  made.signaling.hear('callSignal', { invite: 'I2', type: 'candidate', data: { candidate: 'early' } });
  await made.calls.answer();
  await settle();
  connection().become('connected');
  assert.deepEqual(made.phases, ['ringing', 'answering', 'connecting', 'talking']);
  assert.deepEqual(made.signaling.asked, [['invite.accept', { invite: 'I2', data: { answer: { type: 'answer', sdp: 'answer' } } }]]);
  assert.deepEqual(connection().candidates, ['early']);
  made.signaling.hear('callEnded', { invite: 'I2', reason: 'completed' });
  assert.deepEqual(made.endings, ['completed']);
  assert.deepEqual(made.signaling.told, []);
});

test('A call that the operator of the exchange ends is over, and nothing waits for the other side', async () => {
  const made = make();
  made.signaling.hear('inviteReceived', invite());
  await made.calls.answer();
  await settle();
  connection().become('connected');
  made.signaling.hear('callEnded', { invite: 'I2', reason: 'disconnected', duration_ms: 3000, from: 'bob' });
  assert.deepEqual(made.endings, ['disconnected']);
  assert.deepEqual(made.signaling.told, []);
});

test('A call from a telephone network is shown as one, and called back by its number', () => {
  const made = make();
  made.signaling.hear('inviteReceived', invite({
    inviter: 'desk', data: { offer: { type: 'offer', sdp: 'offer' }, trunk: { caller: '+4930', name: 'bob' } },
  }));
  assert.equal(made.calls.call.name, '+4930');
  assert.equal(made.calls.call.canCall, true);
  assert.equal(made.calls.call.label, 'Telephone \u2068+4930\u2069, which says it is “\u2068bob\u2069”');
  made.calls.decline();
  made.signaling.hear('inviteReceived', invite({
    invite: 'I3', inviter: 'desk', data: { offer: { type: 'offer', sdp: 'offer' }, trunk: {} },
  }));
  assert.equal(made.calls.call.name, 'desk');
  assert.equal(made.calls.call.label, 'Telephone \u2068desk\u2069');
  assert.equal(made.calls.call.canCall, false);
});

test('A stranger who calls while there is a call is marked as one, and not called back by a name', async () => {
  const made = make();
  await made.calls.dial('carl');
  for (const [id, caller, canCall] of [['I2', 'bob@evil', false], ['I3', '+4930', true], ['I4', '+49 30', false], ['I5', '*21*1#', false]]) {
    made.signaling.hear('inviteReceived', invite({
      invite: id, inviter: 'desk', data: { offer: { type: 'offer', sdp: 'offer' }, trunk: { caller } },
    }));
    assert.deepEqual(made.missed.pop(), { name: caller, label: `Telephone \u2068${caller}\u2069`, canCall });
  }
});

test('A call that comes in is declined', () => {
  const made = make();
  made.signaling.hear('inviteReceived', invite());
  made.calls.decline();
  assert.deepEqual(made.signaling.told, [['invite.reject', { invite: 'I2', data: { reason: 'declined' } }]]);
  assert.deepEqual(made.endings, ['declined']);
});

test('Each way in which a call is not taken has an ending of its own', async () => {
  for (const [type, data, ending] of [
    ['inviteRejected', { data: { reason: 'declined' } }, 'declined'],
    ['inviteRejected', { data: { reason: 'busy' } }, 'busy'],
    ['inviteRejected', { data: { reason: 'failed' } }, 'acceptFailed'],
    ['inviteRejected', { data: { reason: 'noAnswer' } }, 'noAnswer'],
    ['inviteRejected', {}, 'declined'],
    ['inviteTimedOut', {}, 'noAnswer'],
    ['inviteCancelled', {}, 'cancelled'],
    ['callEnded', { reason: 'disconnected' }, 'disconnected'],
  ]) {
    const made = make();
    await made.calls.dial('bob');
    made.signaling.hear(type, { invite: 'I1', ...data });
    assert.deepEqual(made.endings, [ending], type);
    assert.ok(made.sound.microphones[0].tracks[0].isStopped);
  }
});

test('A ringing call ends when it is cancelled, times out, or is taken by another device', () => {
  for (const [type, data, ending] of [
    ['inviteCancelled', {}, 'cancelled'], ['inviteTimedOut', {}, 'noAnswer'],
    ['inviteHandled', { action: 'accepted' }, 'acceptedElsewhere'],
    ['inviteHandled', { action: 'rejected' }, 'declinedElsewhere'],
  ]) {
    const made = make();
    made.signaling.hear('inviteReceived', invite());
    made.signaling.hear(type, { invite: 'I2', ...data });
    assert.deepEqual(made.endings, [ending]);
    assert.equal(made.sound.heard.at(-2), 'quiet');
  }
});

test('A timeout that crosses the answer does not end a call that stands', async () => {
  const made = await talking();
  made.signaling.hear('inviteTimedOut', { invite: 'I1' });
  made.signaling.hear('inviteCancelled', { invite: 'I1' });
  assert.equal(made.calls.call.phase, 'talking');
});

test('A call that is taken back before the exchange has it is cancelled as soon as it does', async () => {
  const made = make();
  let send = (_) => {};
  made.signaling.answers['invite.send'] = new Promise((resolve) => { send = resolve; });
  const dialled = made.calls.dial('bob');
  await settle();
  made.calls.hangUp();
  assert.deepEqual(made.signaling.told, []);
  send({ invite: 'I1' });
  await dialled;
  assert.deepEqual(made.signaling.told, [['invite.cancel', { invite: 'I1', data: { reason: 'cancelled' } }]]);
  assert.deepEqual(made.endings, ['cancelled']);
});

test('A call that is hung up while the microphone is asked for never reaches the exchange', async () => {
  const made = make();
  const dialled = made.calls.dial('bob');
  made.calls.hangUp();
  await dialled;
  assert.deepEqual(made.signaling.asked, []);
  assert.ok(made.sound.microphones[0].tracks[0].isStopped);
});

test('A call that is hung up while the exchange takes our answer is ended there once it has', async () => {
  const made = make();
  let accept = (_) => {};
  made.signaling.answers['invite.accept'] = new Promise((resolve) => { accept = resolve; });
  made.signaling.hear('inviteReceived', invite());
  const answered = made.calls.answer();
  await settle();
  made.calls.hangUp();
  accept({});
  await answered;
  assert.deepEqual(made.signaling.told.map(([method]) => method), ['invite.reject', 'call.end']);
});

test('An answer to a call that was hung up meanwhile is ended at the other side', async () => {
  const made = make();
  await made.calls.dial('bob');
  made.calls.hangUp();
  made.signaling.hear('inviteAccepted', { invite: 'I1', data: { answer } });
  assert.deepEqual(made.signaling.told.map(([method]) => method), ['invite.cancel', 'call.end']);
});

test('Glare: who calls us while we call is told that we are busy, and our own call goes on', async () => {
  const made = make();
  await made.calls.dial('bob');
  made.signaling.hear('inviteReceived', invite());
  assert.deepEqual(made.signaling.told, [['invite.reject', { invite: 'I2', data: { reason: 'busy' } }]]);
  assert.deepEqual(made.missed, [{ name: 'bob', label: 'bob', canCall: true }]);
  assert.equal(made.calls.call.phase, 'calling');
});

test('An invite of a group in which others are asked does not ring', () => {
  const made = make();
  made.signaling.hear('inviteReceived', invite({ invitees: ['carol'] }));
  assert.equal(made.calls.call, null);
  assert.deepEqual(made.signaling.told, []);
});

test('An invite without an offer is rejected as one that we cannot take', () => {
  for (const data of [undefined, {}, { offer: null }, { offer: { sdp: 7 } }]) {
    const made = make();
    made.signaling.hear('inviteReceived', invite({ data }));
    assert.deepEqual(made.signaling.told, [['invite.reject', { invite: 'I2', data: { reason: 'failed' } }]]);
    assert.deepEqual(made.endings, ['noCommonMedia']);
  }
});

test('An accept that the exchange refuses ends as what it says, and nothing is rejected after it', async () => {
  for (const [name, ending] of [
    ['alreadyHandled', 'acceptedElsewhere'], ['inviteTimedOut', 'noAnswer'], ['inviteCancelled', 'cancelled'],
    ['unknownInvite', 'connectionLost'], ['offline', 'offline'],
  ]) {
    const made = make();
    made.signaling.answers['invite.accept'] = failure(name);
    made.signaling.hear('inviteReceived', invite());
    await made.calls.answer();
    assert.deepEqual(made.endings, [ending]);
    assert.deepEqual(made.signaling.told, []);
  }
});

test('Without a microphone a call cannot be made, and one that rings is rejected so that nobody waits', async () => {
  const dialling = make();
  dialling.sound.refusal = new SoundError('refused');
  await dialling.calls.dial('bob');
  assert.deepEqual(dialling.endings, ['microphone']);
  assert.deepEqual(dialling.signaling.asked, []);
  const ringing = make();
  ringing.sound.refusal = new SoundError('missing');
  ringing.signaling.hear('inviteReceived', invite());
  await ringing.calls.answer();
  assert.deepEqual(ringing.endings, ['microphone']);
  assert.deepEqual(ringing.signaling.told, [['invite.reject', { invite: 'I2', data: { reason: 'failed' } }]]);
});

test('An offer or an answer that is no description ends the call as having no common media', async () => {
  const called = make();
  called.signaling.hear('inviteReceived', invite({ data: { offer: { type: 'offer', sdp: 'bad' } } }));
  await called.calls.answer();
  assert.deepEqual(called.endings, ['noCommonMedia']);
  const calling = make();
  await calling.calls.dial('bob');
  calling.signaling.hear('inviteAccepted', { invite: 'I1', data: { answer: { type: 'answer', sdp: 'bad' } } });
  await settle();
  assert.deepEqual(calling.endings, ['noCommonMedia']);
  assert.equal(calling.signaling.told[0][1].reason, 'dialFailed');
});

test('Who is unknown and who is not there are told apart', async () => {
  for (const name of ['unknownUser', 'noDeviceOnline']) {
    const made = make();
    made.signaling.answers['invite.send'] = failure(name);
    await made.calls.dial('bob');
    assert.deepEqual(made.endings, [name]);
  }
});

test('A call survives a session that is resumed, and sound survives one that is not', async () => {
  const made = await talking();
  made.signaling.meet(true);
  made.signaling.meet(false);
  assert.equal(made.calls.call.phase, 'talking');
  made.calls.hangUp();
  assert.deepEqual(made.signaling.told, [], 'the exchange knows nothing of the call any more');
});

test('A call that rings ends with a session that is not resumed, unless the exchange told of it again', () => {
  const forgotten = make();
  forgotten.signaling.hear('inviteReceived', invite());
  forgotten.signaling.meet(false);
  assert.deepEqual(forgotten.endings, ['connectionLost']);
  const kept = make();
  kept.signaling.hear('inviteReceived', invite());
  kept.signaling.hear('inviteReceived', invite());
  kept.signaling.meet(false);
  assert.equal(kept.calls.call.phase, 'ringing');
});

test('Mute switches the microphone, and a new microphone stays muted', async () => {
  const made = await talking();
  made.calls.toggleMute();
  assert.equal(made.sound.microphones[0].tracks[0].enabled, false);
  await made.calls.changeMicrophone();
  assert.equal(made.sound.microphones[1].tracks[0].enabled, false);
  assert.ok(made.sound.microphones[0].tracks[0].isStopped);
  made.calls.toggleMute();
  assert.equal(made.sound.microphones[1].tracks[0].enabled, true);
});

test('Keys are sent while there is sound, and never before', async () => {
  const made = make();
  assert.equal(made.calls.sendTone('1'), false);
  await made.calls.dial('bob');
  assert.equal(made.calls.sendTone('1'), false);
  const talks = await talking();
  assert.equal(talks.calls.sendTone('1'), true);
});

test('Signals from before the answer are kept up to 256 of them', async () => {
  const made = make();
  made.signaling.hear('inviteReceived', invite());
  for (let number = 0; number < 300; number += 1) {
    made.signaling.hear('callSignal', { invite: 'I2', type: 'candidate', data: { candidate: `${number}` } });
  }
  await made.calls.answer();
  await settle();
  assert.equal(connection().candidates.length, 256);
});

test('A connection that is lost for good ends the call and says why', async () => {
  const made = await talking();
  connection().become('failed');
  assert.ok(made.calls.call.isTroubled);
  await clock.pass(30_000);
  assert.deepEqual(made.endings, ['connectionLost']);
  assert.equal(made.signaling.told.at(-1)[1].reason, 'connectionLost');
});

test('A page that goes away ends the call that stands, and takes back the one that rings', async () => {
  const talks = await talking();
  talks.calls.leave();
  assert.equal(talks.signaling.told[0][0], 'call.end');
  const rings = make();
  await rings.calls.dial('bob');
  rings.calls.leave();
  assert.equal(rings.signaling.told[0][0], 'invite.cancel');
});

test('CALL-6: A page that comes back ends the call that the one before it left, once, though its goodbye was lost', async () => {
  const { calls, memory } = await talking();
  await clock.pass(3_000);
  calls.leave();
  const next = make(memory);
  assert.deepEqual(next.signaling.told, []);
  next.signaling.meet(false);
  const [[method, params], ...others] = next.signaling.told;
  assert.equal(method, 'call.end');
  assert.deepEqual([params.invite, params.reason], ['I1', 'completed']);
  assert.ok(params.duration_ms >= 0);
  assert.deepEqual(others, []);
  next.signaling.meet(true);
  assert.equal(next.signaling.told.length, 1);
});

test('A page that comes back takes back the call that rang, whether it was answered meanwhile or not', async () => {
  const rings = make();
  await rings.calls.dial('bob');
  rings.calls.leave();
  const next = make(rings.memory);
  next.signaling.meet(false);
  assert.deepEqual(next.signaling.told.map(([method, { invite }]) => [method, invite]), [['invite.cancel', 'I1'], ['call.end', 'I1']]);
});

test('CALL-6: A connection that drops and comes back, a copy of the tab and another user end no call', async () => {
  const { calls, signaling, memory } = await talking();
  signaling.meet(true);
  signaling.meet(false);
  assert.deepEqual(signaling.told, []);
  assert.equal(calls.call.phase, 'talking');
  // A copy of a tab has what the tab has kept.
  const copy = make(memory);
  copy.signaling.meet(false);
  assert.deepEqual(copy.signaling.told, []);
  const other = await talking();
  other.calls.leave();
  const next = make(other.memory);
  next.signaling.user = 'carol';
  next.signaling.meet(false);
  assert.deepEqual(next.signaling.told, []);
});

test('A caller sees that there is no such number, or that it cannot be reached now', async () => {
  for (const [data, reason] of [
    [{ reason: 'failed', cause: 'noSuchNumber' }, 'unknownUser'], [{ reason: 'failed', cause: 'notReachable' }, 'noDeviceOnline'],
    [{ reason: 'failed', cause: 'noCommonCodec' }, 'acceptFailed'], [{ reason: 'busy', cause: 'noSuchNumber' }, 'busy'],
    [{ reason: 'constructor' }, 'declined'], [undefined, 'declined'],
  ]) {
    const made = make();
    await made.calls.dial('bob');
    made.signaling.hear('inviteRejected', { invite: 'I1', data });
    assert.deepEqual(made.endings, [reason]);
  }
});

test('While there is a call, no other begins', async () => {
  const made = await talking();
  await made.calls.dial('carol');
  assert.equal(made.signaling.asked.length, 1);
  assert.equal(made.calls.call.name, 'bob');
});
