// What the page says, in one place.

/** @typedef {{ title: string, text: string, kind?: 'problem' | 'plain' }} Message */

/**
 * Why nobody can be signed in.
 * @param {any} error
 */
export function signInProblem(error) {
  switch (error.code ?? error.reason) {
    case 'wrongPassword': return 'Wrong name or password.';
    case 'wrongMediaToken': return 'No user has that token.';
    case 'tokenRejected':
    case 'tokenExpired': return 'You were signed out in the meantime. Please sign in again.';
    case 'tooManyRequests': return 'Too many people sign in just now. Try again in a moment.';
    case 'unreachable':
    case 'offline': return 'The exchange does not answer. Check the network, then try again.';
    case 'unavailable': return 'The exchange is restarting. Try again in a moment.';
    default: return error.message || 'Signing in failed.';
  }
}

/**
 * Why there is no microphone.
 * @param {string} code of a `SoundError`
 * @returns {Message}
 */
export function microphoneProblem(code) {
  switch (code) {
    case 'insecure': return {
      title: 'This page is not encrypted',
      text: 'Browsers allow the microphone on encrypted pages only. Open it with https, or on this machine as localhost.',
    };
    case 'refused': return {
      title: 'The microphone is blocked',
      text: 'Allow it for this page in the address bar or in the browser’s settings, then call again.',
    };
    case 'missing': return {
      title: 'There is no microphone',
      text: 'Plug one in, or choose another under Sound, then call again.',
    };
    case 'taken': return {
      title: 'The microphone is in use',
      text: 'Another program uses it. Close that program, then call again.',
    };
    default: return { title: 'The microphone does not start', text: 'Choose another under Sound, then call again.' };
  }
}

/**
 * What to say at the end of a call.
 * @param {import('./calls.js').Ending} ending
 * @param {string} name the other side
 * @param {'outgoing' | 'incoming'} direction
 * @returns {Message}
 */
export function farewell(ending, name, direction) {
  switch (ending.reason) {
    case 'completed': return { title: 'Call ended', text: '' };
    case 'cancelled': return direction === 'outgoing'
      ? { title: 'Call cancelled', text: '' } : { title: 'Missed call', text: `${name} has hung up.` };
    case 'declined': return direction === 'outgoing'
      ? { title: 'Declined', text: `${name} does not take the call.` } : { title: 'Call declined', text: '' };
    case 'busy': return { title: 'Busy', text: `${name} is in another call.` };
    case 'noAnswer': return direction === 'outgoing'
      ? { title: 'No answer', text: `${name} did not answer.` } : { title: 'Missed call', text: '' };
    case 'acceptFailed': return { title: 'Could not answer', text: `${name}’s device could not take the call.` };
    case 'unknownUser': return { title: 'Unknown name', text: `There is no “${name}” here.` };
    case 'noDeviceOnline': return { title: 'Offline', text: `${name} cannot be reached just now.` };
    case 'acceptedElsewhere': return { title: 'Answered elsewhere', text: 'Another of your devices has the call.' };
    case 'declinedElsewhere': return { title: 'Declined elsewhere', text: 'Another of your devices declined.' };
    case 'disconnected': return { title: 'Call ended', text: `${name} has disconnected.` };
    case 'connectionLost': return { title: 'The connection was lost', text: `Nothing comes from ${name} any more.` };
    case 'offline': return { title: 'No connection', text: 'The exchange cannot be reached just now.' };
    case 'noCommonMedia': return {
      title: 'No common codec', text: `${name}’s device and this browser have no codec in common.`,
    };
    case 'microphone': return microphoneProblem(ending.detail ?? '');
    default: return { title: 'The call failed', text: ending.detail ?? '' };
  }
}

/** Text of strangers, which turns nothing around it and ends no quotation. @param {string} text */
const isolated = (text) => `\u2068${text.replace(/["\u2068\u2069«»“”„‟‹›「」『』〝〞〟＂]/g, '’')}\u2069`;

/**
 * Who calls from a telephone network, so that nobody there passes for somebody here.
 * @param {string} caller @param {unknown} name what it calls itself, which nobody has checked
 */
export const outsideLabel = (caller, name) =>
  `Telephone ${isolated(caller)}${typeof name === 'string' ? `, which says it is “${isolated(name)}”` : ''}`;

/** Whether a text is a telephone number, and no name. @param {string} text */
export const isNumber = (text) => /^\+?[0-9]{1,32}$/.test(text);

/** @param {string} reason why an ending is a problem to look at, not just the end of a call */
export const isProblem = (reason) => !['completed', 'cancelled', 'acceptedElsewhere', 'declinedElsewhere'].includes(reason);

/**
 * What stands where a call would be.
 * @param {string} state of the connection to the exchange
 * @returns {Message}
 */
export function restWords(state) {
  switch (state) {
    case 'ready': return {
      title: 'Ready when you are', text: 'Choose a user to call. Calls to you ring here as long as this page is open.',
    };
    case 'replaced': return { title: 'Open elsewhere', text: 'Calls to you ring in another tab.' };
    default: return { title: 'Not connected', text: 'You cannot be called here until the exchange is back.' };
  }
}

/**
 * How the connection to the exchange is.
 * @param {string} state
 */
export function linkWords(state) {
  switch (state) {
    case 'ready': return 'Online';
    case 'connecting': return 'Connecting';
    case 'reconnecting': return 'Reconnecting';
    case 'replaced': return 'Open elsewhere';
    default: return 'Offline';
  }
}
