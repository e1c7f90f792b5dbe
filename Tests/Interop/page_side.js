// What the checks of calls with devices need inside the web phone's page: the microphone as it is, the moments of a
// call, what comes in as samples, and calls that are made and taken without a person. Runs before the page's scripts.
(() => {
  // The microphone's own samples: the browser's clean-up would count as damage done by the call.
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = function (wishes) {
    const audio = wishes.audio === true ? {} : wishes.audio;
    const asItIs = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    return open.call(this, { ...wishes, audio: { ...audio, ...asItIs } });
  };

  // The page's connections, to do to them what a network would.
  window.connections ??= [];
  // When things happened in the newest call, in ms: the offer or the accept went out, ICE and DTLS stood, sound came.
  window.moments = {};
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    if (text.includes('"invite.send"') || text.includes('"invite.accept"')) moments.sent = performance.now();
    return send.call(this, text);
  };
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(configuration, ...given) {
      // As a page has it that may tell nobody its address.
      super(window.relaysOnly ? { ...configuration, iceTransportPolicy: 'relay' } : configuration, ...given);
      if (connections.at(-1) !== this) connections.push(this);
      const seen = window.moments = {};
      this.addEventListener('connectionstatechange', () => {
        if (this.connectionState === 'connected') seen.connected ??= performance.now();
      });
      this.addEventListener('track', ({ receiver }) => {
        const look = () => {
          if (receiver.getSynchronizationSources().length > 0) seen.media ??= performance.now();
          else if (this.signalingState !== 'closed') setTimeout(look, 1);
        };
        look();
      });
    }
  };

  const until = async (what, condition, seconds = 15) => {
    const end = performance.now() + seconds * 1000;
    while (!condition()) {
      if (performance.now() > end) throw new Error(`${what}: not within ${seconds} s`);
      await new Promise((done) => setTimeout(done, 5));
    }
  };
  const phase = () => document.body.dataset.call;

  /** While `window.answers` is true whatever rings is answered at once; `window.rests` puts the notes of ends away. */
  addEventListener('DOMContentLoaded', () => {
    new MutationObserver(() => {
      if (window.answers && phase() === 'ringing') document.getElementById('answer').click();
      if (window.rests && phase() === 'ended') setTimeout(rest);
    }).observe(document.body, { attributes: true, attributeFilter: ['data-call'] });
  });

  /** Calls somebody, lets the call last for `seconds` after sound has come, and hangs up; the moments of the call. */
  window.callOnce = async (name, seconds) => {
    await until('at rest', () => phase() === 'idle');
    const person = () => document.querySelector(`li[data-user="${name}"][data-there="true"] button:not([aria-disabled])`);
    await until(`${name} is there`, person);
    const before = connections.length;
    person().click();
    await until('a connection', () => connections.length > before);
    await until('sound', () => moments.media !== undefined && moments.connected !== undefined);
    const { sent, connected, media } = moments;
    await new Promise((done) => setTimeout(done, seconds * 1000));
    document.getElementById('hang-up').click();
    await rest();
    connections.length = 0;
    return { connected: connected - sent, media: media - sent };
  };

  /** So many calls, one after the other; the moments of each. */
  window.callTimes = async (name, count, seconds) => {
    const times = [];
    while (times.length < count) times.push(await callOnce(name, seconds));
    return times;
  };

  /** Waits for the end of the call, and puts its note away. */
  window.rest = async () => {
    await until('the end', () => phase() === 'ended' || phase() === 'idle');
    if (phase() === 'ended') document.getElementById('dismiss').click();
    await until('at rest', () => phase() === 'idle');
  };

  const base64 = (buffer) => {
    let text = '';
    const bytes = new Uint8Array(buffer);
    for (let start = 0; start < bytes.length; start += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
    }
    return btoa(text);
  };

  /**
   * What comes in: so many seconds of samples at 48 kHz, as base64 of 32-bit floats. They are the decoder's own frames,
   * without a resampler or a second clock in between; Chromium alone gives them away.
   */
  window.listen = async (seconds) => {
    const track = connections.at(-1).getReceivers()[0].track.clone();
    const reader = new MediaStreamTrackProcessor({ track, maxBufferSize: 1000 }).readable.getReader();
    const samples = new Float32Array(Math.ceil(seconds * 48000));
    for (let filled = 0; filled < samples.length;) {
      const { value, done } = await reader.read();
      if (done) break;
      if (value.sampleRate !== 48000) throw new Error(`the rate is ${value.sampleRate}`);
      const part = new Float32Array(value.numberOfFrames);
      value.copyTo(part, { planeIndex: 0, format: 'f32-planar' });
      value.close();
      samples.set(part.subarray(0, samples.length - filled), filled);
      filled += part.length;
    }
    await reader.cancel();
    track.stop();
    return base64(samples.buffer);
  };

  /** What comes in during so many seconds, as base64 of a file that the browser's recorder makes. */
  window.record = async (seconds) => {
    const track = connections.at(-1).getReceivers()[0].track.clone();
    const recorder = new MediaRecorder(new MediaStream([track]), { audioBitsPerSecond: 256000 });
    const parts = [];
    await new Promise((done) => {
      recorder.ondataavailable = ({ data }) => parts.push(data);
      recorder.onstop = done;
      recorder.start();
      setTimeout(() => recorder.stop(), seconds * 1000);
    });
    track.stop();
    return base64(await new Blob(parts).arrayBuffer());
  };

  /** The user name fragments of the path in use. */
  window.pair = async () => {
    const stats = await connections.at(-1).getStats();
    const { selectedCandidatePairId } = [...stats.values()].find(({ type }) => type === 'transport');
    const { localCandidateId, remoteCandidateId } = stats.get(selectedCandidatePairId);
    return [localCandidateId, remoteCandidateId].map((id) => stats.get(id).usernameFragment);
  };

  /** What kinds of candidates the path in use has, ours and theirs, and all those that the other side told. */
  window.kinds = async () => {
    const stats = await connections.at(-1).getStats();
    const { selectedCandidatePairId } = [...stats.values()].find(({ type }) => type === 'transport');
    const { localCandidateId, remoteCandidateId } = stats.get(selectedCandidatePairId);
    const told = [...stats.values()].filter(({ type }) => type === 'remote-candidate');
    return {
      path: [localCandidateId, remoteCandidateId].map((id) => stats.get(id).candidateType),
      told: [...new Set(told.map(({ candidateType }) => candidateType))],
    };
  };

  /** Packets of sound that have come in; Firefox counts no others. */
  window.soundPackets = async () => {
    const stats = await connections.at(-1).getStats();
    return [...stats.values()].find(({ type }) => type === 'inbound-rtp')?.packetsReceived ?? 0;
  };

  /** Packets of any kind that have come in. */
  window.packets = async () => {
    const stats = await connections.at(-1).getStats();
    return [...stats.values()].find(({ type }) => type === 'transport').packetsReceived;
  };
})();
