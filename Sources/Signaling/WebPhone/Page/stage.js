// The call as it is seen: who, how far, how long, how well.

import { clock, element, make, paintFace, say } from './elements.js';
import { Plot } from './plot.js';
import { Sampler } from './stats.js';
import { farewell, isProblem } from './words.js';

/** @typedef {import('./calls.js').Call} Call */

const sampleTime = 500;
const keys = [...'123456789*0#'];
const letters = ['', 'ABC', 'DEF', 'GHI', 'JKL', 'MNO', 'PQRS', 'TUV', 'WXYZ', '', '', ''];

const phases = {
  preparing: 'Waiting for the microphone', calling: 'Ringing', ringing: 'is calling', answering: 'Answering',
  connecting: 'Connecting', talking: 'Connected', ended: 'Ended',
};

const plots = {
  trip: new Plot(element('plot-trip'), { lines: ['--plot-1'], bottom: 0, top: 100, grows: true }),
  jitter: new Plot(element('plot-jitter'), { lines: ['--plot-2'], bottom: 0, top: 100, grows: true }),
  loss: new Plot(element('plot-loss'), { lines: ['--plot-3'], bottom: 0, top: 5, grows: true, isBar: true }),
  level: new Plot(element('plot-level'), { lines: ['--plot-1', '--plot-4'], bottom: -70, top: 0 }),
};

/** Shows the call; fires `again` with `detail: name`, and `rest`, likewise, once the user has seen how it ended. */
export class Stage extends EventTarget {
  #calls;
  #sound;
  /** @type {Call | null} */
  #shown = null;
  #timer = 0;
  #sampler = new Sampler();
  /** Lets go of the page's elements, which outlive this. */
  #ended = new AbortController();

  /**
   * @param {import('./calls.js').Calls} calls
   * @param {import('./sound.js').Sound} sound
   */
  constructor(calls, sound) {
    super();
    this.#calls = calls;
    this.#sound = sound;
    const on = (/** @type {string} */ id, /** @type {string} */ type, /** @type {(event: Event) => void} */ act) =>
      element(id).addEventListener(type, act, { signal: this.#ended.signal });
    on('hang-up', 'click', () => calls.hangUp());
    on('mute', 'click', () => calls.toggleMute());
    on('answer', 'click', () => calls.answer());
    on('decline', 'click', () => calls.decline());
    on('dismiss', 'click', () => this.#dismiss());
    on('again', 'click', () => {
      const name = this.#shown?.canCall && this.#shown.name;
      this.rest();
      if (name) this.dispatchEvent(new CustomEvent('again', { detail: name }));
    });
    on('keys', 'click', () => this.#setKeypad(element('keypad').hidden));
    on('incoming', 'cancel', (event) => {
      event.preventDefault();  // Escape only quiets: a call is not to be lost by a key.
      sound.quiet();
    });
    element('pad').replaceChildren(...keys.map((key, index) => make('button', {
      type: 'button', 'aria-label': { '*': 'Star', '#': 'Hash' }[key] ?? key, onclick: () => this.press(key),
    }, make('b', {}, key), make('small', { 'aria-hidden': 'true' }, letters[index]))));
    calls.addEventListener('change', () => this.#show());
    calls.addEventListener('ended', (event) => this.#showEnd(/** @type {CustomEvent} */ (event).detail));
  }

  /** @param {string} key */
  press(key) {
    if (!this.#calls.sendTone(key)) return;
    this.#sound.key(key);
    const sent = element('sent');
    sent.value = (sent.value + key).slice(-24);
  }

  /** Nothing is going on. */
  rest() {
    this.#stopSampling();
    this.#shown = null;
    element('incoming').close();
    element('call').hidden = true;
    element('rest').hidden = false;
    document.body.dataset.call = 'idle';
    document.title = 'Handset';
  }

  #dismiss() {
    const name = this.#shown?.canCall ? this.#shown.name : '';
    this.rest();
    this.dispatchEvent(new CustomEvent('rest', { detail: name }));
  }

  /** The Escape key: closes what is open, and never ends a call. */
  escape() {
    if (!element('keypad').hidden) {
      this.#setKeypad(false);
      element('keys').focus();
    } else if (document.body.dataset.call === 'ended') {
      this.#dismiss();
    }
  }

  /** The user signs out. */
  end() {
    this.rest();
    this.#ended.abort();
  }

  #show() {
    const { call } = this.#calls;
    if (!call) return;
    const isNew = this.#shown !== call;
    this.#shown = call;
    document.body.dataset.call = call.phase;
    const incoming = element('incoming');
    if (call.phase === 'ringing') {
      paintFace(element('incoming-face'), call.name);
      say(element('incoming-name'), call.label);
      document.title = `${call.label} is calling`;
      if (!incoming.open) incoming.showModal();
      return;
    }
    if (incoming.open) incoming.close();
    if (isNew || element('call').hidden) this.#begin(call);
    document.title = `${call.label} · Handset`;
    say(element('state'), stateWords(call));
    element('mute').setAttribute('aria-pressed', String(call.isMuted));
    say(element('mute').querySelector('span'), call.isMuted ? 'Unmute' : 'Mute');
    element('mute').disabled = !call.microphone;
    element('keys').disabled = call.phase !== 'talking';
    if (call.phase === 'talking' && this.#timer === 0) this.#startSampling(call);
  }

  /** @param {Call} call */
  #begin(call) {
    element('rest').hidden = true;
    element('call').hidden = false;
    element('ended').hidden = true;
    element('controls').hidden = false;
    element('plots').hidden = true;
    element('clock').hidden = true;
    element('sent').value = '';
    say(element('why'), '');
    element('call').classList.remove('problem');
    this.#setKeypad(false);
    paintFace(element('face'), call.name);
    say(element('party'), call.label);
    element('party').focus();  // Not a button: a second press of Enter shall not hang up.
  }

  /** @param {Call} call */
  #showEnd(call) {
    this.#stopSampling();
    const isOurs = this.#shown === call;
    this.#shown = call;
    if (element('incoming').open) element('incoming').close();
    if (!isOurs || element('call').hidden) this.#begin(call);
    document.body.dataset.call = 'ended';
    document.title = 'Handset';
    const words = call.ending ? farewell(call.ending, call.label, call.direction) : { title: 'Call ended', text: '' };
    say(element('state'), words.title);
    say(element('why'), words.text);
    element('call').classList.toggle('problem', isProblem(call.ending?.reason ?? ''));
    element('face').style.setProperty('--loud', '0');
    element('controls').hidden = true;
    this.#setKeypad(false);
    element('ended').hidden = false;
    element('again').hidden = !call.canCall;
    element('dismiss').focus();
  }

  // Time and numbers.

  /** @param {Call} call */
  #startSampling(call) {
    this.#sampler = new Sampler();
    for (const plot of Object.values(plots)) plot.clear();
    element('plots').hidden = false;
    element('clock').hidden = false;
    const tick = async () => {
      say(element('clock'), clock(performance.now() - call.since));
      if (!call.peer) return;
      const sample = await this.#sampler.sample(call.peer.connection).catch(() => null);
      if (sample && this.#timer !== 0) this.#showSample(sample, call);
    };
    this.#timer = setInterval(tick, sampleTime);
    tick();
  }

  #stopSampling() {
    clearInterval(this.#timer);
    this.#timer = 0;
  }

  /** @param {import('./stats.js').Sample} sample @param {Call} call */
  #showSample(sample, call) {
    plots.trip.push(sample.roundTrip);
    plots.jitter.push(sample.jitterBuffer);
    plots.loss.push(sample.loss);
    plots.level.push(call.isMuted ? -70 : sample.levelHere, sample.levelThere);
    say(element('value-trip'), number(sample.roundTrip, 'ms'));
    say(element('value-jitter'), number(sample.jitterBuffer, 'ms'));
    say(element('value-loss'), number(sample.loss, '%', 1));
    say(element('value-level'), number(sample.levelThere, 'dB'));
    say(element('path'), [sample.codec, sample.path].filter(Boolean).join(' · '));
    const loud = Math.min(1, Math.max(0, ((sample.levelThere ?? -90) + 60) / 50));
    element('face').style.setProperty('--loud', loud.toFixed(2));
  }

  /** @param {boolean} isOpen */
  #setKeypad(isOpen) {
    element('keypad').hidden = !isOpen;
    element('keys').setAttribute('aria-expanded', String(isOpen));
    element('call').classList.toggle('with-keypad', isOpen);
    if (isOpen) element('pad').querySelector('button').focus();
  }
}

/** @param {Call} call */
function stateWords(call) {
  if (call.phase === 'calling' && !call.invite) return 'Calling';
  if (call.phase !== 'talking') return phases[call.phase];
  if (call.isTroubled) return 'The connection is bad. Looking for another way';
  if (call.isHeld) return 'On hold';
  return call.isMuted ? 'You are muted' : phases.talking;
}

/** @param {number | null} value @param {string} unit @param {number} [digits] */
function number(value, unit, digits = 0) {
  if (value === null) return '–';
  const text = (digits > 0 && value > 0 && value < 10 ? value.toFixed(digits) : String(Math.round(value))).replace('-', '−');
  return `${text}\u202f${unit}`;
}
