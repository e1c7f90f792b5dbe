// One call's WebRTC half. Descriptions and candidates travel as docs/protocol.md has it under "Calls with WebRTC".

/**
 * Fires `connected` when media can flow, `lost` when it cannot any more, `left` when the other side has let go, `troubled` and `recovered` in between,
 * `track` with `detail: MediaStream` when the other side's sound is there, and `changed` after a renegotiation.
 */
export class Peer extends EventTarget {
  /** @type {RTCPeerConnection} */
  connection;

  #polite;
  #send;
  /** Signals that wait for {@link release}. @type {[string, object][] | null} */
  #held = [];
  /** Candidates of the other side that came before its description. @type {RTCIceCandidateInit[]} */
  #early = [];
  #isOffering = false;
  #ignoresOffer = false;
  /** The first offer and answer have been exchanged, from which on either side may renegotiate. */
  #isSettled = false;
  #isClosed = false;
  #timer = 0;
  #restarts = 0;
  /** @type {RTCDtlsTransport | null} */
  #transport = null;
  /** Signals are handled one after the other. */
  #queue = Promise.resolve();

  /**
   * @param {{ iceServers: RTCIceServer[], microphone: MediaStream, polite: boolean,
   *   send: (type: string, data: object) => void }} options `polite`: gives way if both sides offer at once
   */
  constructor({ iceServers, microphone, polite, send }) {
    super();
    this.#polite = polite;
    this.#send = send;
    this.connection = new RTCPeerConnection({ iceServers, bundlePolicy: 'max-bundle' });
    for (const track of microphone.getAudioTracks()) this.connection.addTrack(track, microphone);
    this.connection.addEventListener('icecandidate', ({ candidate }) => this.#signal('candidate', candidate
      ? { candidate: candidate.candidate, sdpMid: candidate.sdpMid, sdpMLineIndex: candidate.sdpMLineIndex }
      : { candidate: '', sdpMid: '0', sdpMLineIndex: 0 }));
    this.connection.addEventListener('track', ({ track, streams }) => {
      this.dispatchEvent(new CustomEvent('track', { detail: streams[0] ?? new MediaStream([track]) }));
    });
    this.connection.addEventListener('connectionstatechange', () => this.#watch());
    this.connection.addEventListener('signalingstatechange', () => this.#watchTransport());
    this.connection.addEventListener('negotiationneeded', () => this.#offerAgain());
  }

  get sender() { return this.connection.getSenders()[0]; }

  /** @returns {Promise<RTCSessionDescriptionInit>} the first offer */
  async offer() {
    await this.connection.setLocalDescription();
    return describe(this.connection.localDescription);
  }

  /**
   * @param {RTCSessionDescriptionInit} offer
   * @returns {Promise<RTCSessionDescriptionInit>} the answer to the first offer
   */
  async answer(offer) {
    await this.connection.setRemoteDescription(offer);
    await this.connection.setLocalDescription();
    await this.#addEarly();
    this.#isSettled = true;
    return describe(this.connection.localDescription);
  }

  /** @param {RTCSessionDescriptionInit} answer to the first offer */
  async accept(answer) {
    await this.connection.setRemoteDescription(answer);
    await this.#addEarly();
    this.#isSettled = true;
  }

  /** From now on signals reach the other side; those that were held go out first. */
  release() {
    const held = this.#held ?? [];
    this.#held = null;
    for (const [type, data] of held) this.#send(type, data);
  }

  /** @param {string} type @param {object} data */
  #signal(type, data) {
    if (this.#held) this.#held.push([type, data]);
    else if (!this.#isClosed) this.#send(type, data);
  }

  /**
   * Takes a signal of the other side. What cannot be used is passed over: it came from outside.
   * @param {string} type
   * @param {any} data
   */
  take(type, data) {
    this.#queue = this.#queue.then(() => this.#handle(type, data)).catch((error) => {
      console.warn('signal not used', type, error);
    });
  }

  /** @param {string} type @param {any} data */
  async #handle(type, data) {
    if (this.#isClosed) return;
    if (type === 'candidate') {
      if (!this.connection.remoteDescription) this.#early.push(data);
      else await this.#add(data);
    } else if (type === 'offer' && this.#isSettled) {
      const collides = this.#isOffering || this.connection.signalingState !== 'stable';
      this.#ignoresOffer = collides && !this.#polite;
      if (this.#ignoresOffer) return;
      await this.connection.setRemoteDescription({ type: 'offer', sdp: data.sdp });  // Rolls an offer of ours back.
      await this.connection.setLocalDescription();
      this.#signal('answer', describe(this.connection.localDescription));
      this.dispatchEvent(new Event('changed'));
    } else if (type === 'answer' && this.connection.signalingState === 'have-local-offer') {
      await this.connection.setRemoteDescription({ type: 'answer', sdp: data.sdp });
      this.dispatchEvent(new Event('changed'));
    }
  }

  async #addEarly() {
    for (const candidate of this.#early.splice(0)) await this.#add(candidate);
  }

  /** @param {RTCIceCandidateInit} candidate */
  async #add(candidate) {
    await this.connection.addIceCandidate(candidate).catch((error) => {
      if (!this.#ignoresOffer) console.warn('candidate not used', error.name);
    });
  }

  async #offerAgain() {
    if (!this.#isSettled || this.#isClosed) return;
    try {
      this.#isOffering = true;
      await this.connection.setLocalDescription();
      this.#signal('offer', describe(this.connection.localDescription));
    } finally {
      this.#isOffering = false;
    }
  }

  #watch() {
    clearTimeout(this.#timer);
    switch (this.connection.connectionState) {
      case 'connected':
        this.dispatchEvent(new Event('connected'));
        this.#restarts = 0;
        break;
      case 'disconnected':
        this.dispatchEvent(new Event('troubled'));
        this.#timer = setTimeout(() => this.#restart(), 3_000);
        break;
      case 'failed': this.#restart(); break;
      case 'closed': if (!this.#isClosed) this.dispatchEvent(new Event('lost')); break;
      default: break;
    }
  }

  /** The other side says goodbye on the way of the media itself, too, which is heard without the exchange. */
  #watchTransport() {
    const { transport } = this.sender;
    if (!transport || transport === this.#transport) return;
    this.#transport = transport;
    transport.addEventListener('statechange', () => {
      if (transport.state !== 'closed' || this.#isClosed) return;
      // In an ordinary hang-up the exchange's word comes at the same time, and says more.
      this.#timer = setTimeout(() => { if (!this.#isClosed) this.dispatchEvent(new Event('left')); }, 1_000);
    });
  }

  /** Looks for another way through the network; when a few tries have not found one, the call is lost. */
  #restart() {
    if (this.#isClosed) return;
    if (this.#restarts >= 3) {
      this.dispatchEvent(new Event('lost'));
      return;
    }
    this.#restarts += 1;
    this.dispatchEvent(new Event('troubled'));
    this.connection.restartIce();
    this.#timer = setTimeout(() => this.#restart(), 7_000);
  }

  /** Whether the other side sends us sound, as far as the descriptions say. */
  get isHeld() {
    const direction = this.connection.getTransceivers()[0]?.currentDirection;
    return this.#isSettled && direction !== null && direction !== undefined && !direction.includes('recv');
  }

  /**
   * Sends keys as telephone events (RFC 4733).
   * @param {string} tones
   * @returns {boolean} false if the other side takes none
   */
  sendTones(tones) {
    const { dtmf } = this.sender;
    if (!dtmf?.canInsertDTMF) return false;
    dtmf.insertDTMF(dtmf.toneBuffer + tones, 120, 70);
    return true;
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.connection.close();
  }
}

/** @param {RTCSessionDescription | null} description @returns {RTCSessionDescriptionInit} */
function describe(description) {
  if (!description) throw new Error('there is no description');
  return { type: description.type, sdp: description.sdp };
}
