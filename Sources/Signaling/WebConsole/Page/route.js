// What the page shows, as the part of its address after `#`: a link shows a colleague the same.

/**
 * @typedef {{ view: 'calls', call?: number } |
 *   { view: 'history', search?: string, outcome?: string, from?: string, to?: string } |
 *   { view: 'record', record: string, at?: number }} Route
 */

/**
 * @param {string} hash
 * @returns {Route}
 */
export function read(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [first, second] = path.split('/');
  const given = new URLSearchParams(query);
  if (first === 'history' && second && /^[\w-]{1,64}$/.test(second)) return record(second, given.get('at'));
  if (first === 'history') return { view: 'history', ...filters(given) };
  const call = /^[1-9]\d{0,15}$/.test(second ?? '') ? Number(second) : undefined;
  return call === undefined ? { view: 'calls' } : { view: 'calls', call };
}

/**
 * @param {Route} route
 * @returns {string}
 */
export function write(route) {
  if (route.view === 'calls') return route.call === undefined ? '#/calls' : `#/calls/${route.call}`;
  if (route.view === 'record') return `#/history/${route.record}${route.at === undefined ? '' : `?at=${route.at.toFixed(1)}`}`;
  const query = new URLSearchParams();
  for (const name of filterNames) if (route[name]) query.set(name, route[name]);
  return `#/history${String(query) ? `?${query}` : ''}`;
}

const filterNames = /** @type {const} */ (['search', 'outcome', 'from', 'to']);

/** @param {URLSearchParams} given */
function filters(given) {
  /** @type {Record<string, string>} */
  const found = {};
  for (const name of filterNames) if (given.get(name)) found[name] = String(given.get(name)).slice(0, 200);
  return found;
}

/**
 * @param {string} name
 * @param {string | null} at
 * @returns {Route}
 */
function record(name, at) {
  const time = at === null ? NaN : Number(at);
  return Number.isFinite(time) && time >= 0 ? { view: 'record', record: name, at: time } : { view: 'record', record: name };
}
