// One call that ended: what went wrong in it, its course on one axis, and its figures.

import { element, make, say } from '../phone/elements.js';
import { Plot } from '../phone/plot.js';
import { showFacts } from './call.js';
import { moment, outcomeWords, problemWords, seconds } from './text.js';
import { course, makeTimeline } from './timeline.js';

export class RecordView {
  #client;
  #seen;
  #moved;
  /** @type {string | undefined} */
  #shown;

  /**
   * @param {import('./client.js').Client} client
   * @param {(record: string) => import('./figures.js').Figures | undefined} seen the figures of a call, if the page has them
   * @param {(record: string, at: number) => void} moved the user looks at another moment of the call
   */
  constructor(client, seen, moved) {
    this.#client = client;
    this.#seen = seen;
    this.#moved = moved;
  }

  /** @param {string} name @param {number | undefined} at seconds from the call's beginning */
  async show(name, at) {
    if (this.#shown === name) return;
    this.#shown = name;
    say(element('record-title'), '');
    say(element('record-outcome'), 'Reading the record…');
    element('record-body').replaceChildren();
    let record;
    try {
      record = await this.#client.get(`v1/history/${name}`);
    } catch (error) {
      if (this.#shown === name) say(element('record-outcome'), problemWords(error));
      return;
    }
    if (this.#shown === name) this.#fill(record, at);
  }

  hide() {
    this.#shown = undefined;
  }

  /** @param {any} record @param {number | undefined} at */
  #fill(record, at) {
    say(element('record-title'), record.peer);
    say(element('record-outcome'), record.outcome);
    const facts = make('dl', { class: 'facts' });
    showFacts(facts, [...courseFacts(record), ...mediaFacts(record.media)]);
    const seen = this.#seen(record.record);
    element('record-body').replaceChildren(
      make('section', { class: 'findings', 'aria-label': 'What went wrong' }, ...findings(record)),
      make('section', {}, make('h2', {}, 'The call’s course'), makeTimeline(record, at, (time) => this.#moved(record.record, time)),
        ...(seen ? seenPlots(seen, course(record).length) : []), copyButton()),
      make('section', {}, make('h2', {}, 'Figures'), facts));
    element('record-title').focus({ preventScroll: true });
  }
}

/** @param {any} record */
function findings(record) {
  if (record.findings.length === 0) return [make('p', {}, record.remark ?? '')];
  return record.findings.map((/** @type {any} */ finding) => make('div', { class: 'finding', 'data-code': finding.code },
    make('p', {}, make('strong', {}, finding.text), ' ', make('span', { class: 'soft' }, `(${finding.whose})`)),
    make('p', { class: 'soft' }, make('b', {}, 'Because: '), finding.because),
    make('p', { class: 'soft' }, make('b', {}, 'Try: '), finding.try)));
}

/**
 * Plots on the axis of the call's course. They end with the call, and begin when the page first saw it.
 * @param {import('./figures.js').Figures} figures
 * @param {number} length in milliseconds
 */
function seenPlots(figures, length) {
  const capacity = Math.max(2, Math.round(length / 1000));
  return [
    { title: 'Delay', names: ['delay'], options: { lines: ['--plot-1'], bottom: 0, top: 50, grows: true } },
    { title: 'Loss', names: ['loss'], options: { lines: ['--plot-3'], bottom: 0, top: 5, grows: true, isBar: true } },
    { title: 'Concealed', names: ['concealed'], options: { lines: ['--plot-3'], bottom: 0, top: 5, grows: true, isBar: true } },
    { title: 'Level', names: ['sent', 'received'], options: { lines: ['--plot-1', '--plot-4'], bottom: -90, top: 0 } },
  ].map(({ title, names, options }) => {
    const canvas = make('canvas', { role: 'img', 'aria-label': `${title}, as long as this page saw the call` });
    new Plot(canvas, options).fill(names.map((name) => figures.line(/** @type {any} */ (name))), capacity);
    return make('div', { class: 'lane-plot' }, make('b', {}, title), canvas);
  });
}

function copyButton() {
  const button = make('button', { type: 'button', class: 'quiet', id: 'copy-link' }, 'Copy a link to this moment');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say(button, 'The link is copied');
    } catch {
      say(button, 'Copy the page’s address: it has this moment');
    }
  });
  return button;
}

/** @param {any} record */
function courseFacts(record) {
  const time = (/** @type {number | undefined} */ value) => (value === undefined ? undefined : seconds(value));
  return [
    ['Began', moment(record.began_ms)], ['Ended', moment(record.ended_ms)], ['Outcome', outcomeWords(record.reason)],
    ['Answered after', time(record.answered_after_ms)], ['Established after', time(record.established_after_ms)],
    ['Media after', time(record.media_after_ms)], ['Length', time(record.duration_ms)], ['Account', record.account],
    ['Decided by', record.decided_by], ['Hung up because', record.hung_up_because], ['Transferred by', record.transferred_by],
    ['Transferred to', record.transferred_to], ['Cause', record.cause], ['Error', record.error],
    ['Invite', record.invite], ['Record', record.record],
  ];
}

/** @param {any} media */
function mediaFacts(media) {
  if (!media) return [];
  const time = (/** @type {number | undefined} */ value) => (value === undefined ? undefined : `${value} ms`);
  const level = (/** @type {number | undefined} */ value) => (value === undefined ? undefined : `${value} dBFS`);
  return [
    ['Packets received', `${media.received}, ${media.lost} lost, ${media.late} late, ${media.reordered} out of order`],
    ['Packets sent', `${media.sent}, ${media.remote_lost} lost by the other side’s reports`],
    ['Played', media.played_ms === undefined ? undefined : `${seconds(media.played_ms)}, ${seconds(media.concealed_ms ?? 0)} concealed, ${seconds(media.silent_ms ?? 0)} silent`],
    ['In the jitter buffer', media.buffered_ms === undefined ? undefined : `${media.buffered_ms} ms, 95 % below ${media.buffered_p95_ms} ms`],
    ['Round trip', time(media.round_trip_ms)], ['Loudest sent', level(media.sent_peak_dbfs)],
    ['Loudest received', level(media.received_peak_dbfs)], ['Silence at the end', time(media.quiet_ms)],
    ['Frames skipped here', `${media.frames_skipped} of ${media.frames}`],
  ];
}
