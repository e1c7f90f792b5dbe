// The calls that ended: search, and a list of records.

import { clock, element, make, say } from '../phone/elements.js';
import { withQuery } from './client.js';
import { moment, outcomes, outcomeWords, problemWords } from './text.js';

const filterNames = /** @type {const} */ (['search', 'outcome', 'from', 'to']);
const pageSize = 40;

export class HistoryView {
  #client;
  #changed;
  /** @type {string | undefined} */
  #next;
  #asked = 0;
  #timer = 0;

  /**
   * @param {import('./client.js').Client} client
   * @param {(filters: Record<string, string>) => void} changed the user searches for something else
   */
  constructor(client, changed) {
    this.#client = client;
    this.#changed = changed;
    const outcome = element('outcome');
    if (outcome.children.length === 0) {
      outcome.append(make('option', { value: '' }, 'All'), make('option', { value: 'problems' }, 'With problems'),
        ...Object.entries(outcomes).map(([value, words]) => make('option', { value }, words)));
    }
    element('filters').oninput = () => this.#later();
    element('filters').onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#now();
    };
    element('more').onclick = () => this.#load(true);
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#now(), 300);
  }

  #now() {
    clearTimeout(this.#timer);
    this.#changed(Object.fromEntries(filterNames.map((name) => [name, element(name).value.trim()])));
  }

  /** @param {Record<string, string | undefined>} filters */
  async show(filters) {
    for (const name of filterNames) {
      const wanted = filters[name] ?? '';
      if (element(name).value.trim() !== wanted) element(name).value = wanted;
    }
    await this.#load(false);
  }

  /** @param {boolean} isMore */
  async #load(isMore) {
    const asked = ++this.#asked;
    say(element('history-note'), isMore ? '' : 'Searching…');
    let found;
    try {
      found = await this.#client.get('v1/history', { ...this.#parameters(), before: isMore ? this.#next : undefined });
    } catch (error) {
      if (asked === this.#asked) this.#fail(error);
      return;
    }
    if (asked !== this.#asked) return;
    this.#next = found.next;
    element('more').hidden = found.next === undefined;
    const rows = found.history.map(makeRow);
    const list = element('records');
    if (isMore) list.append(...rows);
    else list.replaceChildren(...rows);
    say(element('history-note'), list.children.length ? '' : 'No call that ended fits.');
    if (isMore) rows[0]?.querySelector('a').focus();
  }

  #parameters() {
    const outcome = element('outcome').value;
    return {
      search: element('search').value.trim(), limit: pageSize,
      outcome: outcome === 'problems' ? undefined : outcome, findings: outcome === 'problems' ? 'true' : undefined,
      from_ms: dayBegin(element('from').value, 0), to_ms: dayBegin(element('to').value, 1),
    };
  }

  /** @param {any} error */
  #fail(error) {
    element('records').replaceChildren();
    element('more').hidden = true;
    say(element('history-note'), problemWords(error));
  }
}

/**
 * When a day begins on this machine's clock, in milliseconds since 1970.
 * @param {string} date such as 2026-11-29; empty for none
 * @param {number} later by how many days
 */
export function dayBegin(date, later) {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date);
  return parts ? new Date(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]) + later).getTime() : undefined;
}

/** @param {any} record */
function makeRow(record) {
  const count = record.findings.length;
  const found = count === 0 ? '' : `${record.findings[0].text}${count > 1 ? ` And ${count - 1} more.` : ''}`;
  return make('li', { 'data-bad': String(count > 0) }, make('a', { href: withQuery(`#/history/${record.record}`, {}), class: 'row' },
    make('span', { class: 'names' }, make('strong', {}, record.peer),
      make('small', {}, `${record.incoming ? 'Incoming' : 'Outgoing'} · ${outcomeWords(record.reason)}${record.account ? ` · ${record.account}` : ''}`),
      ...(found ? [make('small', { class: 'found' }, found)] : [])),
    make('span', { class: 'cell-time' }, record.established_after_ms === undefined ? '' : clock(record.duration_ms)),
    make('time', {}, moment(record.began_ms ?? record.ended_ms))));
}
