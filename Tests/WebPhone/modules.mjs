// Hooks for Node's loader: the page's scripts are modules, though no package.json beside them says so.

const page = new URL('../../Sources/Signaling/WebPhone/Page/', import.meta.url).href;

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  return next(url, url.startsWith(page) ? { ...context, format: 'module' } : context);
}
