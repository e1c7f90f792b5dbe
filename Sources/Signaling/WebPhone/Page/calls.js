// One call at a time, from the first ring to the end. What it decides is seen; how it looks is for stage.js.

import { Peer } from './peer.js';
import { SoundError } from './sound.js';
import { isNumber, outsideLabel } from './words.js';

/**
 * @typedef {{ reason: string, detail?: string }} Ending
 * @typedef {'preparing' | 'calling' | 'ringing' | 'answering' | 'connecting' | 'talking' | 'ended'} Phase
 * @typedef {{
 *   name: string, label: string, canCall: boolean, direction: 'outgoing' | 'incoming', phase: Phase, invite: string | null, offer: any,
 *   peer: Peer | null, microphone: MediaStream | null, isMuted: boolean, isTroubled: boolean, isHeld: boolean,
 *   since: number, ending: Ending | null, early: [string, any][], isOrphan: boolean,
 *   isToldAgain: boolean,
 * }} Call
 * @typedef {{ call: 'ended' | 'cancelled', invite: string, user: string, since: number }} Left what a page that went away was in
 */

/** Where a page leaves its call to the page that comes after it in the same tab. */
const leftKey = 'call';

const ringTime = 30;  // Seconds.

/**
 * Fires `change` whenever the call has changed, `ended` with `detail: Call` at its end, `missed` with `detail: name`,
 * and `blocked` when the browser wants a click before it plays sound.
 */
export class Calls extends EventTarget {
  /** @type {Call | null} */
  call = null;

  #signaling;
  #sound;
  #memory;

  /**
   * @param {import('./signaling.js').Signaling} signaling
   * @param {import('./sound.js').Sound} sound
   * @param {Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>} [memory] outlives the page, and is the tab's own
   */
  constructor(signaling, sound, memory = sessionStorage) {
    super();
    this.#signaling = signaling;
    this.#sound = sound;
    this.#memory = memory;
    signaling.addEventListener('event', (event) => this.#hear(/** @type {CustomEvent} */ (event).detail));
    signaling.addEventListener('session', (event) => this.#meetSession(/** @type {CustomEvent} */ (event).detail));
  }

  // What the user does.

  /**
   * @param {string} to
   * @param {Call | null} instead the call whose other side asked for this one (contract CALL-8)
   */
  async dial(to, instead = null) {
    if (this.call !== instead) return;
    const call = this.#begin(to, 'outgoing', 'preparing');
    try {
      const peer = await this.#makePeer(call, false);
      if (!peer) return;
      const offer = await peer.offer();
      this.#move(call, 'calling');
      const sent = await this.#signaling.request('invite.send', {
        to, data: instead ? { offer, transfer: { invite: instead.invite } } : { offer }, ttl: ringTime, online_only: true, idempotency_key: crypto.randomUUID(),
      });
      call.invite = sent.invite;
      if (instead) this.#giveUp(instead);
      if (call.phase === 'ended') {
        this.#signaling.tell('invite.cancel', { invite: sent.invite, data: { reason: 'cancelled' } });
        return;
      }
      this.#changed();
      this.#sound.ringBack();
      peer.release();
    } catch (error) {
      if (instead) {
        this.#tellTransfer(instead, 'failed');
        this.#giveUp(instead);
      }
      this.#end(call, endingOf(error));
    }
  }

  async answer() {
    const { call } = this;
    if (call?.phase !== 'ringing') return;
    this.#sound.quiet();
    this.#move(call, 'answering');
    try {
      const peer = await this.#makePeer(call, true);
      if (!peer) return;
      for (const [type, data] of call.early.splice(0)) peer.take(type, data);
      const answer = await peer.answer(call.offer);
      await this.#signaling.request('invite.accept', { invite: call.invite, data: { answer } });
      if (this.#isOver(call)) {
        this.#signaling.tell('call.end', { invite: call.invite, reason: 'completed', duration_ms: 0 });
        return;
      }
      peer.release();
      if (call.phase === 'answering') this.#move(call, 'connecting');
    } catch (error) {
      // Nobody shall go on ringing us for a call that we cannot take.
      const ending = endingOf(error);
      if (!this.#isOver(call) && !(error.reason in answeredErrors)) {
        this.#signaling.tell('invite.reject', { invite: call.invite, data: { reason: 'failed' } });
      }
      this.#end(call, ending);
    }
  }

  decline() {
    const { call } = this;
    if (call?.phase !== 'ringing') return;
    this.#signaling.tell('invite.reject', { invite: call.invite, data: { reason: 'declined' } });
    this.#end(call, { reason: 'declined' });
  }

  hangUp() {
    const { call } = this;
    if (!call) return;
    switch (call.phase) {
      case 'preparing': break;
      case 'calling':
        if (call.invite) {
          this.#signaling.tell('invite.cancel', { invite: call.invite, data: { reason: 'cancelled' } });
        }
        return this.#end(call, { reason: 'cancelled' });
      case 'ringing': return this.decline();
      case 'answering':
        this.#signaling.tell('invite.reject', { invite: call.invite, data: { reason: 'declined' } });
        break;
      case 'connecting':
      case 'talking': this.#sayEnd(call, 'completed'); break;
      case 'ended': return;
    }
    this.#end(call, { reason: 'completed' });
  }

  toggleMute() {
    const { call } = this;
    if (!call?.microphone) return;
    call.isMuted = !call.isMuted;
    for (const track of call.microphone.getAudioTracks()) track.enabled = !call.isMuted;
    this.#changed();
  }

  /**
   * @param {string} key one of `0` to `9`, `*`, `#`
   * @returns {boolean} false if the other side takes none
   */
  sendTone(key) {
    return this.call?.phase === 'talking' && (this.call.peer?.sendTones(key) ?? false);
  }

  /** Goes on with the microphone that is chosen now. */
  async changeMicrophone() {
    const { call } = this;
    if (!call?.microphone || !call.peer) return;
    const next = await this.#sound.openMicrophone();
    if (this.#isOver(call)) return stop(next);
    for (const track of next.getAudioTracks()) track.enabled = !call.isMuted;
    await call.peer.sender.replaceTrack(next.getAudioTracks()[0]);
    stop(call.microphone);
    call.microphone = next;
    this.#watchMicrophone(call);
  }

  /**
   * The page goes away. What it says now is lost where the browser closes the socket first, as Firefox does; so the page that comes
   * back in this tab says it again.
   */
  leave() {
    const { call } = this;
    if (!call?.invite || call.isOrphan) return;
    const isCall = ['answering', 'connecting', 'talking'].includes(call.phase);
    if (!isCall && call.phase !== 'calling') return;
    /** @type {Left} */
    const left = {
      call: isCall ? 'ended' : 'cancelled', invite: call.invite, user: this.#signaling.user,
      since: call.since > 0 ? Date.now() - Math.round(performance.now() - call.since) : 0,
    };
    this.#memory.setItem(leftKey, JSON.stringify(left));
    if (isCall) this.#sayEnd(call, 'completed');
    else this.#signaling.tell('invite.cancel', { invite: call.invite });
  }

  /** Ends the call that an earlier page of this tab was in when it went away. */
  #endLeftCall() {
    const kept = this.#memory.getItem(leftKey);
    if (!kept) return;
    this.#memory.removeItem(leftKey);
    /** @type {Left} */
    const left = JSON.parse(kept);
    if (left.user !== this.#signaling.user || left.invite === this.call?.invite) return;
    if (left.call === 'cancelled') {
      // It may have been taken meanwhile, or be over: then the exchange refuses one of both, or both.
      this.#signaling.tell('invite.cancel', { invite: left.invite });
      this.#signaling.tell('call.end', { invite: left.invite, reason: 'cancelled', duration_ms: 0 });
      return;
    }
    const duration = left.since > 0 ? Math.max(0, Date.now() - left.since) : 0;
    this.#signaling.tell('call.end', { invite: left.invite, reason: 'completed', duration_ms: duration });
  }

  // What the exchange says.

  /** @param {{ type: string, data: any }} event */
  #hear({ type, data }) {
    if (type === 'inviteReceived') return this.#ring(data);
    const { call } = this;
    if (!call || call.invite !== data?.invite) return this.#hearOfOther(type, data);
    // Members of a group hear how others answer, and how the invite ends for those.
    const isAnswer = type === 'inviteAccepted' || type === 'inviteRejected';
    const isEnd = type === 'inviteTimedOut' || type === 'inviteCancelled';
    if (isAnswer && call.direction !== 'outgoing') return;
    if (isEnd && (call.phase === 'connecting' || call.phase === 'talking')) return;
    switch (type) {
      case 'inviteAccepted': this.#accepted(call, data); break;
      case 'inviteRejected':
        this.#end(call, { reason: refusalOf(data.data) });
        break;
      case 'inviteTimedOut': this.#end(call, { reason: 'noAnswer' }); break;
      case 'inviteCancelled': this.#end(call, { reason: 'cancelled' }); break;
      case 'inviteHandled':
        if (call.phase === 'ringing') {
          this.#end(call, { reason: data.action === 'accepted' ? 'acceptedElsewhere' : 'declinedElsewhere' });
        }
        break;
      case 'callSignal':
        if (data.type === 'transfer') this.#transfer(call, data.data?.to);
        else if (call.peer) call.peer.take(data.type, data.data);
        else if (call.early.length < 256) call.early.push([data.type, data.data]);
        break;
      case 'callEnded': this.#end(call, { reason: data.reason === 'disconnected' ? 'disconnected' : 'completed' }); break;
      default: break;
    }
  }

  /** Of an invite that is not the call: one that was hung up before the answer came, or that we were too busy for. */
  #hearOfOther(/** @type {string} */ type, /** @type {any} */ data) {
    if (type === 'inviteAccepted') {
      this.#signaling.tell('call.end', { invite: data.invite, reason: 'cancelled', duration_ms: 0 });
    }
  }

  /** @param {any} data */
  #ring(data) {
    if (!data.invitees.includes(this.#signaling.user)) return;  // In a group: others are asked.
    if (this.call?.invite === data.invite) {
      this.call.isToldAgain = true;
      return;
    }
    if (this.call) {
      this.#signaling.tell('invite.reject', { invite: data.invite, data: { reason: 'busy' } });
      this.dispatchEvent(new CustomEvent('missed', { detail: partyOf(data) }));
      return;
    }
    const party = partyOf(data);
    const call = this.#begin(party.name, 'incoming', 'ringing');
    Object.assign(call, party);
    call.invite = data.invite;
    call.offer = data.data?.offer;
    if (typeof call.offer?.sdp !== 'string') {
      this.#signaling.tell('invite.reject', { invite: data.invite, data: { reason: 'failed' } });
      return this.#end(call, { reason: 'noCommonMedia' });
    }
    this.#sound.ring();
    this.#changed();
  }

  /**
   * The other side has us call somebody in its place. This page is in one call at a time: the old one goes on until the exchange has
   * taken the invite, and not until that is answered.
   * @param {Call} call @param {unknown} to
   */
  #transfer(call, to) {
    if (call.phase !== 'talking' || typeof to !== 'string') return this.#tellTransfer(call, 'refused');
    this.#tellTransfer(call, 'trying');
    this.dial(to, call);
  }

  /** @param {Call} call @param {string} state */
  #tellTransfer(call, state) {
    this.#signaling.tell('call.signal', { invite: call.invite, type: 'transferProgress', data: { state } });
  }

  /** Another call has taken this one's place. @param {Call} call */
  #giveUp(call) {
    this.#sayEnd(call, 'completed');
    call.isOrphan = true;
    call.phase = 'ended';
    call.peer?.close();
    if (call.microphone) stop(call.microphone);
  }

  /** @param {Call} call @param {any} data */
  async #accepted(call, data) {
    if (call.direction !== 'outgoing' || call.phase !== 'calling' || !call.peer) return;
    this.#sound.quiet();
    this.#move(call, 'connecting');
    try {
      await call.peer.accept(data.data?.answer);
    } catch (error) {
      console.warn('answer not used', error);
      this.#sayEnd(call, 'dialFailed');
      this.#end(call, { reason: 'noCommonMedia' });
    }
  }

  /** @param {{ resumed: boolean }} session */
  #meetSession({ resumed }) {
    this.#endLeftCall();
    const { call } = this;
    if (!call || resumed) return;
    if (call.isToldAgain && (call.phase === 'ringing' || call.phase === 'answering')) {
      call.isToldAgain = false;
      return;  // The exchange knows of it still.
    }
    // The exchange knows nothing of the call any more. If there is sound, it goes on, and is hung up by going silent.
    call.isOrphan = true;
    if (call.phase !== 'talking' && call.phase !== 'connecting' && call.phase !== 'preparing') {
      this.#end(call, { reason: 'connectionLost' });
    }
  }

  // The call itself.

  /**
   * @param {string} name
   * @param {'outgoing' | 'incoming'} direction
   * @param {Phase} phase
   * @returns {Call}
   */
  #begin(name, direction, phase) {
    this.call = {
      name, label: name, canCall: true, direction, phase, invite: null, offer: null, peer: null, microphone: null, isMuted: false,
      isTroubled: false, isHeld: false, since: 0, ending: null, early: [], isOrphan: false,
      isToldAgain: false,
    };
    this.#changed();
    return this.call;
  }

  /**
   * @param {Call} call
   * @param {boolean} polite
   * @returns {Promise<Peer | null>} `null` if the call is over meanwhile
   */
  async #makePeer(call, polite) {
    const [microphone, iceServers] = await Promise.all([
      this.#sound.openMicrophone(), this.#signaling.servers(),
    ]);
    if (this.#isOver(call)) {
      stop(microphone);
      return null;
    }
    call.microphone = microphone;
    this.#watchMicrophone(call);
    const peer = new Peer({
      iceServers, microphone, polite,
      send: (type, data) => {
        if (!call.isOrphan) this.#signaling.tell('call.signal', { invite: call.invite, type, data });
      },
    });
    call.peer = peer;
    peer.addEventListener('track', async (event) => {
      const plays = await this.#sound.play(/** @type {CustomEvent} */ (event).detail);
      if (!plays) this.dispatchEvent(new Event('blocked'));
    });
    peer.addEventListener('connected', () => {
      call.isTroubled = false;
      if (call.since === 0) call.since = performance.now();
      this.#move(call, 'talking');
    });
    peer.addEventListener('troubled', () => { call.isTroubled = true; this.#changed(); });
    peer.addEventListener('changed', () => { call.isHeld = peer.isHeld; this.#changed(); });
    peer.addEventListener('left', () => {
      this.#sayEnd(call, 'completed');
      this.#end(call, { reason: 'completed' });
    });
    peer.addEventListener('lost', () => {
      this.#sayEnd(call, 'connectionLost');
      this.#end(call, { reason: 'connectionLost' });
    });
    return peer;
  }

  /** A microphone that is pulled out is replaced by whatever there is. @param {Call} call */
  #watchMicrophone(call) {
    call.microphone?.getAudioTracks()[0]?.addEventListener('ended', () => {
      if (!this.#isOver(call)) this.changeMicrophone().catch(() => this.dispatchEvent(new Event('silenced')));
    });
  }

  /** @param {Call} call */
  #isOver(call) {
    return this.call !== call || call.phase === 'ended';
  }

  /** @param {Call} call @param {Phase} phase */
  #move(call, phase) {
    if (this.#isOver(call)) return;
    call.phase = phase;
    this.#changed();
  }

  /** @param {Call} call @param {string} reason */
  #sayEnd(call, reason) {
    if (call.isOrphan || !call.invite) return;
    const duration = call.since > 0 ? Math.round(performance.now() - call.since) : 0;
    this.#signaling.tell('call.end', { invite: call.invite, reason, duration_ms: duration });
  }

  /** @param {Call} call @param {Ending} ending */
  #end(call, ending) {
    if (this.#isOver(call)) return;
    call.phase = 'ended';
    call.ending = ending;
    this.call = null;
    this.#sound.quiet();
    this.#sound.play(null);
    call.peer?.close();
    if (call.microphone) stop(call.microphone);
    this.dispatchEvent(new CustomEvent('ended', { detail: call }));
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}

/**
 * Who calls: whom to call back, how that is shown, and whether it can be called. The exchange lets nobody but a trunk say that a call
 * comes from outside, and what it says is a stranger's: that is called back if it is a number, and never by a name.
 * @param {any} data of an invite
 */
function partyOf(data) {
  const outside = data.data?.trunk;
  if (!outside) return { name: data.inviter, label: data.inviter, canCall: true };
  const name = typeof outside.caller === 'string' ? outside.caller : data.inviter;
  return { name, label: outsideLabel(name, outside.name), canCall: isNumber(name) };
}

/** Why an invitee did not take a call: its reason, or a cause that says who cannot be had. @param {any} data of the refusal */
function refusalOf(data) {
  const causes = new Map([['noSuchNumber', 'unknownUser'], ['notReachable', 'noDeviceOnline']]);
  const reasons = new Map([['busy', 'busy'], ['failed', causes.get(data?.cause) ?? 'acceptFailed'], ['noAnswer', 'noAnswer']]);
  return reasons.get(data?.reason) ?? 'declined';
}

/** Errors of `invite.accept` after which there is nobody to reject. */
const answeredErrors = {
  alreadyHandled: 'acceptedElsewhere', inviteTimedOut: 'noAnswer', inviteCancelled: 'cancelled',
  unknownInvite: 'connectionLost', offline: 'offline',
};

/** @param {any} error @returns {Ending} */
function endingOf(error) {
  if (error instanceof SoundError) return { reason: 'microphone', detail: error.code };
  if (error.reason in answeredErrors) {
    return { reason: answeredErrors[/** @type {keyof answeredErrors} */ (error.reason)] };
  }
  if (error instanceof DOMException) return { reason: 'noCommonMedia', detail: error.message };
  return { reason: error.reason ?? 'failed', detail: error.message };
}

/** @param {MediaStream} stream */
function stop(stream) {
  for (const track of stream.getTracks()) track.stop();
}
