// A connection of WebRTC that a test moves by hand, and the microphone that goes with it.

class Track extends EventTarget {
  kind = 'audio';
  enabled = true;
  isStopped = false;
  stop() { this.isStopped = true; }
}

export class Stream {
  tracks = [new Track()];
  getTracks() { return this.tracks; }
  getAudioTracks() { return this.tracks; }
}

export class Connection extends EventTarget {
  /** All that were made. @type {Connection[]} */
  static made = [];

  connectionState = 'new';
  signalingState = 'stable';
  localDescription = null;
  remoteDescription = null;
  candidates = [];
  rollbacks = 0;
  direction = null;
  #sender = {
    track: null, transport: Object.assign(new EventTarget(), { state: 'new' }), replaced: [],
    replaceTrack: async (track) => { this.#sender.replaced.push(track); },
    dtmf: { canInsertDTMF: true, toneBuffer: '', insertDTMF: (tones) => { this.#sender.dtmf.toneBuffer = tones; } },
  };

  constructor(options) {
    super();
    this.options = options;
    this.offers = 0;
    Connection.made.push(this);
  }

  addTrack(track) { this.#sender.track = track; }
  getSenders() { return [this.#sender]; }
  getTransceivers() { return [{ currentDirection: this.direction }]; }
  restartIce() { this.restarts = (this.restarts ?? 0) + 1; this.dispatchEvent(new Event('negotiationneeded')); }
  close() { this.signalingState = 'closed'; this.isClosed = true; }

  async setLocalDescription() {
    if (this.signalingState === 'have-remote-offer') {
      this.localDescription = { type: 'answer', sdp: 'answer' };
      this.#signal('stable');
    } else {
      this.localDescription = { type: 'offer', sdp: `offer-${++this.offers}` };
      this.#signal('have-local-offer');
    }
  }

  async setRemoteDescription(description) {
    if (description.sdp === 'bad') throw new DOMException('Not SDP.', 'InvalidAccessError');
    if (description.type === 'offer') {
      if (this.signalingState === 'have-local-offer') this.rollbacks += 1;
      this.remoteDescription = description;
      this.#signal('have-remote-offer');
    } else {
      if (this.signalingState !== 'have-local-offer') throw new DOMException('No offer.', 'InvalidStateError');
      this.remoteDescription = description;
      this.#signal('stable');
    }
  }

  async addIceCandidate(candidate) {
    if (candidate.candidate === 'bad') throw new DOMException('No candidate.', 'OperationError');
    this.candidates.push(candidate.candidate);
  }

  #signal(state) {
    this.signalingState = state;
    this.dispatchEvent(new Event('signalingstatechange'));
  }

  /** What the network does. */
  become(state) {
    this.connectionState = state;
    this.dispatchEvent(new Event('connectionstatechange'));
  }

  find(candidate) {
    this.dispatchEvent(Object.assign(new Event('icecandidate'), {
      candidate: candidate && { candidate, sdpMid: '0', sdpMLineIndex: 0 },
    }));
  }
}

globalThis.RTCPeerConnection = /** @type {any} */ (Connection);
globalThis.MediaStream = /** @type {any} */ (Stream);
