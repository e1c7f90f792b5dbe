// The WebSocket half of docs/protocol.md: requests, events, and a connection that comes back by itself.

import { delayBefore } from './backoff.js';
import { RestError, logIn, resources } from './login.js';

/**
 * @typedef {import('./login.js').Credential} Credential
 * @typedef {import('./login.js').Grant} Grant
 * @typedef {'off' | 'connecting' | 'ready' | 'reconnecting' | 'replaced' | 'refused'} LinkState
 */

const requestTime = 10_000;
/** How long the exchange may take to show that it is there, once something says that it may not be. */
const probeTime = 5_000;
/** How long a connection must have stood for its end to be no fault of the exchange's, in milliseconds. */
const stableAfter = 10_000;

/** `WebSocket.OPEN`. */
const isOpen = 1;

/** The exchange refused a request on the WebSocket, or the WebSocket went away meanwhile (`name` is `offline`). */
export class RpcError extends Error {
  /** @param {{ code: number, message: string, data?: { name?: string } }} failure */
  constructor(failure) {
    super(failure.message);
    this.code = failure.code;
    this.reason = failure.data?.name ?? 'offline';
  }
}

/**
 * What a connection needs of the browser; tests have a clock and a network of their own.
 * @typedef {{
 *   now: () => number, after: (act: () => void, milliseconds: number) => any, cancel: (timer: any) => void,
 *   random: () => number, open: (url: string) => WebSocket, logIn: typeof logIn, resources: typeof resources,
 *   onChange: (act: () => void) => () => void,
 * }} World `onChange` reports that the network has changed or that the page is seen again, until its result is called
 */

/** @type {World} */
const browser = {
  now: () => performance.now(),
  after: (act, milliseconds) => setTimeout(act, milliseconds),
  cancel: (timer) => clearTimeout(timer),
  random: Math.random,
  open: (url) => new WebSocket(url),
  logIn,
  resources,
  onChange(act) {
    const ended = new AbortController();
    const { signal } = ended;
    addEventListener('online', act, { signal });
    addEventListener('offline', act, { signal });
    document.addEventListener('visibilitychange', () => { if (!document.hidden) act(); }, { signal });
    return () => ended.abort();
  },
};

const offline = () => new RpcError({ code: 0, message: 'There is no connection to the exchange.' });

/**
 * One device's connection to the exchange.
 *
 * Fires `state` whenever {@link state} changes, `event` with `detail: { type, data }` for each event of the exchange,
 * `session` with `detail: { resumed, people }` whenever a session stands.
 */
export class Signaling extends EventTarget {
  /** @type {LinkState} */
  state = 'off';
  /** Why it is `refused`. @type {Error | null} */
  refusal = null;
  /** @type {Grant | null} */
  grant = null;

  /** @type {RTCIceServer[]} */
  #iceServers = [];
  /** When they are asked for again, by `performance.now()`. */
  #serversDue = Infinity;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {((code: number, reason: string) => void) | null} */
  #dropped = null;
  /** @type {Map<number, { resolve: (result: any) => void, reject: (error: Error) => void, timer: any }>} */
  #waiting = new Map();
  #lastRequest = 0;
  /** @type {{ session: string, after: number } | null} */
  #resume = null;
  /** The id of the user that is signed in; empty before the first session. */
  user = '';
  /** Requests that wait for a session; at most 128, past which the newest are lost. @type {{ method: string, params: object }[]} */
  #later = [];
  #ended = false;
  /** @type {() => void} */
  #wake = () => {};
  #credential;
  #device;
  #world;

  /**
   * @param {Credential | null} credential `null` with a grant of earlier, good for as long as its token is
   * @param {{ id: string, name: string, capabilities: string[] }} device
   * @param {Grant | null} [grant]
   * @param {World} [world]
   */
  constructor(credential, device, grant = null, world = browser) {
    super();
    this.#credential = credential;
    this.#device = device;
    this.#world = world;
    this.grant = grant;
  }

  /** Connects, and stays connected until {@link end}. */
  start() {
    const forget = this.#world.onChange(() => {
      this.#wake();
      // A connection that died while the machine slept, or with the network, does not say so.
      this.request('ping', {}, probeTime).catch(() => {});
    });
    this.#run().finally(forget);
  }

  /** Tries at once, instead of at the end of the pause. */
  retry() {
    this.#wake();
  }

  /**
   * Sends a request.
   * @param {string} method
   * @param {object} [params]
   * @param {number} [patience] milliseconds without an answer after which the connection is lost
   * @returns {Promise<any>} the result
   * @throws {RpcError}
   */
  request(method, params = {}, patience = requestTime) {
    return new Promise((resolve, reject) => {
      if (this.#socket?.readyState !== isOpen) return reject(offline());
      const id = ++this.#lastRequest;
      const timer = this.#world.after(() => this.#drop(0, 'no answer'), patience);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  /**
   * Sends a request whose answer does not matter, now or once the connection stands again.
   * @param {string} method
   * @param {object} params
   */
  tell(method, params) {
    this.request(method, params).catch((error) => {
      if (error.reason === 'offline' && this.#later.length < 128) this.#later.push({ method, params });
    });
  }

  /** A clean goodbye. */
  async end() {
    this.#ended = true;
    if (this.state === 'ready') await this.request('session.end').catch(() => {});
    this.#drop(1000, 'goodbye');
    this.#wake();
    this.#set('off');
  }

  /** The page goes away: says so, if there is still time for it. */
  leave() {
    if (this.#socket?.readyState === isOpen) {
      this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id: ++this.#lastRequest, method: 'session.end' }));
    }
  }

  /** @param {LinkState} state */
  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event('state'));
  }

  async #run() {
    this.#set('connecting');
    let lost = this.#world.now();
    for (let burdens = 0; !this.#ended;) {
      let pause = 0;
      let isBurden = true;
      try {
        const { gone } = await this.#connect();
        const connected = this.#world.now();
        const { code, reason } = await gone;
        // One that ends as soon as it has begun counts as an attempt in vain.
        lost = this.#world.now();
        if (lost - connected >= stableAfter) {
          burdens = 0;
          isBurden = false;
        }
        if (this.#ended) return;
        if (code === 1008 && reason.includes('replaced')) return this.#set('replaced');
        if (code === 4001) this.grant = null;
      } catch (error) {
        if (this.#ended) return;
        if (this.#isFinal(error)) {
          this.refusal = error;
          return this.#set('refused');
        }
        pause = 1000 * (error.retryAfter ?? 0);
        isBurden = !error.isNobodyThere;
      }
      this.#set('reconnecting');
      const delay = delayBefore(this.#world.now() - lost, burdens, this.#world.random);
      if (isBurden) burdens++;
      await this.#pause(Math.max(pause, delay));
    }
  }

  /** @param {any} error */
  #isFinal(error) {
    if (isForgotten(error)) {
      this.grant = null;
      this.#resume = null;
      return this.#credential === null;
    }
    return error instanceof RestError && error.isFinal && error.code !== 'unknownAppKey';
  }

  /** @param {number} milliseconds */
  #pause(milliseconds) {
    return new Promise((resolve) => {
      const finish = () => {
        this.#world.cancel(timer);
        this.#wake = () => {};
        resolve(undefined);
      };
      const timer = this.#world.after(finish, milliseconds);
      this.#wake = finish;
    });
  }

  /**
   * STUN and TURN servers for a call that begins now. Their names and passwords may end: when half of their time has
   * passed, others are asked for, so that the call has the other half.
   * @returns {Promise<RTCIceServer[]>}
   */
  async servers() {
    if (this.grant && this.#world.now() >= this.#serversDue) {
      // Without an answer the old ones may do, and a call without a relay is better than none.
      await this.#world.resources(this.grant.token).then((found) => this.#keepServers(found), () => undefined);
    }
    return this.#iceServers;
  }

  /** @param {import('./login.js').Resources} found */
  #keepServers(found) {
    this.#iceServers = found.ice_servers;
    this.#serversDue = this.#world.now() + (found.ice_servers_seconds ?? Infinity) * 500;
  }

  /**
   * Logs in if need be, and asks where the WebSocket is. An exchange that restarts may forget logins: it is back then,
   * and there is nothing to wait for before the next one.
   */
  async #enter() {
    const { logIn, resources } = this.#world;
    if (this.grant) {
      try {
        return await resources(this.grant.token);
      } catch (error) {
        if (!isForgotten(error) || !this.#credential) throw error;
        this.grant = null;
        this.#resume = null;
      }
    }
    if (!this.#credential) throw new RestError('tokenRejected', 'Sign in again.', 401);
    this.grant = await logIn(this.#credential);
    return resources(this.grant.token);
  }

  /**
   * Opens a session.
   * @returns {Promise<{ gone: Promise<{ code: number, reason: string }> }>} `gone`, in an object lest it be awaited
   *   with the rest, ends with the session
   */
  async #connect() {
    const found = await this.#enter();
    if (this.#ended) throw offline();
    this.#keepServers(found);
    const socket = this.#world.open(found.websocket_url);
    /** @type {Promise<{ code: number, reason: string }>} */
    const gone = new Promise((resolve) => {
      this.#dropped = (code, reason) => resolve({ code, reason });
    });
    this.#socket = socket;
    socket.addEventListener('message', (message) => this.#receive(message.data));
    socket.addEventListener('close', (event) => {
      if (this.#socket === socket) this.#drop(event.code, event.reason);
    });
    await new Promise((resolve, reject) => {
      const timer = this.#world.after(() => reject(offline()), requestTime);
      socket.addEventListener('open', () => { this.#world.cancel(timer); resolve(undefined); });
      socket.addEventListener('close', () => { this.#world.cancel(timer); reject(offline()); });
    }).catch((error) => {
      this.#drop(0, 'not opened');
      throw error;
    });

    try {
      await this.#startSession(found.keepalive_seconds);
    } catch (error) {
      this.#drop(0, 'no session');
      throw error;
    }
    return { gone };
  }

  /** @param {number} keepalive seconds */
  async #startSession(keepalive) {
    const session = await this.request('session.start', {
      token: this.grant?.token, device: this.#device, ...(this.#resume ? { resume: this.#resume } : {}),
    });
    this.user = session.user;
    // A session that is not resumed begins a new count of events, and knows nothing of earlier invites.
    this.#resume = { session: session.session, after: session.resumed ? this.#resume?.after ?? 0 : session.sequence };
    if (!session.resumed) await this.request('device.register', { device: this.#device });
    const people = await this.request('presence.subscribe').then((result) => result.users, (error) => {
      if (error.reason === 'offline') throw error;
      return null;  // Presence is switched off on this exchange.
    });
    this.#keepAlive(keepalive * 1000);
    this.#set('ready');
    this.dispatchEvent(new CustomEvent('session', { detail: { resumed: session.resumed, people, session } }));
    for (const { method, params } of this.#later.splice(0)) this.tell(method, params);
  }

  /** The browser does not show the exchange's pings, so that we ask ourselves. @param {number} interval */
  #keepAlive(interval) {
    const socket = this.#socket;
    const ask = () => {
      if (this.#socket !== socket) return;
      this.request('ping').catch(() => {});
      this.#world.after(ask, interval);
    };
    this.#world.after(ask, interval);
  }

  /** @param {string} text */
  #receive(text) {
    const message = JSON.parse(text);
    if (message.method === 'event') {
      const { sequence, type, data } = message.params;
      if (this.#resume) {
        if (sequence <= this.#resume.after) return;  // Heard before.
        this.#resume.after = sequence;
      }
      this.dispatchEvent(new CustomEvent('event', { detail: { type, data } }));
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    this.#world.cancel(waiting.timer);
    if (message.error) waiting.reject(new RpcError(message.error));
    else waiting.resolve(message.result);
  }

  /**
   * The connection is gone, as the socket says, or as we conclude from its silence.
   * @param {number} code
   * @param {string} reason
   */
  #drop(code, reason) {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    for (const { reject, timer } of this.#waiting.values()) {
      this.#world.cancel(timer);
      reject(offline());
    }
    this.#waiting.clear();
    this.#dropped?.(code, reason);
    this.#dropped = null;
  }
}

/** The exchange does not know the token, or does not any more. @param {any} error */
function isForgotten(error) {
  return ['tokenRejected', 'tokenExpired'].includes(error instanceof RpcError ? error.reason : error.code);
}
