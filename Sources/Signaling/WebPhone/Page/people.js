// Who can be called, who is there, and whom there was a call with.

import { element, make, paintFace, say } from './elements.js';

/**
 * @typedef {{ user: string, public_ids: string[], reachable: boolean }} Person
 * @typedef {{ key: number, name: string, label: string, canCall: boolean, text: string, at: Date, isMissed: boolean }} Recent
 */

const recentCount = 8;

/** The list of people; fires `call` with `detail: name`. */
export class People extends EventTarget {
  /** @type {Map<string, Person> | null} */
  #people = new Map();
  /** @type {Recent[]} */
  #recent = [];
  #isBusy = false;
  #isOnline = true;
  #lastKey = 0;

  constructor() {
    super();
    const form = element('dial');
    const input = element('dial-to');
    form.addEventListener('submit', (/** @type {Event} */ event) => {
      event.preventDefault();
      const to = input.value.trim().normalize('NFC');
      if (to && !element('dial-go').disabled) this.#call(to);
    });
  }

  /** @param {Person[] | null} people `null` if the exchange does not tell */
  show(people) {
    this.#people = people && new Map(people.map((person) => [person.user, person]));
    this.#draw();
  }

  /** @param {Person} person */
  change(person) {
    this.#people?.set(person.user, person);
    this.#draw();
  }

  /** @param {{ isBusy: boolean, isOnline: boolean }} state in a call; connected to the exchange */
  allow({ isBusy, isOnline }) {
    if (isBusy === this.#isBusy && isOnline === this.#isOnline) return;
    this.#isBusy = isBusy;
    this.#isOnline = isOnline;
    this.#draw();
  }

  /** @param {Omit<Recent, 'at' | 'key'>} call `label` is shown for its `name`, which is called again if that may be */
  remember(call) {
    this.#recent.unshift({ ...call, key: ++this.#lastKey, at: new Date() });
    this.#recent.length = Math.min(this.#recent.length, recentCount);
    this.#drawRecent();
  }

  forget() {
    this.#recent = [];
    element('dial-to').value = '';
    this.show([]);
    this.#drawRecent();
  }

  /** Puts the keyboard's focus where a call with somebody was begun, or could be. @param {string} name */
  focus(name) {
    const isWide = matchMedia('(min-width: 720px)').matches;  // Elsewhere the field would open a keyboard on the screen.
    (this.#button('data-user', name) ?? element(isWide ? 'dial-to' : 'people-title')).focus();
  }

  /** @param {string} attribute of the row @param {string} value @returns {HTMLElement | undefined} */
  #button(attribute, value) {
    return element('people').querySelector(`li[${attribute}="${CSS.escape(value)}"] button`) ?? undefined;
  }

  /** @param {string} name @param {boolean} [isThere] */
  #call(name, isThere = true) {
    if (isThere && this.#isOnline && !this.#isBusy) this.dispatchEvent(new CustomEvent('call', { detail: name }));
  }

  /**
   * Attributes of a button that does nothing now. Unlike one that is disabled it keeps the keyboard's focus.
   * @param {boolean} isThere
   * @returns {Record<string, string>}
   */
  #unless(isThere) {
    return isThere && this.#isOnline && !this.#isBusy ? {} : { 'aria-disabled': 'true' };
  }

  #draw() {
    element('dial-go').disabled = this.#isBusy || !this.#isOnline;
    const people = [...this.#people?.values() ?? []].sort((one, other) =>
      Number(other.reachable) - Number(one.reachable) || one.user.localeCompare(other.user));
    const list = element('people-list');
    const focused = document.activeElement?.closest?.('li[data-user]')?.getAttribute('data-user');
    list.replaceChildren(...people.map((person) => this.#row(person)));
    if (focused) this.#button('data-user', focused)?.focus();
    const none = element('people-none');
    none.hidden = people.length > 0;
    say(none, this.#people ? 'Nobody else has an account here.' : 'Presence is switched off on this exchange. Call by name.');
    this.#drawRecent();
  }

  /** @param {Person} person */
  #row(person) {
    const face = make('span', { class: 'face small', 'aria-hidden': 'true' });
    paintFace(face, person.user);
    const where = person.public_ids.find((id) => id !== person.user) ?? '';
    // Without a connection nobody knows who is there.
    const state = !this.#isOnline ? 'Unknown' : person.reachable ? 'Online' : 'Offline';
    const button = make('button', {
      type: 'button', class: 'person', ...this.#unless(person.reachable),
      'aria-label': `Call ${person.user}, ${state.toLowerCase()}`, onclick: () => this.#call(person.user, person.reachable),
    },
    face,
    make('span', { class: 'names' }, make('strong', {}, person.user), make('small', {}, where)),
    make('span', { class: 'presence' }, make('span', { class: 'dot', 'aria-hidden': 'true' }), state));
    return make('li', { 'data-user': person.user, 'data-there': this.#isOnline ? String(person.reachable) : 'unknown' }, button);
  }

  #drawRecent() {
    element('recent').hidden = this.#recent.length === 0;
    const focused = document.activeElement?.closest?.('li[data-recent]')?.getAttribute('data-recent');
    const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
    element('recent-list').replaceChildren(...this.#recent.map((call) => make('li', {
      'data-recent': String(call.key), 'data-missed': String(call.isMissed),
    },
      make('button', {
        type: 'button', class: 'person', ...this.#unless(call.canCall),
        'aria-label': `${call.canCall ? `Call ${call.label} again` : call.label}: ${call.text}, ${time.format(call.at)}`,
        onclick: () => this.#call(call.name, call.canCall),
      },
      make('span', { class: 'names' }, make('strong', {}, call.label), make('small', {}, call.text)),
      make('time', { datetime: call.at.toISOString() }, time.format(call.at))))));
    if (focused) this.#button('data-recent', focused)?.focus();
  }
}
