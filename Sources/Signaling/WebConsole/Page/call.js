// One call that runs: its plots, its figures, what happened to it, and what can be done with it.

import { clock, element, make, say } from '../phone/elements.js';
import { Plot } from '../phone/plot.js';
import { span } from './figures.js';
import { figure, pair, stateWords } from './text.js';

/**
 * The plots: the names of their lines in the points of a call, and how the newest value is written.
 * @type {{ id: string, title: string, keys?: [string, string], lines: (keyof import('./figures.js').Point)[],
 *   options: import('../phone/plot.js').PlotOptions, words: (point: import('./figures.js').Point) => string }[]}
 */
const plots = [
  {
    id: 'delay', title: 'Delay', keys: ['buffer', 'round trip'], lines: ['delay', 'roundTrip'],
    options: { lines: ['--plot-1', '--plot-4'], bottom: 0, top: 50, grows: true },
    words: (point) => pair(point.delay, point.roundTrip, 'ms'),
  },
  {
    id: 'loss', title: 'Loss', lines: ['loss'], options: { lines: ['--plot-3'], bottom: 0, top: 5, grows: true, isBar: true },
    words: (point) => figure(point.loss, '%', 1),
  },
  {
    id: 'jitter', title: 'Jitter', lines: ['jitter'], options: { lines: ['--plot-2'], bottom: 0, top: 10, grows: true },
    words: (point) => figure(point.jitter, 'ms', 1),
  },
  {
    id: 'level', title: 'Level', keys: ['sent', 'received'], lines: ['sent', 'received'],
    options: { lines: ['--plot-1', '--plot-4'], bottom: -90, top: 0 },
    words: (point) => pair(point.sent, point.received, 'dB'),
  },
  {
    id: 'target', title: 'Jitter buffer aims at', lines: ['target'], options: { lines: ['--plot-1'], bottom: 0, top: 50, grows: true },
    words: (point) => figure(point.target, 'ms'),
  },
  {
    id: 'decided', title: 'Decisions', keys: ['conceal', 'stretch'], lines: ['concealed', 'slower'],
    options: { lines: ['--plot-3', '--plot-2'], bottom: 0, top: 5, grows: true, isBar: true },
    words: (point) => `${figure(point.concealed, '%', 1)}, ${figure(point.slower, 'ms')}`,
  },
];

/**
 * @typedef {{ label: string, run: () => void, kind?: 'primary' | 'end', id: string, pressed?: boolean }} Action
 */

export class CallView {
  #plots = (element('plots').replaceChildren(), plots.map((plot) => ({ ...plot, ...makePlot(plot) })));
  #actions = element('actions');
  #shown = '';
  #happened = 0;

  /** Forgets what is shown, so that the next call is shown from its beginning. */
  clear() {
    this.#shown = '';
    this.#happened = 0;
    element('happened-list').replaceChildren();
  }

  /**
   * @param {import('./calls.js').Running} entry
   * @param {Action[]} actions
   */
  show(entry, actions) {
    const { call, figures, isOver } = entry;
    say(element('party'), call.peer);
    const time = call.duration_s === undefined ? '' : ` · ${clock(call.duration_s * 1000)}`;
    say(element('state'), isOver ? 'This call has ended' : `${call.incoming ? 'Incoming' : 'Outgoing'} · ${stateWords(call)}${time}`);
    element('plots').hidden = figures.points.length === 0;
    const seconds = span(figures.points.length);
    for (const { plot, value, lines, words } of this.#plots) {
      plot.fill(lines.map((name) => figures.line(name)), seconds);
      say(value, words(figures.newest));
    }
    this.#showFacts(call);
    this.#showActions(actions);
    this.#showHappened(entry);
  }

  /** @param {any} call */
  #showFacts(call) {
    const media = call.media;
    const facts = [['Call', String(call.call)], ['Account', call.account], ['Invite', call.invite]];
    if (media) {
      facts.push(['Packets received', `${media.received}, ${media.lost} lost, ${media.late} late, ${media.discarded} discarded`],
        ['Packets sent', `${media.sent}, ${media.remote_lost} lost by the other side’s reports`],
        ['Concealed', `${media.concealed_ms} ms of ${media.played_ms} ms`],
        ['Shortened, stretched', `${media.accelerated_ms} ms, ${media.decelerated_ms} ms`],
        ['Frames skipped here', String(media.frames_skipped)]);
    }
    showFacts(element('facts'), facts);
  }

  /** @param {Action[]} actions */
  #showActions(actions) {
    const shown = actions.map(({ id, label, pressed }) => `${id} ${label} ${pressed}`).join('\n');
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = this.#actions.contains(document.activeElement) ? document.activeElement?.getAttribute('id') : null;
    this.#actions.replaceChildren(...actions.map(({ id, label, run, kind, pressed }) => make('button', {
      type: 'button', id, class: kind ?? 'plain-action', onclick: run,
      ...(pressed === undefined ? {} : { 'aria-pressed': String(pressed) }),
    }, label)));
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @param {import('./calls.js').Running} entry */
  #showHappened({ happened, dropped }) {
    element('happened').hidden = happened.length === 0;
    const list = element('happened-list');
    const count = dropped + happened.length;
    if (count < this.#happened || list.children.length === 0) this.#happened = 0;
    if (this.#happened === 0) list.replaceChildren();
    for (const { at, words } of happened.slice(Math.max(0, this.#happened - dropped))) {
      list.append(make('li', {}, make('time', {}, new Date(at).toLocaleTimeString()), ` ${words}`));
    }
    this.#happened = count;
  }
}

/** @param {(typeof plots)[number]} settings */
function makePlot({ id, title, keys, options }) {
  const value = make('b', {}, '–');
  const canvas = make('canvas', { role: 'img', 'aria-label': `${title}, last five minutes` });
  const names = (keys ?? []).map((name, index) => make('small', { class: `key key-${index}`, 'data-of': id }, name));
  element('plots').append(make('figure', { id: `plot-${id}` }, make('figcaption', {}, make('span', {}, title, ...names.flatMap((name) => [' ', name])), value), canvas));
  return { value, plot: new Plot(canvas, options) };
}

/**
 * @param {any} list
 * @param {(string | undefined)[][]} facts
 */
export function showFacts(list, facts) {
  const known = facts.filter(([, value]) => value !== undefined && value !== '');
  const names = known.map(([name]) => name).join('\n');
  if (list.getAttribute('data-names') !== names) {
    list.setAttribute('data-names', names);
    list.replaceChildren(...known.map(([name]) => make('div', {}, make('dt', {}, String(name)), make('dd', {}))));
  }
  known.forEach(([, value], index) => say(list.children[index].children[1], String(value)));
}
