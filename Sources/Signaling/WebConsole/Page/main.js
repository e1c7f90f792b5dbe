// The page: who is signed in, which view is shown, and what the device reports.

import { element, make, say } from '../phone/elements.js';
import { CallView } from './call.js';
import { RunningCalls } from './calls.js';
import { Client, keptToken } from './client.js';
import { EventFollower } from './events.js';
import { HistoryView } from './history.js';
import { RecordView } from './record.js';
import { read, write } from './route.js';
import { eventWords, problemWords } from './text.js';

/** How often the calls' figures are read, in milliseconds. */
const interval = 1000;

class Session {
  #client;
  #calls = new RunningCalls();
  #view = new CallView();
  #history;
  #record;
  /** @type {EventFollower | undefined} */
  #events;
  /** @type {any} */
  #status = null;
  /** @type {Map<number, { room: string, muted: boolean }>} */
  #members = new Map();
  /** Calls that are recorded. @type {Set<number>} */
  #recorded = new Set();
  /** Records of calls that ended while they were shown. @type {Map<number, string>} */
  #ended = new Map();
  #timer = 0;
  #isReading = false;
  #isOver = false;

  /** @param {Client} client @param {any} status */
  constructor(client, status) {
    this.#client = client;
    this.#status = status;
    this.#history = new HistoryView(client, (filters) => { location.hash = write({ view: 'history', ...filters }); });
    this.#record = new RecordView(client, (record, at) => history.replaceState(null, '', write({ view: 'record', record, at })));
  }

  begin() {
    this.#events = new EventFollower(this.#client, this.#status.events.cursor, {
      event: ({ data }) => this.#happened(data),
      link: (isThere) => showLink(isThere),
      refused: (error) => signOut(problemWords(error)),
    });
    this.#events.follow();
    this.route();
    this.#read();
  }

  end() {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#events?.end();
    this.#record.hide();
    this.#calls.choose(undefined);
    this.#calls.note([]);
  }

  // What the device reports.

  async #read() {
    if (this.#isReading) return;
    this.#isReading = true;
    clearTimeout(this.#timer);
    const began = performance.now();
    try {
      await this.#readOnce();
    } catch (error) {
      if (/** @type {any} */ (error).status === 401) return signOut(problemWords(error));
    }
    this.#isReading = false;
    if (this.#isOver) return;
    this.#timer = window.setTimeout(() => this.#read(), Math.max(250, interval - (performance.now() - began)));
  }

  async #readOnce() {
    const calls = [];
    let after;
    do {
      const page = await this.#client.get('v1/calls', { after });
      calls.push(...page.calls);
      after = page.next;
    } while (after !== undefined);
    const { conferences } = await this.#client.get('v1/conferences');
    if (this.#isOver) return;
    this.#members = new Map(conferences.flatMap((/** @type {any} */ { room, members }) =>
      members.map((/** @type {any} */ { call, muted }) => [call, { room, muted }])));
    this.#recorded = new Set(calls.filter((/** @type {any} */ call) => call.recorded).map((/** @type {any} */ call) => call.call));
    this.#calls.note(calls);
    say(element('count'), String(calls.length));
    this.#showCall();
  }

  /** @param {any} data */
  #happened(data) {
    const words = eventWords(data);
    if (data.call !== undefined && words) this.#calls.happened(data.call, data.at_ms, words);
    if (data.event === 'sound') this.#showSound(data.sound ?? data);
    if (data.event === 'recording') this.#recorded[data.state === 'started' ? 'add' : 'delete'](data.call);
    if (data.event === 'ended') this.#noteEnd(data);
    if (data.event === 'gap') this.#forget();
    if (['incoming', 'calling', 'answered', 'established', 'ended'].includes(data.event)) setTimeout(() => this.#read(), 50);
  }

  /** Events are missing, as after a restart of the device, whose calls have the same numbers again. */
  #forget() {
    this.#ended.clear();
  }

  /** @param {any} data */
  async #noteEnd(data) {
    const entry = this.#calls.find(data.call);
    // Each look at the history costs the device a reading of its file.
    if (entry === undefined || read(location.hash).call !== data.call) return;
    const found = await this.#client.get('v1/history', { search: data.invite ?? data.peer, limit: 1 }).catch(() => null);
    const record = found?.history[0];
    if (record === undefined || record.peer !== data.peer || record.account !== data.account) return;
    this.#ended.set(data.call, record.record);
    if (this.#ended.size > 100) this.#ended.delete(/** @type {never} */ ([...this.#ended.keys()][0]));
    this.#showCall();
  }

  // What is shown.

  route() {
    const route = read(location.hash);
    document.body.dataset.view = route.view;
    document.body.dataset.chosen = String(route.view === 'calls' && route.call !== undefined);
    element('running').hidden = element('stage').hidden = route.view !== 'calls';
    element('history').hidden = route.view !== 'history';
    element('record').hidden = route.view !== 'record';
    mark('tab-calls', route.view === 'calls');
    mark('tab-history', route.view !== 'calls');
    if (route.view === 'history') {
      element('record-back').setAttribute('href', write(route));
      this.#history.show(route);
    }
    if (route.view === 'record') this.#record.show(route.record, route.at);
    else this.#record.hide();
    this.#calls.choose(route.view === 'calls' ? route.call : undefined);
    this.#view.clear();
    this.#showSound(this.#status.sound);
    this.#showCall();
    if (route.view === 'calls' && route.call !== undefined) element('party').focus({ preventScroll: true });
    // What is chosen in a list takes the place of the list here.
    if (route.view === 'record' || matchMedia('(max-width: 719px)').matches) scrollTo(0, 0);
  }

  #showCall() {
    const route = read(location.hash);
    if (route.view !== 'calls') return;
    const entry = route.call === undefined ? undefined : this.#calls.find(route.call);
    element('rest').hidden = entry !== undefined;
    element('detail').hidden = entry === undefined;
    if (entry) this.#view.show(entry, this.#actions(entry));
  }

  /** @param {any} sound mute and volume of the sound card; undefined without one */
  #showSound(sound) {
    if (sound) this.#status.sound = sound;
    const button = element('microphone');
    button.hidden = !this.#status.sound;
    if (!this.#status.sound) return;
    const isMuted = this.#status.sound.muted;
    button.setAttribute('aria-pressed', String(isMuted));
    say(button, isMuted ? 'Unmute microphone' : 'Mute microphone');
    button.onclick = () => this.#do(() => this.#client.post(`v1/sound/${isMuted ? 'unmute' : 'mute'}`), (answer) => this.#showSound(answer));
  }

  // What can be done.

  /**
   * @param {import('./calls.js').Running} entry
   * @returns {import('./call.js').Action[]}
   */
  #actions({ call, isOver }) {
    const number = call.call;
    if (isOver) {
      const record = this.#ended.get(number);
      return record ? [{ id: 'see-record', label: 'See its record', kind: 'primary', run: () => { location.hash = write({ view: 'record', record }); } }] : [];
    }
    const send = (/** @type {string} */ action, /** @type {object} */ body = {}) =>
      this.#do(() => this.#client.post(`v1/calls/${number}/${action}`, body));
    if (call.state === 'ringing' && call.incoming) {
      return [{ id: 'answer', label: 'Answer', kind: 'primary', run: () => send('answer') },
        { id: 'decline', label: 'Decline', kind: 'end', run: () => send('reject') }];
    }
    /** @type {import('./call.js').Action[]} */
    const actions = [];
    const member = this.#members.get(number);
    if (member) {
      actions.push({
        id: 'mute', label: member.muted ? 'Unmute in the room' : 'Mute in the room', pressed: member.muted,
        run: () => send(member.muted ? 'conference_unmute' : 'conference_mute'),
      });
    }
    if (call.state === 'talking') actions.push(...this.#soundActions(number, send));
    actions.push({ id: 'hang-up', label: 'Hang up', kind: 'end', run: () => this.#hangUp(call, send) });
    return actions;
  }

  /**
   * @param {number} number
   * @param {(action: string, body?: object) => void} send
   * @returns {import('./call.js').Action[]}
   */
  #soundActions(number, send) {
    const isRecorded = this.#recorded.has(number);
    return [
      { id: 'play', label: 'Play a file…', run: () => this.#play(send) },
      { id: 'stop', label: 'Stop the file', run: () => send('stop') },
      { id: 'record-call', label: isRecorded ? 'End the recording' : 'Record', pressed: isRecorded, run: () => send('record', { start: !isRecorded }) },
    ];
  }

  /** @param {any} call @param {(action: string) => void} send */
  async #hangUp(call, send) {
    const yes = await ask({ title: 'Hang up?', text: `The call with ${call.peer} ends for both sides.`, yes: 'Hang up' });
    if (yes) send('hangup');
  }

  /** @param {(action: string, body: object) => void} send */
  async #play(send) {
    const file = await ask({
      title: 'Play a file', text: 'WAV or Ogg Opus, on the device’s machine.', yes: 'Play', field: 'Path from the root',
    });
    if (file) send('play', { file });
  }

  /**
   * @param {() => Promise<any>} work
   * @param {(answer: any) => void} [then]
   */
  async #do(work, then) {
    try {
      const answer = await work();
      element('notices').replaceChildren();
      then?.(answer);
      this.#read();
    } catch (error) {
      notice(problemWords(error));
    }
  }
}

// The page's parts that do not belong to a call.

/** @type {Session | undefined} */
let session;

/** @param {string} id @param {boolean} isCurrent */
function mark(id, isCurrent) {
  if (isCurrent) element(id).setAttribute('aria-current', 'page');
  else element(id).removeAttribute('aria-current');
}

/** @param {boolean} isThere */
function showLink(isThere) {
  element('link').dataset.state = isThere ? 'ready' : 'reconnecting';
  say(element('link-text'), isThere ? 'Live' : 'Reconnecting');
}

/** @param {string} text */
function notice(text) {
  const close = make('button', { type: 'button', class: 'quiet', onclick: () => element('notices').replaceChildren() }, 'Close');
  element('notices').replaceChildren(make('div', { class: 'notice' }, make('p', {}, text), close));
}

/**
 * Asks before something is done.
 * @param {{ title: string, text: string, yes: string, field?: string }} question
 * @returns {Promise<string | null>} null for no; the field's text, or `yes`
 */
function ask({ title, text, yes, field }) {
  const dialog = element('ask');
  say(element('ask-title'), title);
  say(element('ask-text'), text);
  say(element('ask-yes'), yes);
  element('ask-field').hidden = field === undefined;
  say(element('ask-label'), field ?? '');
  element('ask-value').value = '';
  dialog.returnValue = '';
  dialog.showModal();
  if (field !== undefined) element('ask-value').focus();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === 'yes' ? (field === undefined ? 'yes' : element('ask-value').value.trim()) : null);
  });
}

/** @param {string} token */
async function signIn(token) {
  const client = new Client(token);
  const status = await client.get('v1/status');
  keptToken.set(token);
  element('signin').hidden = true;
  for (const id of ['tabs', 'account', 'link']) element(id).hidden = false;
  say(element('device'), status.device);
  document.title = `${status.device}: calls`;
  session = new Session(client, status);
  session.begin();
}

/** @param {string} [why] */
function signOut(why = '') {
  session?.end();
  session = undefined;
  keptToken.clear();
  for (const id of ['tabs', 'account', 'link', 'running', 'stage', 'history', 'record']) element(id).hidden = true;
  element('notices').replaceChildren();
  showSignIn(why);
}

/** @param {string} why */
function showSignIn(why) {
  document.body.dataset.view = 'signin';
  element('signin').hidden = false;
  say(element('signin-problem'), why);
  element('token').focus();
}

element('signin-form').addEventListener('submit', async (/** @type {Event} */ event) => {
  event.preventDefault();
  const field = element('token');
  element('signin-go').disabled = true;
  try {
    await signIn(field.value.trim());
    field.value = '';
  } catch (error) {
    showSignIn(problemWords(error));
  }
  element('signin-go').disabled = false;
});
element('sign-out').addEventListener('click', () => signOut());
element('ask-no').addEventListener('click', () => element('ask').close(''));
window.addEventListener('hashchange', () => session?.route());
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')) return;
  if (!session || element('ask').open) return;
  event.preventDefault();
  if (read(location.hash).view !== 'history') {
    history.pushState(null, '', write({ view: 'history' }));
    session.route();
  }
  element('search').focus();
});

const kept = keptToken.get();
if (kept === null) showSignIn('');
else signIn(kept).catch((error) => (error.status === 401 ? signOut(problemWords(error)) : showSignIn(problemWords(error))));
