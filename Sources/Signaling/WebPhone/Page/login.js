// The REST half of docs/protocol.md: who may come in, and where the WebSocket is.

/**
 * What a user proves to be with.
 * @typedef {{ user: string, password: string } | { mediaToken: string }} Credential
 * @typedef {{ user: string, token: string }} Grant
 * @typedef {{ websocket_url: string, ice_servers: RTCIceServer[], ice_servers_seconds?: number,
 *   keepalive_seconds: number }} Resources
 * @typedef {{ app_key: string, app_secret: string, guests: { user: string, media_token: string }[] }} WebConfiguration
 */

/** The exchange refused a request, or could not be asked. */
export class RestError extends Error {
  /**
   * @param {string} code as in docs/protocol.md, or `unreachable`
   * @param {string} message
   * @param {number} status 0 if there was no answer
   * @param {number} retryAfter seconds, 0 if the exchange did not say
   * @param {boolean} isNobodyThere the exchange has had nothing to do with it
   */
  constructor(code, message, status, retryAfter = 0, isNobodyThere = false) {
    super(message);
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
    this.isNobodyThere = isNobodyThere;
  }

  /** The same request would fail again. */
  get isFinal() {
    return this.status >= 400 && this.status < 429;
  }
}

/**
 * @param {string} path relative to the page, so that a proxy may put the page anywhere
 * @param {RequestInit} [options]
 */
async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(12_000), ...options,
    });
  } catch (error) {
    const isNobodyThere = !(error instanceof DOMException && error.name === 'TimeoutError');
    throw new RestError('unreachable', 'The exchange does not answer.', 0, 0, isNobodyThere);
  }
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const { code = 'internalError', message = `The exchange answered ${response.status}.` } = body.error ?? {};
  throw new RestError(code, message, response.status, Number(response.headers.get('Retry-After')) || 0);
}

/** @returns {Promise<WebConfiguration>} */
export const webConfiguration = () => ask('v1/web-config');

/** @param {string} text */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/**
 * @param {Credential} credential
 * @returns {Promise<Grant>}
 */
export async function logIn(credential) {
  // Asked anew each time: the secret is another after each start of the exchange.
  const app = await webConfiguration();
  const proof = 'mediaToken' in credential
    ? { type: 'Cima', media_token: credential.mediaToken }
    : { type: 'Password', user_id: credential.user, password: credential.password };
  const answer = await ask('v1.1/login', {
    method: 'POST',
    headers: {
      Authorization: `Basic ${base64(`${app.app_key}:${app.app_secret}`)}`,
      'Content-Type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify({ ...proof, access_type: 'offline', scope: 'mappings' }),
  });
  return { user: answer.id, token: answer.token };
}

/**
 * @param {string} token
 * @returns {Promise<Resources>}
 */
export async function resources(token) {
  const found = await ask('v1/connection', { headers: { Authorization: `Bearer ${token}` } });
  return { ...found, websocket_url: secured(found.websocket_url) };
}

/**
 * A page that came encrypted may not open a WebSocket that is not; behind a proxy the exchange cannot know.
 * @param {string} url
 */
function secured(url) {
  const target = new URL(url);
  if (location.protocol === 'https:' && target.protocol === 'ws:' && target.host === location.host) {
    target.protocol = 'wss:';
  }
  return target.href;
}
