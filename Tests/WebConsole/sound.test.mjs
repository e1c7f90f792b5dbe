// The sound of a recording: heads of files, parts, peaks, and what is read of the device for them.

import assert from 'node:assert/strict';
import test from 'node:test';
import { page } from './page.mjs';

const { Peaks, partAt, pieces, readOgg, readWav, wavHead } = await page('sound.js');
const { Recording, mostDrawnBytes, partBytes } = await page('recording.js');
const { Client, totalBytes } = await page('client.js');
const { recordingWords } = await page('text.js');

/** A WAV file with a sample for each number, one channel after the other. */
function wav(samples, { channels = 1, rate = 8000 } = {}) {
  const pcm = { channels, rate, frameBytes: 2 * channels, begin: 44, frames: samples.length / channels };
  const bytes = new Uint8Array(44 + 2 * samples.length);
  bytes.set(wavHead(pcm, pcm.frames));
  new Int16Array(bytes.buffer, 44).set(samples);
  return bytes;
}

test('The head of a WAV file is what was written, with a foreign chunk before its samples, and cut at any length', () => {
  const file = wav([1, 2, 3, 4, 5, 6], { channels: 2 });
  const pcm = { channels: 2, rate: 8000, begin: 44, frames: 3, frameBytes: 4 };
  assert.deepEqual(readWav(file, file.length), pcm);
  for (let length = 0; length < 44; length += 1) assert.equal(readWav(file.slice(0, length), file.length), null);
  const odd = new Uint8Array(file.length + 12);
  odd.set(file.slice(0, 12));
  odd.set([76, 73, 83, 84, 3, 0, 0, 0, 1, 2, 3, 0], 12);
  odd.set(file.slice(12), 24);
  assert.deepEqual(readWav(odd, odd.length), { ...pcm, begin: 56 });
});

test('A WAV file that was cut off, or whose writer did not know its length, ends with the file', () => {
  const file = wav([1, 2, 3, 4]);
  assert.equal(readWav(file, file.length - 3).frames, 2);
  const view = new DataView(file.buffer);
  for (const size of [0, 0xffffffff]) {
    view.setUint32(40, size, true);
    assert.equal(readWav(file, file.length).frames, 4);
  }
});

test('Other kinds of WAV are not drawn, and rubbish is none', () => {
  const file = wav([1, 2]);
  for (const [at, value] of [[20, 3], [22, 3], [22, 0], [34, 8], [0, 1]]) {
    const other = file.slice();
    other[at] = value;
    assert.equal(readWav(other, other.length), null, `${at}`);
  }
  let seed = 7;
  const next = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed >> 16 & 255; };
  for (let count = 0; count < 200; count += 1) {
    const bytes = Uint8Array.from({ length: count }, next);
    bytes.set(file.slice(0, Math.min(20, count)));
    readWav(bytes, count);
    readOgg(bytes, bytes);
  }
});

/** A page of Ogg without its checksum, which the browser looks at. */
function oggPage(position, body) {
  const bytes = new Uint8Array(28 + body.length);
  bytes.set([79, 103, 103, 83]);
  new DataView(bytes.buffer).setBigInt64(6, BigInt(position), true);
  bytes[26] = 1;
  bytes[27] = body.length;
  bytes.set(body, 28);
  return bytes;
}

test('An Ogg Opus file is as long as its last page says, less what is skipped', () => {
  const head = [...'OpusHead'].map((letter) => letter.charCodeAt(0));
  const first = oggPage(0, Uint8Array.from([...head, 1, 2, 56, 1, 0, 0, 0, 0, 0, 0, 0]));
  const tail = new Uint8Array([...oggPage(960, [1]), ...oggPage(48_312, [2]), ...oggPage(-1, [3])]);
  assert.deepEqual(readOgg(first, tail), { channels: 2, length: 1000 });
  assert.equal(readOgg(first, new Uint8Array(99)), null);
  assert.equal(readOgg(wav([1]), tail), null);
});

test('Parts of a file join without a gap, and the last is as long as the rest', () => {
  assert.deepEqual(pieces(10, 35, 10), [[10, 20], [20, 30], [30, 35]]);
  assert.deepEqual(pieces(10, 10, 10), []);
  const pcm = { channels: 1, rate: 1000, frameBytes: 2, begin: 44, frames: 2500 };
  const parts = [0, 999, 1000, 2499, 9999, -5].map((time) => partAt(pcm, time, 2001));
  assert.deepEqual(parts.map(({ from, to }) => [from, to]), [[0, 1000], [0, 1000], [1000, 2000], [2000, 2500], [2000, 2500], [0, 1000]]);
});

test('Peaks are the same in whatever pieces the samples come, in each channel', () => {
  const samples = Int16Array.from({ length: 2 * 977 }, (_, index) => (index % 2 ? -1 : 1) * ((index * 7919) % 32_768));
  const whole = new Peaks(2, 977, 50);
  whole.takePcm(samples, 0);
  for (const size of [1, 13, 100, 976]) {
    const peaks = new Peaks(2, 977, 50);
    for (const [from, to] of pieces(0, 977, size)) peaks.takePcm(samples.subarray(2 * from, 2 * to), from);
    assert.deepEqual(peaks.channels, whole.channels);
  }
  assert.ok(whole.channels[0].every((peak) => peak > 0 && peak <= 1));
  assert.notDeepEqual(whole.channels[0], whole.channels[1]);
});

test('A recording of few samples has a peak for each, one without any has one, and what is too much is passed over', () => {
  const peaks = new Peaks(1, 3, 1200);
  peaks.takePcm(Int16Array.from([-32_768, 0, 16_384, 9, 9]), 0);
  assert.deepEqual([...peaks.channels[0]], [1, 0, 0.5]);
  assert.equal(new Peaks(1, 0, 1200).channels[0].length, 1);
  const decoded = new Peaks(1, 4, 2);
  decoded.take(0, Float32Array.from([0.25, -0.5]), 0);
  decoded.take(0, Float32Array.from([2, 0]), 2);
  assert.deepEqual([...decoded.channels[0]], [0.5, 1]);
});

/** A device with a file, which counts the bytes that it gives at once. */
function device(file, type = 'audio/wav') {
  const asked = [];
  return {
    asked,
    async bytes(path, parameters, from, to) {
      asked.push([path, parameters.number, from, to]);
      return { bytes: file.slice(from, to).buffer, total: file.length, type };
    },
  };
}

test('A short WAV is read once, in pieces, for its waveform and to be heard', async () => {
  const client = device(wav(Int16Array.from({ length: 3_000_000 }, (_, index) => index % 1000), { channels: 2, rate: 48_000 }));
  const recording = await Recording.open(client, 'r-1', 2);
  assert.equal(recording.length, 31_250);
  assert.deepEqual([recording.channels, recording.obstacle, recording.isPlayable, recording.isShort], [2, null, true, true]);
  const shares = [];
  const peaks = await recording.peaks((share) => shares.push(share));
  assert.equal(peaks.channels.length, 2);
  assert.equal(shares.at(-1), 1);
  assert.ok(client.asked.every(([path, number, from, to]) => path === 'v1/history/r-1/recording' && number === 2 && to - from <= 4 << 20));
  const count = client.asked.length;
  const part = await recording.part(20_000);
  assert.deepEqual([part.from, part.to, client.asked.length], [0, 31_250, count]);
  URL.revokeObjectURL(part.url);
});

test('Of a long WAV only the part around the moment is read to hear it, and a waveform is drawn up to 1 GiB', async () => {
  const head = wav([1, 2]);
  const open = async (bytes) => {
    const pcm = { channels: 2, rate: 48_000, frameBytes: 4 };
    const client = device(head);
    client.bytes = async (path, parameters, from, to) => {
      client.asked.push([path, parameters.number, from, to]);
      return { bytes: from === 0 ? wavHead(pcm, (bytes - 44) / 4).buffer : new ArrayBuffer(16), total: bytes, type: 'audio/wav' };
    };
    return { client, recording: await Recording.open(client, 'r', 1) };
  };
  const { client, recording } = await open(mostDrawnBytes);
  assert.deepEqual([recording.obstacle, recording.isShort, recording.isPlayable], [null, false, true]);
  const part = await recording.part(600_000);
  URL.revokeObjectURL(part.url);
  const [, , from, to] = client.asked.at(-1);
  assert.ok(part.from <= 600_000 && part.to > 600_000 && to - from <= partBytes, `${part.from} ${part.to}`);
  const longer = await open(mostDrawnBytes + 4);
  assert.match(longer.recording.obstacle, /1074 MB, which is too much for a waveform/);
  assert.ok(longer.recording.isPlayable);
});

test('What is neither kind, or has no sound, is said', async () => {
  const recording = await Recording.open(device(new Uint8Array(2000)), 'r', 1);
  assert.match(recording.obstacle, /no sound, or is of another kind/);
  assert.equal(recording.isPlayable, false);
  assert.match((await Recording.open(device(wav([])), 'r', 1)).obstacle, /no sound/);
});

test('A part of a file is asked for by its bytes, and a whole file in its place is cut', async () => {
  const asked = [];
  globalThis.document = /** @type {any} */ ({ baseURI: 'http://device.test/' });
  let answer = () => new Response(new Uint8Array([3, 4]), { status: 206, headers: { 'Content-Range': 'bytes 2-3/9', 'Content-Type': 'audio/wav' } });
  globalThis.fetch = /** @type {any} */ (async (url, options) => {
    asked.push([String(url), options.headers.Range, options.headers.Authorization]);
    return answer();
  });
  const client = new Client('secret');
  const part = await client.bytes('v1/history/r/recording', { number: 1 }, 2, 4);
  assert.deepEqual([[...new Uint8Array(part.bytes)], part.total, part.type], [[3, 4], 9, 'audio/wav']);
  assert.deepEqual(asked, [['http://device.test/v1/history/r/recording?number=1', 'bytes=2-3', 'Bearer secret']]);
  answer = () => new Response(new Uint8Array([1, 2, 3, 4, 5]), { status: 200 });
  const cut = await client.bytes('v1/history/r/recording', { number: 1 }, 2, 4);
  assert.deepEqual([[...new Uint8Array(cut.bytes)], cut.total], [[3, 4], 5]);
  assert.deepEqual(['bytes 0-0/1', 'bytes */9', '', null, 'bytes 0-1/*'].map(totalBytes), [1, null, null, null, null]);
});

test('A recording that is gone, and one that a browser cannot read, have their own words', () => {
  assert.match(recordingWords({ code: 'no_such_recording' }), /is gone/);
  assert.match(recordingWords({ code: 'unreachable' }), /does not answer/);
  assert.match(recordingWords(new Error('x')), /browser cannot read/);
});
