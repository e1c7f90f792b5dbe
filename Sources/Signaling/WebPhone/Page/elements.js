// Small helpers for the page's elements. Text is only ever set as text, never as markup.

/**
 * The element with this id.
 * @param {string} id
 * @returns {any}
 */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * Makes an element.
 * @param {string} tag
 * @param {Record<string, string | boolean | EventListener>} [properties] `class`, attributes, and `onclick` and the like
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/**
 * Changes text only where it is another, so that nothing is read out twice.
 * @param {HTMLElement} target
 * @param {string} text
 */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * One or two letters that stand for a name.
 * @param {string} name
 */
export function initials(name) {
  const words = name.split('@')[0].split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const letters = words.length > 1 ? words[0][0] + words[words.length - 1][0] : (words[0] ?? name).slice(0, 1);
  return letters.toUpperCase() || '?';
}

/**
 * Gives an element the colour and the letters that belong to a name.
 * @param {HTMLElement} face
 * @param {string} name
 */
export function paintFace(face, name) {
  let hue = 7;
  for (const character of name) hue = (hue * 31 + (character.codePointAt(0) ?? 0)) % 360;
  face.style.setProperty('--hue', String(hue));
  say(face.querySelector('span') ?? face, initials(name));
}

/**
 * Minutes and seconds, and hours once there are any.
 * @param {number} milliseconds
 */
export function clock(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60].map((part) => String(part).padStart(2, '0'));
  const hours = Math.floor(seconds / 3600);
  return hours > 0 ? `${hours}:${parts[0]}:${parts[1]}` : `${Number(parts[0])}:${parts[1]}`;
}
