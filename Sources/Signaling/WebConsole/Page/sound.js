// The sound of a recording as bytes: what a WAV or Ogg Opus file has, its parts, and its peaks.

/**
 * 16-bit PCM in a WAV file.
 * @typedef {{ channels: number, rate: number, begin: number, frames: number, frameBytes: number }} Pcm
 */

/** @param {Uint8Array} bytes @param {number} at @param {string} text */
const has = (bytes, at, text) => [...text].every((letter, index) => bytes[at + index] === letter.charCodeAt(0));

/** @param {Uint8Array} bytes */
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * Reads the head of a WAV file.
 * @param {Uint8Array} bytes from its beginning on
 * @param {number} total bytes of the file
 * @returns {Pcm | null} null if it is none, or has something else than 16-bit PCM in one or two channels
 */
export function readWav(bytes, total) {
  if (bytes.length < 12 || !has(bytes, 0, 'RIFF') || !has(bytes, 8, 'WAVE')) return null;
  const view = viewOf(bytes);
  let format = null;
  for (let at = 12; at + 8 <= bytes.length;) {
    const size = view.getUint32(at + 4, true);
    if (has(bytes, at, 'fmt ') && at + 24 <= bytes.length) {
      const [tag, channels, rate, bits] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true), view.getUint32(at + 12, true), view.getUint16(at + 22, true)];
      if (tag !== 1 || bits !== 16 || channels < 1 || channels > 2 || rate < 1) return null;
      format = { channels, rate, frameBytes: 2 * channels };
    }
    if (has(bytes, at, 'data') && format) {
      // The head of a file that was cut off may say anything.
      const rest = Math.max(0, total - at - 8);
      const length = size === 0 ? rest : Math.min(size, rest);
      return { ...format, begin: at + 8, frames: Math.floor(length / format.frameBytes) };
    }
    at += 8 + size + (size % 2);
  }
  return null;
}

/**
 * The head of a WAV file with a part of another one’s frames.
 * @param {Pcm} pcm
 * @param {number} frames
 * @returns {Uint8Array}
 */
export function wavHead({ channels, rate, frameBytes }, frames) {
  const bytes = new Uint8Array(44);
  const view = viewOf(bytes);
  const put = (/** @type {number} */ at, /** @type {string} */ text) => [...text].forEach((letter, index) => { bytes[at + index] = letter.charCodeAt(0); });
  put(0, 'RIFF');
  view.setUint32(4, 36 + frames * frameBytes, true);
  put(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * frameBytes, true);
  view.setUint16(32, frameBytes, true);
  view.setUint16(34, 16, true);
  put(36, 'data');
  view.setUint32(40, frames * frameBytes, true);
  return bytes;
}

/**
 * Reads what an Ogg Opus file (RFC 7845) says of itself.
 * @param {Uint8Array} head bytes from its beginning on
 * @param {Uint8Array} tail its last bytes, 64 KiB or all
 * @returns {{ channels: number, length: number } | null} length in milliseconds; null if it is none
 */
export function readOgg(head, tail) {
  if (head.length < 47 || !has(head, 0, 'OggS') || !has(head, 28, 'OpusHead')) return null;
  const skipped = viewOf(head).getUint16(38, true);
  const view = viewOf(tail);
  for (let at = tail.length - 27; at >= 0; at -= 1) {
    if (!has(tail, at, 'OggS')) continue;
    const position = Number(view.getBigInt64(at + 6, true));
    // A page on which no packet ends has none.
    if (position >= 0) return { channels: head[37], length: Math.max(0, position - skipped) / 48 };
  }
  return null;
}

/**
 * Parts of a file that are read one after the other.
 * @param {number} from
 * @param {number} to
 * @param {number} size bytes of a part at most
 * @returns {[number, number][]}
 */
export function pieces(from, to, size) {
  return Array.from({ length: Math.max(0, Math.ceil((to - from) / size)) }, (_, index) => [from + index * size, Math.min(to, from + (index + 1) * size)]);
}

/**
 * The part of a WAV file that is loaded to hear a moment of it.
 * @param {Pcm} pcm
 * @param {number} time in milliseconds
 * @param {number} most bytes of a part
 * @returns {{ firstFrame: number, frames: number, from: number, to: number }} times in milliseconds
 */
export function partAt(pcm, time, most) {
  const size = Math.max(1, Math.floor(most / pcm.frameBytes));
  const frame = Math.min(Math.max(0, pcm.frames - 1), Math.max(0, Math.floor((time / 1000) * pcm.rate)));
  const firstFrame = Math.floor(frame / size) * size;
  const frames = Math.min(size, pcm.frames - firstFrame);
  const milliseconds = (/** @type {number} */ count) => (1000 * count) / pcm.rate;
  return { firstFrame, frames, from: milliseconds(firstFrame), to: milliseconds(firstFrame + frames) };
}

/** The loudest sample of each part of a recording, in each channel, from 0 to 1. */
export class Peaks {
  #frames;

  /** @type {Float32Array[]} */
  channels;

  /**
   * @param {number} channels
   * @param {number} frames of the recording
   * @param {number} count of parts
   */
  constructor(channels, frames, count) {
    this.#frames = Math.max(1, frames);
    this.channels = Array.from({ length: channels }, () => new Float32Array(Math.max(1, Math.min(count, this.#frames))));
  }

  /**
   * Takes 16-bit samples, channel after channel of each frame.
   * @param {Int16Array} samples
   * @param {number} firstFrame of them in the recording
   */
  takePcm(samples, firstFrame) {
    const count = this.channels.length;
    this.channels.forEach((peaks, channel) => this.#take(peaks, samples, firstFrame, channel, count, 1 / 32_768));
  }

  /**
   * Takes samples of one channel.
   * @param {number} channel
   * @param {Float32Array} samples from −1 to 1
   * @param {number} firstFrame of them in the recording
   */
  take(channel, samples, firstFrame) {
    this.#take(this.channels[channel], samples, firstFrame, 0, 1, 1);
  }

  /**
   * @param {Float32Array} peaks
   * @param {Int16Array | Float32Array} samples
   * @param {number} firstFrame
   * @param {number} offset
   * @param {number} stride
   * @param {number} scale
   */
  #take(peaks, samples, firstFrame, offset, stride, scale) {
    const frames = Math.min(Math.floor(samples.length / stride), this.#frames - firstFrame);
    for (let frame = 0; frame < frames;) {
      const index = Math.floor(((firstFrame + frame) * peaks.length) / this.#frames);
      const end = Math.min(frames, Math.ceil(((index + 1) * this.#frames) / peaks.length) - firstFrame);
      let highest = 0;
      for (; frame < end; frame += 1) {
        const value = Math.abs(samples[frame * stride + offset]);
        if (value > highest) highest = value;
      }
      peaks[index] = Math.min(1, Math.max(peaks[index], highest * scale));
    }
  }
}
