// Lets tests import the page's own modules, as the browser gets them.

import { webcrypto } from 'node:crypto';
import { register } from 'node:module';

register('./modules.mjs', import.meta.url);

/** @param {string} name of a file of the page @returns {Promise<any>} */
export const page = (name) => import(new URL(`../../Sources/Signaling/WebConsole/Page/${name}`, import.meta.url).href);

// Node has it from version 19 on, and Debian 12 has 18.
globalThis.crypto ??= /** @type {any} */ (webcrypto);
