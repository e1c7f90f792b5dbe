// Hooks for Node's loader: the page's scripts are modules, though no package.json beside them says so, and what they share with the web
// phone has another folder here than on a device.

const sources = new URL('../../Sources/Signaling/', import.meta.url);
const phone = new URL('WebPhone/Page/', sources).href;
const console = new URL('WebConsole/Page/', sources).href;

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, next) {
  const shared = /^\.\.\/phone\/([\w-]+\.js)$/.exec(specifier);
  return shared ? { url: phone + shared[1], shortCircuit: true } : next(specifier, context);
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  return next(url, url.startsWith(phone) || url.startsWith(console) ? { ...context, format: 'module' } : context);
}
