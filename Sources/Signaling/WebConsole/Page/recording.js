// A recording on the device, read in parts: its peaks, and what a browser can play of it.

import { Peaks, partAt, pieces, readOgg, readWav, wavHead } from './sound.js';

/** Bytes that are asked for at once. */
const pieceBytes = 4 << 20;
/** Bytes of a WAV file that are loaded to hear it: 170 s of two channels at 48 kHz. */
export const partBytes = 32 << 20;
/** Bytes of a WAV file that are read for its waveform without being asked: 350 s of two channels, or 700 s of one. */
export const drawnBytes = 64 << 20;
/** Bytes of a WAV file that are read for its waveform at all: an hour and a half of two channels. */
export const mostDrawnBytes = 1 << 30;
/** Bytes of an Ogg Opus file that are loaded to hear it: two hours of two channels. */
const mostOggBytes = 64 << 20;
/** Milliseconds of an Ogg Opus file whose waveform is computed, which takes 384 kB of memory for each second. */
const longestDecoded = 20 * 60_000;
/** Peaks of a channel. */
const peakCount = 1200;
/** Bytes that are looked at between two frames of the page. */
const sliceBytes = 512 << 10;

/** @typedef {{ url: string, from: number, to: number }} Part times in milliseconds from the recording’s beginning */

/** Lets the page draw a frame. */
const pause = () => new Promise((resolve) => { setTimeout(resolve, 0); });

export class Recording {
  #client;
  #path;
  #number;
  #ended = new AbortController();
  #total;
  #pcm;
  /** The whole file, if it was read. @type {Blob | null} */
  #whole = null;
  /**
   * The pieces of an Ogg file, which is read once.
   * @type {Promise<ArrayBuffer[]> | null}
   */
  #fileRead = null;

  /** Milliseconds. */
  length;
  /** One or two. */
  channels;

  /**
   * Finds out what a recording is.
   * @param {import('./client.js').Client} client
   * @param {string} record
   * @param {number} number of the recording in the record, from 1
   * @returns {Promise<Recording>}
   */
  static async open(client, record, number) {
    const path = `v1/history/${record}/recording`;
    const { bytes, total, type } = await client.bytes(path, { number }, 0, 65_536);
    const head = new Uint8Array(bytes);
    if (!type.includes('ogg')) return new Recording(client, path, number, total, readWav(head, total), null);
    const tail = total > head.length ? (await client.bytes(path, { number }, Math.max(0, total - 65_536), total)).bytes : bytes;
    return new Recording(client, path, number, total, null, readOgg(head, new Uint8Array(tail)));
  }

  /**
   * @param {import('./client.js').Client} client
   * @param {string} path
   * @param {number} number
   * @param {number} total bytes
   * @param {import('./sound.js').Pcm | null} pcm of a WAV file
   * @param {{ channels: number, length: number } | null} ogg
   */
  constructor(client, path, number, total, pcm, ogg) {
    this.#client = client;
    this.#path = path;
    this.#number = number;
    this.#total = total;
    this.#pcm = pcm;
    this.length = pcm ? (1000 * pcm.frames) / pcm.rate : ogg?.length ?? 0;
    this.channels = pcm?.channels ?? ogg?.channels ?? 1;
  }

  /** Reads nothing more. */
  end() {
    this.#ended.abort();
  }

  get megabytes() {
    return Math.max(1, Math.round(this.#total / 1e6));
  }

  /** Why no waveform can be drawn; null if one can. */
  get obstacle() {
    if (this.length <= 0) return 'This recording has no sound, or is of another kind than the device writes.';
    if (this.#pcm) return this.#total <= mostDrawnBytes ? null : `The recording has ${this.megabytes} MB, which is too much for a waveform here. It can be heard.`;
    if (this.#total > mostOggBytes) return `The recording has ${this.megabytes} MB, which is too much for this page. Play the file on the device’s machine.`;
    if (!this.#isPlausible) return 'The recording’s length does not fit its size, so there is no waveform. It can be heard.';
    return this.length <= longestDecoded ? null : `The recording has ${Math.round(this.length / 60_000)} minutes, which is too long for a waveform here. It can be heard.`;
  }

  /** Whether it can be heard here. */
  get isPlayable() {
    return this.length > 0 && (this.#pcm !== null || this.#total <= mostOggBytes);
  }

  /** Whether its waveform is drawn without being asked for. */
  get isShort() {
    if (this.#pcm) return this.#total <= drawnBytes;
    // Decoded, a minute of two channels has 23 MB.
    return this.length <= 180_000 && this.#total <= 2_000_000;
  }

  /** Whether an Ogg file, which says itself how long it is, has at most the bitrate of Opus, 512 kb/s. */
  get #isPlausible() {
    return this.#total <= 64_000 * Math.max(this.length / 1000, 1);
  }

  /**
   * Computes its peaks.
   * @param {(share: number) => void} progress from 0 to 1
   * @returns {Promise<Peaks>}
   */
  async peaks(progress) {
    return this.#pcm ? this.#wavPeaks(this.#pcm, progress) : this.#oggPeaks(progress);
  }

  /**
   * @param {import('./sound.js').Pcm} pcm
   * @param {(share: number) => void} progress
   */
  async #wavPeaks(pcm, progress) {
    const peaks = new Peaks(pcm.channels, pcm.frames, peakCount);
    const end = pcm.begin + pcm.frames * pcm.frameBytes;
    /** @type {ArrayBuffer[]} */
    const read = [];
    for (const [from, to] of pieces(pcm.begin, end, pieceBytes)) {
      const { bytes } = await this.#bytes(from, to);
      if (end - pcm.begin <= partBytes) read.push(bytes);
      for (const [first, last] of pieces(0, bytes.byteLength, sliceBytes)) {
        peaks.takePcm(new Int16Array(bytes, first, Math.floor((last - first) / 2)), (from - pcm.begin + first) / pcm.frameBytes);
        await pause();
      }
      progress((to - pcm.begin) / (end - pcm.begin));
    }
    if (read.length > 0) this.#whole = new Blob([wavHead(pcm, pcm.frames), ...read], { type: 'audio/wav' });
    return peaks;
  }

  /** @param {(share: number) => void} progress */
  async #oggPeaks(progress) {
    const file = await this.#file(progress);
    // It is given a copy, which the browser takes away.
    const sound = await new OfflineAudioContext(1, 1, 48_000).decodeAudioData(await file.arrayBuffer());
    const peaks = new Peaks(sound.numberOfChannels, sound.length, peakCount);
    this.channels = sound.numberOfChannels;
    for (let channel = 0; channel < sound.numberOfChannels; channel += 1) {
      const samples = sound.getChannelData(channel);
      for (const [from, to] of pieces(0, samples.length, sliceBytes / 2)) {
        if (this.#ended.signal.aborted) return peaks;
        peaks.take(channel, samples.subarray(from, to), from);
        await pause();
      }
    }
    return peaks;
  }

  /** The whole Ogg Opus file. @param {(share: number) => void} progress */
  async #file(progress) {
    this.#fileRead ??= this.#read(0, this.#total, this.#ended.signal, progress);
    try {
      return new Blob(await this.#fileRead, { type: 'audio/ogg' });
    } catch (error) {
      this.#fileRead = null;
      throw error;
    }
  }

  /**
   * Reads in pieces, so that each has the time that a request may take.
   * @param {number} begin
   * @param {number} end
   * @param {AbortSignal} [signal]
   * @param {(share: number) => void} [progress]
   */
  async #read(begin, end, signal, progress) {
    /** @type {ArrayBuffer[]} */
    const read = [];
    for (const [from, to] of pieces(begin, end, pieceBytes)) {
      read.push((await this.#bytes(from, to, signal)).bytes);
      progress?.((to - begin) / (end - begin));
    }
    return read;
  }

  /**
   * Loads what is heard around a moment. Its URL is for the caller to revoke.
   * @param {number} time in milliseconds from the recording’s beginning
   * @param {AbortSignal} [signal] ends the load of a part
   * @returns {Promise<Part>}
   */
  async part(time, signal) {
    if (this.#pcm === null) return { url: URL.createObjectURL(await this.#file(() => {})), from: 0, to: this.length };
    if (this.#whole) return { url: URL.createObjectURL(this.#whole), from: 0, to: this.length };
    const { firstFrame, frames, from, to } = partAt(this.#pcm, time, partBytes);
    const begin = this.#pcm.begin + firstFrame * this.#pcm.frameBytes;
    const read = await this.#read(begin, begin + frames * this.#pcm.frameBytes, signal);
    const file = new Blob([wavHead(this.#pcm, frames), ...read], { type: 'audio/wav' });
    return { url: URL.createObjectURL(file), from, to };
  }

  /** @param {number} from @param {number} to @param {AbortSignal} [signal] */
  async #bytes(from, to, signal) {
    const ends = signal ? AbortSignal.any([signal, this.#ended.signal]) : this.#ended.signal;
    return this.#client.bytes(this.#path, { number: this.#number }, from, to, ends);
  }
}
