// The page: signing in, and what connects its parts.

import { Calls } from './calls.js';
import { clock, element, make, say } from './elements.js';
import { webConfiguration } from './login.js';
import { People } from './people.js';
import { Signaling } from './signaling.js';
import { Sound } from './sound.js';
import { Stage } from './stage.js';
import { farewell, linkWords, microphoneProblem, restWords, signInProblem } from './words.js';

/** @typedef {import('./login.js').Credential} Credential */

const sound = new Sound(element('far'));
const people = new People();
/** @type {{ signaling: Signaling, calls: Calls, stage: Stage } | null} */
let line = null;
let usesToken = false;

// What is told across the page.

/**
 * Shows a message that stays until it is closed or shown again with other words.
 * @param {string} id one message of each kind at a time
 * @param {{ title: string, text: string }} message
 * @param {{ label: string, act: () => void }} [action]
 */
function notice(id, message, action) {
  unnotice(id);
  element('notices').append(make('div', { class: 'notice', 'data-notice': id },
    make('p', {}, make('strong', {}, message.title.replace(/\.?$/, '.')), ` ${message.text}`),
    action ? make('button', { type: 'button', onclick: () => { unnotice(id); action.act(); } }, action.label) : '',
    make('button', { type: 'button', class: 'quiet', 'aria-label': `Close: ${message.title}`, onclick: () => unnotice(id) }, '✕')));
}

/** @param {string} id */
function unnotice(id) {
  const note = element('notices').querySelector(`[data-notice="${id}"]`);
  const hadFocus = note?.contains(document.activeElement);
  note?.remove();
  if (hadFocus) settleFocus();
}

/** Puts the keyboard's focus where what matters begins, after what had it has gone. */
function settleFocus() {
  if (document.body.dataset.view === 'signin') element(usesToken ? 'token' : 'user').focus();
  else if (element('call').hidden) people.focus('');
  else element('party').focus();
}

/** @param {'loading' | 'signin' | 'phone'} view */
function show(view) {
  document.body.dataset.view = view;
  element('signin').hidden = view !== 'signin';
  for (const id of ['people', 'stage', 'account', 'link']) element(id).hidden = view !== 'phone';
}

// Signing in.

/** One device a tab: two tabs of one user are two devices. */
function device() {
  const id = sessionStorage.getItem('device') ?? `web-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`;
  sessionStorage.setItem('device', id);
  return { id, name: 'Web phone', capabilities: ['audio', 'webrtc'] };
}

/** @param {boolean} isToken */
function useToken(isToken) {
  usesToken = isToken;
  element('with-password').hidden = isToken;
  element('with-token').hidden = !isToken;
  element('signin-other').setAttribute('aria-pressed', String(isToken));
  say(element('signin-other'), isToken ? 'Use a name and password instead' : 'Use a token instead');
  say(element('signin-problem'), '');
}

async function offerSignIn(problem = '') {
  line = null;
  show('signin');
  say(element('signin-problem'), problem);
  setBusy(false);
  if (problem) element(usesToken ? 'token' : element('user').value ? 'password' : 'user').focus();
  try {
    const { guests } = await webConfiguration();
    element('guests').hidden = guests.length === 0;
    element('guest-row').replaceChildren(...guests.map((guest) => make('button', {
      type: 'button', class: 'guest', onclick: () => signIn({ mediaToken: guest.media_token }),
    }, guest.user)));
    unnotice('link');
  } catch (error) {
    if (!problem) say(element('signin-problem'), signInProblem(error));
  }
}

/** @param {boolean} isBusy */
function setBusy(isBusy) {
  for (const button of element('signin').querySelectorAll('button')) button.disabled = isBusy;
  say(element('signin-go'), isBusy ? 'Signing in…' : 'Sign in');
}

/** @param {SubmitEvent} event */
function submit(event) {
  event.preventDefault();
  const user = element('user').value.trim().normalize('NFC');
  const password = element('password').value;
  const mediaToken = element('token').value.trim();
  if (usesToken ? !mediaToken : !user || !password) {
    say(element('signin-problem'), usesToken ? 'A token is needed.' : 'A name and a password are needed.');
    element(usesToken ? 'token' : user ? 'password' : 'user').focus();
    return;
  }
  signIn(usesToken ? { mediaToken } : { user, password });
}

/**
 * @param {Credential | null} credential kept in memory alone, to come back by itself after the exchange restarts
 * @param {import('./login.js').Grant | null} [grant]
 */
function signIn(credential, grant = null) {
  setBusy(true);
  say(element('signin-problem'), '');
  const signaling = new Signaling(credential, device(), grant);
  const calls = new Calls(signaling, sound);
  const stage = new Stage(calls, sound);
  line = { signaling, calls, stage };
  let wasReady = false;

  signaling.addEventListener('state', () => {
    if (line?.signaling !== signaling) return;
    if (signaling.state === 'ready') wasReady = true;
    if (signaling.state === 'refused') {
      sessionStorage.removeItem('grant');
      calls.hangUp();
      stage.end();
      return offerSignIn(signInProblem(signaling.refusal));
    }
    if (!wasReady && signaling.state === 'reconnecting') {
      if (grant) return;  // A page loaded anew while the exchange is away: it goes on trying.
      signaling.end();
      stage.end();
      return offerSignIn(signInProblem({ code: 'unreachable' }));
    }
    showLink(signaling);
  });
  signaling.addEventListener('session', (event) => {
    const { people: found, session } = /** @type {CustomEvent} */ (event).detail;
    sessionStorage.setItem('grant', JSON.stringify(signaling.grant));
    say(element('whoami'), session.user);
    if (document.body.dataset.view !== 'phone') enter(stage);
    people.show(found);
    showLink(signaling);
  });
  signaling.addEventListener('event', (event) => {
    const { type, data } = /** @type {CustomEvent} */ (event).detail;
    if (type === 'presenceChanged') people.change(data);
  });
  calls.addEventListener('change', () => allow());
  calls.addEventListener('ended', (event) => remember(/** @type {CustomEvent} */ (event).detail));
  calls.addEventListener('missed', (event) => {
    people.remember({ .../** @type {CustomEvent} */ (event).detail, text: 'Missed while you talked', isMissed: true });
  });
  calls.addEventListener('blocked', () => notice('blocked',
    { title: 'No sound yet.', text: 'The browser waits for a click before it plays.' },
    { label: 'Play', act: () => sound.resume() }));
  calls.addEventListener('silenced', () => notice('silenced',
    { title: 'The microphone is gone.', text: 'Choose another under Sound.' }, { label: 'Sound', act: openSound }));
  stage.addEventListener('rest', (event) => people.focus(/** @type {CustomEvent} */ (event).detail));
  stage.addEventListener('again', (event) => calls.dial(/** @type {CustomEvent} */ (event).detail));
  signaling.start();
}

/** @param {Stage} stage */
function enter(stage) {
  for (const id of ['password', 'token']) element(id).value = '';
  stage.rest();
  show('phone');
  settleFocus();
  if (!isSecureContext) notice('insecure', microphoneProblem('insecure'));
}

async function signOut() {
  const old = line;
  line = null;
  sessionStorage.removeItem('grant');
  old?.calls.hangUp();
  old?.stage.end();
  people.forget();
  for (const note of [...element('notices').children]) note.remove();
  await Promise.all([old?.signaling.end(), offerSignIn()]);
  element('user').focus();
}

// While signed in.

/** @param {Signaling} signaling */
function showLink(signaling) {
  const { state } = signaling;
  element('link').dataset.state = state;
  say(element('link-text'), linkWords(state));
  const words = restWords(state);
  say(element('rest-lead'), words.title);
  say(element('rest-hint'), words.text);
  if (state === 'reconnecting' && document.body.dataset.view === 'phone') {
    notice('link', {
      title: 'The exchange cannot be reached.',
      text: 'This phone reconnects by itself. An established call continues.',
    }, { label: 'Try now', act: () => signaling.retry() });
  } else if (state === 'replaced') {
    notice('link', { title: 'This phone is open elsewhere.', text: 'Another tab has taken over.' },
      { label: 'Use it here', act: () => {
        sessionStorage.removeItem('device');
        location.reload();
      } });
  } else {
    unnotice('link');
  }
  allow();
}

function allow() {
  people.allow({ isBusy: Boolean(line?.calls.call), isOnline: line?.signaling.state === 'ready' });
}

/** @param {import('./calls.js').Call} call */
function remember(call) {
  allow();
  const reason = call.ending?.reason ?? '';
  if (['microphone', 'offline'].includes(reason)) return;  // Nobody heard of it.
  const isMissed = call.direction === 'incoming' && ['cancelled', 'noAnswer'].includes(reason);
  const way = call.direction === 'incoming' ? 'Called you' : 'You called';
  const outcome = call.since > 0 || !call.ending ? clock(performance.now() - call.since)
    : farewell(call.ending, call.label, call.direction).title.toLowerCase();
  const { name, label, canCall } = call;
  people.remember({ name, label, canCall, text: isMissed ? 'Missed' : `${way} · ${outcome}`, isMissed });
}

// Sound.

/** Open while the sheet is, to show the microphone's level. @type {{ stream: MediaStream, timer: number, context: AudioContext } | null} */
let listening = null;

async function openSound() {
  element('sound').showModal();
  await listen();
  await listDevices();
}

async function listDevices() {
  const { microphones, speakers } = await sound.devices();
  const options = (/** @type {MediaDeviceInfo[]} */ devices, /** @type {string} */ chosen) => [
    make('option', { value: '' }, 'The system’s choice'),
    ...devices.filter((found) => !['', 'default', 'communications'].includes(found.deviceId)).map((found, index) => make('option',
      { value: found.deviceId, selected: found.deviceId === chosen }, found.label || `Device ${index + 1}`)),
  ];
  element('microphone').replaceChildren(...options(microphones, sound.microphone));
  element('speaker').replaceChildren(...options(speakers, sound.speaker));
  element('speaker').disabled = !sound.choosesSpeaker;
}

/** Shows how loud the chosen microphone is. */
async function listen() {
  unlisten();
  say(element('sound-note'), sound.choosesSpeaker ? '' : 'This browser plays where the system says.');
  try {
    const stream = await sound.openMicrophone();
    if (!element('sound').open) return stream.getTracks().forEach((track) => track.stop());
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    analyser.fftSize = 1024;
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      const level = Math.min(1, Math.max(0, (10 * Math.log10(power || 1e-9) + 60) / 55));
      element('meter').style.setProperty('--level', level.toFixed(2));
    }, 80);
    listening = { stream, timer, context };
  } catch (error) {
    const words = microphoneProblem(error.code);
    say(element('sound-note'), `${words.title}. ${words.text}`);
  }
}

function unlisten() {
  if (!listening) return;
  clearInterval(listening.timer);
  listening.stream.getTracks().forEach((track) => track.stop());
  listening.context.close();
  listening = null;
  element('meter').style.setProperty('--level', '0');
}

// Wiring.

element('signin-form').addEventListener('submit', submit);
element('signin-other').addEventListener('click', () => useToken(!usesToken));
element('sign-out').addEventListener('click', signOut);
element('open-sound').addEventListener('click', openSound);
element('sound-close').addEventListener('click', () => element('sound').close());
element('sound').addEventListener('close', unlisten);
element('sound-test').addEventListener('click', () => sound.test());
element('speaker').addEventListener('change', () => sound.chooseSpeaker(element('speaker').value));
element('microphone').addEventListener('change', async () => {
  sound.microphone = element('microphone').value;
  await line?.calls.changeMicrophone().catch(() => {});
  await listen();
});
sound.addEventListener('devices', listDevices);
people.addEventListener('call', (event) => {
  line?.stage.rest();
  line?.calls.dial(/** @type {CustomEvent} */ (event).detail);
});
addEventListener('pagehide', () => {
  line?.calls.leave();
  line?.signaling.leave();
});
addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });
addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !document.querySelector('dialog[open]')) line?.stage.escape();
  const isWriting = event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey || !line?.calls.call) return;
  if (event.key === 'm' || event.key === 'M') line.calls.toggleMute();
  else if (/^[0-9*#]$/.test(event.key)) line.stage.press(event.key);
});

const kept = sessionStorage.getItem('grant');
if (kept) signIn(null, JSON.parse(kept));
else offerSignIn().then(() => element('user').focus());
