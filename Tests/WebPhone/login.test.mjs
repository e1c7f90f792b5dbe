// REST: what the page asks for, and what it makes of answers and their absence.

import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { page } from './page.mjs';

const { RestError, logIn, resources, webConfiguration } = await page('login.js');

/** @type {{ url: string, options: any }[]} */
let asked = [];
/** By path, what is answered: a body, or `{ status, headers, body }`, or an error to throw. */
let answers = {};

beforeEach(() => {
  asked = [];
  answers = {};
  globalThis.document = /** @type {any} */ ({ baseURI: 'https://calls.example/phones/' });
  globalThis.location = /** @type {any} */ (new URL('https://calls.example/phones/'));
  globalThis.fetch = /** @type {any} */ (async (url, options) => {
    asked.push({ url: String(url), options });
    const { pathname } = new URL(url);
    const answer = answers[pathname.replace('/phones/', '')];
    if (answer instanceof Error) throw answer;
    const { status = 200, headers = {}, body = answer } = answer ?? { status: 404, body: {} };
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });
  });
});

const app = { app_key: 'key', app_secret: 'sécret', guests: [] };

test('Everything is asked for relative to the page, without cookies and without caches', async () => {
  answers['v1/web-config'] = { body: app };
  assert.deepEqual(await webConfiguration(), app);
  assert.equal(asked[0].url, 'https://calls.example/phones/v1/web-config');
  assert.equal(asked[0].options.credentials, 'omit');
  assert.equal(asked[0].options.cache, 'no-store');
  assert.ok(asked[0].options.signal instanceof AbortSignal);
});

test('A password logs in as the application, and its secret may have any characters', async () => {
  answers['v1/web-config'] = { body: app };
  answers['v1.1/login'] = { body: { id: 'alice', token: 'T', more: 1 } };
  assert.deepEqual(await logIn({ user: 'alice', password: 'pä' }), { user: 'alice', token: 'T' });
  const { options } = asked[1];
  assert.equal(options.method, 'POST');
  assert.equal(Buffer.from(options.headers.Authorization.replace('Basic ', ''), 'base64').toString('utf8'), 'key:sécret');
  assert.deepEqual(JSON.parse(options.body), {
    type: 'Password', user_id: 'alice', password: 'pä', access_type: 'offline', scope: 'mappings',
  });
});

test('A media token logs in by itself', async () => {
  answers['v1/web-config'] = { body: app };
  answers['v1.1/login'] = { body: { id: 'alice', token: 'T' } };
  await logIn({ mediaToken: 'M' });
  assert.deepEqual(JSON.parse(asked[1].options.body), {
    type: 'Cima', media_token: 'M', access_type: 'offline', scope: 'mappings',
  });
});

test('A refusal carries its code, status and message, and those from 400 to 428 are final', async () => {
  for (const [status, isFinal] of [[400, true], [401, true], [421, true], [429, false], [500, false], [503, false]]) {
    answers['v1/web-config'] = { status, body: { error: { code: 'name', message: 'Words.' } } };
    await assert.rejects(webConfiguration(), (error) => {
      assert.ok(error instanceof RestError);
      assert.deepEqual([error.code, error.message, error.status, error.isFinal, error.isNobodyThere],
        ['name', 'Words.', status, isFinal, false]);
      return true;
    });
  }
});

test('Retry-After is kept, and what is no number of seconds is none', async () => {
  for (const [header, seconds] of [['7', 7], ['', 0], ['Wed, 21 Oct 2026 07:28:00 GMT', 0]]) {
    answers['v1/web-config'] = { status: 503, headers: header ? { 'Retry-After': header } : {}, body: {} };
    await assert.rejects(webConfiguration(), (error) => error.retryAfter === seconds);
  }
});

test('An error without a body, as of a proxy, has a code and says the status', async () => {
  answers['v1/web-config'] = { status: 502, body: '<html>Bad gateway' };
  await assert.rejects(webConfiguration(), (error) => error.code === 'internalError' && error.message.includes('502'));
});

test('An exchange that nobody can reach is told from one that does not answer in time', async () => {
  answers['v1/web-config'] = new TypeError('Failed to fetch');
  await assert.rejects(webConfiguration(), (error) => error.code === 'unreachable' && error.isNobodyThere);
  answers['v1/web-config'] = new DOMException('', 'TimeoutError');
  await assert.rejects(webConfiguration(), (error) => error.code === 'unreachable' && !error.isNobodyThere);
});

test('An encrypted page opens an encrypted WebSocket to its own host, and others as they are named', async () => {
  for (const [named, opened] of [
    ['ws://calls.example/v1/ws', 'wss://calls.example/v1/ws'],
    ['wss://calls.example/v1/ws', 'wss://calls.example/v1/ws'],
    ['ws://other.example/v1/ws', 'ws://other.example/v1/ws'],
  ]) {
    answers['v1/connection'] = { body: { websocket_url: named, ice_servers: [], keepalive_seconds: 25 } };
    assert.equal((await resources('T')).websocket_url, opened);
  }
  assert.equal(asked[0].options.headers.Authorization, 'Bearer T');
  globalThis.location = /** @type {any} */ (new URL('http://localhost/'));
  answers['v1/connection'] = { body: { websocket_url: 'ws://localhost/v1/ws' } };
  assert.equal((await resources('T')).websocket_url, 'ws://localhost/v1/ws');
});
