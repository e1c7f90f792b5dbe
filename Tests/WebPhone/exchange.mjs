// An exchange in memory, which fails when and how a test wants, and the world that a connection to it lives in.

import { Clock, settle } from './clock.mjs';
import { page } from './page.mjs';

const { RestError } = await page('login.js');
const { Signaling } = await page('signaling.js');

/** A WebSocket whose other end is an {@link Exchange}. */
class Socket extends EventTarget {
  readyState = 0;

  constructor(exchange) {
    super();
    this.exchange = exchange;
    queueMicrotask(() => {
      if (exchange.state === 'down') this.end(1006);
      else if (exchange.state === 'up') {
        this.readyState = 1;
        this.dispatchEvent(new Event('open'));
      }
    });
  }

  send(text) { this.exchange.take(this, JSON.parse(text)); }
  close() {
    if (this.readyState < 2) this.readyState = 2;
    this.isClosedByClient = true;
  }
  say(message) {
    if (this.readyState === 1) this.dispatchEvent(Object.assign(new Event('message'), { data: JSON.stringify(message) }));
  }
  end(code, reason = '') {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
}

export class Exchange {
  /** `silent`: everything that is sent to it is lost. @type {'up' | 'down' | 'silent'} */
  state = 'up';
  clock = new Clock();
  sockets = [];
  /** All requests on all sockets: `{ at, method, params }`. */
  requests = [];
  /** When each HTTP request came. */
  visits = [];
  logins = 0;
  tokens = new Set();
  /** Sessions that can be resumed. */
  sessions = new Set();
  sequence = 0;
  /** What happens instead of an answer: by method, a function of the socket and the message. */
  instead = {};
  /** Thrown by HTTP requests while it is set. */
  refusal = null;
  /** 0 to 1: where in its range each wait lies. */
  luck = () => 1;
  /** Says that the network has changed. */
  change = () => {};
  resourcesExtra = {};

  world() {
    return {
      now: () => this.clock.now,
      after: (act, milliseconds) => this.clock.after(act, milliseconds),
      cancel: (timer) => this.clock.cancel(timer),
      random: () => this.luck(),
      open: () => {
        const socket = new Socket(this);
        this.sockets.push(socket);
        return socket;
      },
      logIn: async () => {
        this.#visit();
        this.logins += 1;
        const token = `token-${this.logins}`;
        this.tokens.add(token);
        return { user: 'alice', token };
      },
      resources: async (token) => {
        this.#visit();
        if (!this.tokens.has(token)) throw new RestError('tokenRejected', 'Not a token.', 401);
        return { websocket_url: 'ws://exchange/', ice_servers: [], keepalive_seconds: 25, ...this.resourcesExtra };
      },
      onChange: (act) => {
        this.change = act;
        return () => { this.change = () => {}; };
      },
    };
  }

  #visit() {
    if (this.state === 'down') throw new RestError('unreachable', 'Nobody listens.', 0, 0, true);
    this.visits.push(this.clock.now);
    if (this.refusal) throw this.refusal;
  }

  /** A phone that connects to it, with what it tells in `states`, `events` and `met`. */
  phone(credential = { user: 'alice', password: 'secret' }, grant = null) {
    const signaling = new Signaling(credential, { id: 'web-1', name: 'Web phone', capabilities: ['audio'] }, grant, this.world());
    const states = [], events = [], met = [];
    signaling.addEventListener('state', () => states.push(signaling.state));
    signaling.addEventListener('event', ({ detail }) => events.push(detail.data));
    signaling.addEventListener('session', ({ detail }) => met.push(detail));
    return Object.assign(signaling, { states, events, met });
  }

  /** One that is connected. */
  async connected(...given) {
    const phone = this.phone(...given);
    phone.start();
    await this.clock.pass(0);
    return phone;
  }

  get socket() { return this.sockets.at(-1); }
  get isConnected() { return this.state === 'up' && this.socket?.readyState === 1; }

  take(socket, message) {
    if (this.state === 'silent') return;
    this.requests.push({ at: this.clock.now, method: message.method, params: message.params });
    const answer = (result) => queueMicrotask(() => socket.say({ jsonrpc: '2.0', id: message.id, result }));
    const { instead } = this;
    if (instead[message.method]) return instead[message.method](socket, message);
    if (message.method === 'session.start') {
      const resumed = this.sessions.has(message.params.resume?.session);
      const session = resumed ? message.params.resume.session : `session-${this.requests.length}`;
      this.sessions.add(session);
      answer({ session, resumed, user: 'alice', sequence: this.sequence });
    } else if (message.method === 'presence.subscribe') answer({ users: [] });
    else answer({});
  }

  /** An error in the place of the answer to a method. */
  refuse(method, name) {
    this.instead[method] = (socket, { id }) => queueMicrotask(() =>
      socket.say({ jsonrpc: '2.0', id, error: { code: -32000, message: name, data: { name } } }));
  }

  event(data, sequence = ++this.sequence) {
    this.socket.say({ jsonrpc: '2.0', method: 'event', params: { sequence, type: 'test', data } });
  }

  /** The process dies, and the kernel closes what it held. */
  async kill() {
    this.state = 'down';
    for (const socket of this.sockets) if (socket.readyState < 2) socket.end(1006);
    await settle();
  }

  /** Another process begins: it knows neither logins nor sessions, as one without a database. */
  restart() {
    this.state = 'up';
    this.tokens.clear();
    this.sessions.clear();
    this.sequence = 0;
  }

  /** The methods that were asked for since a number of requests. */
  methods(since = 0) { return this.requests.slice(since).map(({ method }) => method); }
}

/** A generator of numbers from 0 to 1 that are the same each time (mulberry32). */
export function seeded(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6D2B79F5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
