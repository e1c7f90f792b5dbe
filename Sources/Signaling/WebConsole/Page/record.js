// One call that ended: what went wrong in it, its course on one axis with its recording, and its figures.

import { element, make, say } from '../phone/elements.js';
import { paintWave, plotLane } from './axis.js';
import { showFacts } from './call.js';
import { Player } from './player.js';
import { Recording } from './recording.js';
import { moment, outcomeWords, problemWords, recordingWords, seconds } from './text.js';
import { course, momentList, Timeline } from './timeline.js';

/** How often the address follows the sound, in milliseconds: browsers take few changes of it. */
const addressInterval = 1000;

export class RecordView {
  #client;
  #moved;
  /** @type {string | undefined} */
  #shown;
  /** @type {Listening | undefined} */
  #listening;

  /**
   * @param {import('./client.js').Client} client
   * @param {(record: string, at: number) => void} moved the user looks at another moment of the call
   */
  constructor(client, moved) {
    this.#client = client;
    this.#moved = moved;
  }

  /** @param {string} name @param {number | undefined} at seconds from the call's beginning */
  async show(name, at) {
    if (this.#shown === name) return;
    this.hide();
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
    this.#listening?.end();
    this.#listening = undefined;
  }

  /** @param {any} record @param {number | undefined} at */
  #fill(record, at) {
    say(element('record-title'), record.peer);
    say(element('record-outcome'), record.outcome);
    const facts = make('dl', { class: 'facts' });
    showFacts(facts, [...courseFacts(record), ...mediaFacts(record.media)]);
    const found = course(record);
    const timeline = new Timeline(found, at, {
      moving: (time) => this.#listening?.seek(time), moved: (time) => this.#moved(record.record, time / 1000),
    });
    this.#listening = new Listening(this.#client, record, found, timeline, (time) => this.#moved(record.record, time / 1000));
    const go = (/** @type {number} */ time) => {
      timeline.set(time);
      this.#listening?.seek(time);
      this.#moved(record.record, timeline.time / 1000);
    };
    element('record-body').replaceChildren(
      make('section', { class: 'findings', 'aria-label': 'What went wrong' }, ...findings(record)),
      make('section', {}, make('h2', {}, 'The call’s course'), timeline.element,
        make('div', { class: 'listening' }, ...this.#listening.elements, copyButton())),
      ...(found.happened.length ? [make('section', {}, make('h2', {}, 'What happened'), momentList(found.happened, go))] : []),
      make('section', {}, make('h2', {}, 'Figures'), facts));
    this.#listening.begin();
    element('record-title').focus({ preventScroll: true });
  }
}

/** The recordings of a call: the waveform of one, and its sound at the moment. */
class Listening {
  #client;
  #record;
  #course;
  #timeline;
  #moved;
  #play = make('button', { type: 'button', class: 'primary', id: 'play-recording', hidden: true }, 'Play the recording');
  #draw = make('button', { type: 'button', class: 'quiet', id: 'draw-recording', hidden: true });
  #choice = make('select', { id: 'which-recording', 'aria-label': 'Recording', hidden: true });
  #note = make('p', { class: 'soft listening-note', id: 'recording-note', role: 'status' });
  /** @type {Player | undefined} */
  #player;
  /** @type {Recording | undefined} */
  #recording;
  /** @type {HTMLElement | undefined} */
  #lane;
  /** When the recording begins, in milliseconds from the call's beginning. */
  #offset = 0;
  #asked = 0;
  #addressed = 0;

  /**
   * @param {import('./client.js').Client} client
   * @param {any} record
   * @param {import('./timeline.js').Course} course
   * @param {Timeline} timeline
   * @param {(time: number) => void} moved the sound has moved the moment; milliseconds
   */
  constructor(client, record, course, timeline, moved) {
    this.#client = client;
    this.#record = record;
    this.#course = course;
    this.#timeline = timeline;
    this.#moved = moved;
    this.#play.addEventListener('click', () => this.#toggle());
    this.#choice.addEventListener('change', () => this.#open(this.#recordings[Number(this.#choice.value)]));
  }

  /** @returns {any[]} */
  get #recordings() {
    return this.#record.recordings ?? [];
  }

  get elements() {
    return [this.#play, this.#choice, this.#draw, this.#note];
  }

  begin() {
    if (this.#recordings.length === 0) return say(this.#note, 'The record names no recording of this call.');
    this.#choice.append(...this.#recordings.map((recording, index) =>
      make('option', { value: String(index) }, `Recording ${recording.number}, from ${seconds(Math.max(0, recording.began_ms - this.#course.began))}`)));
    this.#choice.hidden = this.#recordings.length < 2;
    return this.#open(this.#recordings[0]);
  }

  /** Goes to a moment of the call. @param {number} time in milliseconds */
  seek(time) {
    this.#player?.seek(time - this.#offset);
  }

  end() {
    this.#asked += 1;
    this.#player?.end();
    this.#player = undefined;
    this.#lane?.remove();
  }

  /** @param {any} named by the record */
  async #open(named) {
    this.end();
    const asked = this.#asked;
    this.#offset = named.began_ms - this.#course.began;
    this.#play.hidden = this.#draw.hidden = true;
    say(this.#note, 'Reading the recording…');
    let recording;
    try {
      recording = await Recording.open(this.#client, this.#record.record, named.number);
    } catch (error) {
      if (asked === this.#asked) say(this.#note, recordingWords(error));
      return;
    }
    if (asked !== this.#asked) return;
    this.#recording = recording;
    this.#player = new Player(recording, {
      at: (time) => this.#heardAt(time), state: (isPlaying) => this.#showState(isPlaying), failed: (error) => say(this.#note, recordingWords(error)),
    });
    this.seek(this.#timeline.time);
    this.#play.hidden = !recording.isPlayable;
    say(this.#note, recording.obstacle ?? '');
    if (recording.obstacle) return;
    if (recording.isShort) return this.#drawWave(recording, asked);
    say(this.#draw, `Draw its waveform (${recording.megabytes} MB)`);
    this.#draw.onclick = () => this.#drawWave(recording, asked);
    this.#draw.hidden = false;
  }

  /** @param {Recording} recording @param {number} asked */
  async #drawWave(recording, asked) {
    this.#draw.hidden = true;
    try {
      const peaks = await recording.peaks((share) => {
        if (asked === this.#asked && share < 1) say(this.#note, `Reading the recording: ${Math.round(share * 100)} %`);
      });
      if (asked !== this.#asked) return;
      this.#lane = waveLane(peaks, { from: this.#offset, to: this.#offset + recording.length }, this.#course.length);
      this.#timeline.addLane(this.#lane);
      say(this.#note, '');
    } catch (error) {
      if (asked === this.#asked) say(this.#note, recordingWords(error));
    }
  }

  #toggle() {
    const time = this.#timeline.time - this.#offset;
    // A moment before the recording, or behind it, has no sound: it begins at the beginning.
    if (!this.#player?.isPlaying && this.#recording && (time < 0 || time >= this.#recording.length)) this.#player?.seek(0);
    this.#player?.toggle();
  }

  /** @param {number} time in milliseconds from the recording's beginning */
  #heardAt(time) {
    this.#timeline.set(this.#offset + time);
    const now = performance.now();
    if (now - this.#addressed < addressInterval) return;
    this.#addressed = now;
    this.#moved(this.#timeline.time);
  }

  /** @param {boolean} isPlaying */
  #showState(isPlaying) {
    say(this.#play, isPlaying ? 'Pause' : 'Play the recording');
    this.#timeline.speak(!isPlaying);
    if (!isPlaying) this.#moved(this.#timeline.time);
  }
}

/**
 * @param {import('./sound.js').Peaks} peaks
 * @param {{ from: number, to: number }} span
 * @param {number} length
 */
function waveLane(peaks, span, length) {
  const keys = [{ words: 'received', colour: '4' }, { words: 'sent', colour: '1' }].slice(0, peaks.channels.length);
  const loudest = peaks.channels.map((values) => values.reduce((most, value) => Math.max(most, value), 0));
  const level = (/** @type {number} */ value) => (value > 0 ? `${Math.round(20 * Math.log10(value))} dBFS at most`.replace('-', '−') : 'silence');
  const words = `Waveform of the recording, from ${seconds(Math.max(0, span.from))} to ${seconds(span.to)}: ${keys.map((key, index) => `${key.words} ${level(loudest[index])}`).join(', ')}`;
  const lane = plotLane({ id: 'sound', title: 'Sound', keys, words, length, paint: paintWave(peaks, span) });
  lane.dataset.channels = String(peaks.channels.length);
  return lane;
}

/** @param {any} record */
function findings(record) {
  if (record.findings.length === 0) return [make('p', {}, record.remark ?? '')];
  return record.findings.map((/** @type {any} */ finding) => make('div', { class: 'finding', 'data-code': finding.code },
    make('p', {}, make('strong', {}, finding.text), ' ', make('span', { class: 'soft' }, `(${finding.whose})`)),
    make('p', { class: 'soft' }, make('b', {}, 'Because: '), finding.because),
    make('p', { class: 'soft' }, make('b', {}, 'Try: '), finding.try)));
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
    ['Recording', (record.recordings ?? []).map((/** @type {any} */ recording) => recording.file).join(', ')],
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
