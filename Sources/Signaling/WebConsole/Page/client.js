// Requests to the device, with the token that the user gave.

const key = 'handset-console-token';

/** The device refused a request, or does not answer. */
export class Problem extends Error {
  /**
   * @param {string} code as in docs/control.md, or `unreachable`
   * @param {string} message
   * @param {number} status 0 if there was no answer
   */
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The token of this tab, which ends with it; nothing of it is ever in a URL. */
export const keptToken = {
  get: () => sessionStorage.getItem(key),
  /** @param {string} token */
  set: (token) => sessionStorage.setItem(key, token),
  clear: () => sessionStorage.removeItem(key),
};

export class Client {
  #token;

  /** @param {string} token */
  constructor(token) {
    this.#token = token;
  }

  /**
   * @param {string} path relative to the page, so that a proxy may put the page anywhere
   * @param {Record<string, string | number | undefined>} [parameters] those that are empty are left out
   * @returns {Promise<any>}
   */
  async get(path, parameters = {}) {
    return (await this.#ask(withQuery(path, parameters), { signal: AbortSignal.timeout(12_000) })).json();
  }

  /**
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async post(path, body = {}) {
    const answer = await this.#ask(path, {
      method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(12_000),
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID?.() ?? String(Math.random()) },
    });
    return answer.status === 204 ? null : answer.json();
  }

  /**
   * Opens the stream of events.
   * @param {string} cursor of the last event that is known
   * @param {AbortSignal} signal
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  async events(cursor, signal) {
    const answer = await this.#ask('v1/events', { signal, headers: { 'Last-Event-ID': cursor } });
    if (!answer.body) throw new Problem('unreachable', 'The device sends no events.', answer.status);
    return answer.body;
  }

  /**
   * Reads a part of a file.
   * @param {string} path
   * @param {Record<string, string | number | undefined>} parameters
   * @param {number} from its first byte
   * @param {number} to the byte after its last; the file may end before
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ bytes: ArrayBuffer, total: number, type: string }>} `total`: bytes of the whole file
   */
  async bytes(path, parameters, from, to, signal) {
    const patience = AbortSignal.timeout(60_000);
    const answer = await this.#ask(withQuery(path, parameters), {
      headers: { Range: `bytes=${from}-${to - 1}` }, signal: signal ? AbortSignal.any([signal, patience]) : patience,
    });
    let bytes;
    try {
      bytes = await answer.arrayBuffer();
    } catch {
      throw new Problem('unreachable', 'The device does not answer.', 0);
    }
    const type = answer.headers.get('Content-Type') ?? '';
    const total = totalBytes(answer.headers.get('Content-Range'));
    // A proxy between may pass over ranges.
    return total === null ? { bytes: bytes.slice(from, to), total: bytes.byteLength, type } : { bytes, total, type };
  }

  /**
   * @param {string} path
   * @param {RequestInit & { headers?: Record<string, string> }} options
   */
  async #ask(path, options) {
    let answer;
    try {
      answer = await fetch(new URL(path, document.baseURI), {
        cache: 'no-store', credentials: 'omit', ...options,
        headers: { ...options.headers, Authorization: `Bearer ${this.#token}` },
      });
    } catch (error) {
      throw new Problem('unreachable', 'The device does not answer.', 0);
    }
    if (answer.ok) return answer;
    const { code = 'failed', detail = `The device answered ${answer.status}.` } = await answer.json().catch(() => ({}));
    throw new Problem(code, detail, answer.status);
  }
}

/**
 * The length of a file by the field `Content-Range`, such as `bytes 0-99/1000`.
 * @param {string | null} field
 * @returns {number | null}
 */
export function totalBytes(field) {
  const found = /^bytes \d+-\d+\/(\d+)$/.exec(field ?? '');
  return found ? Number(found[1]) : null;
}

/**
 * @param {string} path
 * @param {Record<string, string | number | undefined>} parameters
 */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined && value !== '') query.set(name, String(value));
  return query.size === 0 || String(query) === '' ? path : `${path}?${query}`;
}
