// What the page says, in one place.

/** @param {any} error why the token, or an action, was refused */
export function problemWords(error) {
  switch (error.code) {
    case 'unauthorized': return 'The device does not know this token.';
    case 'unreachable': return 'The device does not answer. Check the network, then try again.';
    default: return error.message ? capitalized(error.message) : 'The device failed.';
  }
}

/** @param {any} error why a recording cannot be heard or drawn */
export function recordingWords(error) {
  if (error.code === 'no_such_recording') return 'The recording is gone: its file was removed or moved since the call.';
  return typeof error.code === 'string' ? problemWords(error) : 'This browser cannot read the recording.';
}

/** @param {string} text */
const capitalized = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** @param {any} call one that runs */
export function stateWords(call) {
  if (call.held) return 'On hold';
  switch (call.state) {
    case 'calling': return 'Calling';
    case 'ringing': return 'Ringing';
    case 'connecting': return 'Connecting';
    case 'ending': return 'Ending';
    default: return 'Talking';
  }
}

/** Why calls end, and what the page says of that. @type {Record<string, string>} */
export const outcomes = {
  completed: 'Completed', declined: 'Declined', busy: 'Busy', noAnswer: 'No answer', cancelled: 'Cancelled',
  acceptedElsewhere: 'Answered elsewhere', declinedElsewhere: 'Declined elsewhere', dialFailed: 'Set-up failed',
  acceptFailed: 'Answering failed', connectionLost: 'Connection lost', disconnected: 'Left the service',
  internalError: 'Device failed',
};

/** @param {string} reason */
export const outcomeWords = (reason) => outcomes[reason] ?? reason;

/**
 * A number with its unit, or a dash while it is not known.
 * @param {number | null | undefined} value
 * @param {string} unit
 * @param {number} [digits]
 */
export function figure(value, unit, digits = 0) {
  if (value === null || value === undefined) return '–';
  return `${value.toFixed(digits).replace('-', '−')} ${unit}`;
}

/**
 * Two numbers with one unit.
 * @param {number | null} first
 * @param {number | null} second
 * @param {string} unit
 */
export const pair = (first, second, unit) => `${figure(first, '').trim()}, ${figure(second, unit)}`;

/** Seconds with a tenth, from milliseconds. @param {number} milliseconds */
export const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;

/**
 * A time on this machine's clock: today's without its date.
 * @param {number | undefined} milliseconds since 1970
 * @param {Date} [now]
 */
export function moment(milliseconds, now = new Date()) {
  if (milliseconds === undefined) return 'unknown time';
  const time = new Date(milliseconds);
  const isToday = time.toDateString() === now.toDateString();
  return time.toLocaleString(undefined, isToday ? { timeStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' });
}

/** @param {any} data of an event of a call @returns {string | null} null for events that are no line of a call's */
export function eventWords(data) {
  switch (data.event) {
    case 'incoming': return 'Comes in';
    case 'calling': return 'Goes out';
    case 'answered': return 'Answered';
    case 'established': return 'Established';
    case 'media': return 'Media flows both ways';
    case 'digit': return `The other side pressed ${data.key}`;
    case 'play': return data.state === 'started' ? `Plays ${data.path ?? 'a file'}` : 'The file has ended';
    case 'recording': return data.state === 'started' ? `Is recorded to ${data.path ?? 'a file'}` : 'The recording has ended';
    case 'attached': return 'A program takes part';
    case 'detached': return 'The program has left';
    case 'transfer': return `Transfer to ${data.to}: ${data.state}`;
    case 'sending': return data.stopped ? `Sends no more: ${data.stopped}` : 'Sends again';
    case 'ended': return `Ended: ${outcomeWords(data.reason)}`;
    default: return null;
  }
}
