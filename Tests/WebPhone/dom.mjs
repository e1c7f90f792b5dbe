// As much of a page's elements as the phone's modules use: a tree, attributes, focus and clicks.

/** What of CSS selectors is understood: `tag`, `[name="value"]`, `[name]`, and one after another for descendants. */
function matches(element, part) {
  const [, tag, rest] = /^([a-z]*)(.*)$/.exec(part) ?? [];
  if (tag && element.tagName !== tag) return false;
  return [...rest.matchAll(/\[([\w-]+)(?:="((?:[^"\\]|\\.)*)")?\]/g)].every(([, name, value]) =>
    element.attributes.has(name) && (value === undefined || element.attributes.get(name) === value.replace(/\\(.)/g, '$1')));
}

export class Element extends EventTarget {
  attributes = new Map();
  children = [];
  parent = null;
  hidden = false;
  disabled = false;
  value = '';
  style = { values: {}, setProperty: (name, value) => { this.style.values[name] = value; } };
  #text = '';

  constructor(tagName) {
    super();
    this.tagName = tagName;
  }

  setAttribute(name, value) { this.attributes.set(name, value); }
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  get textContent() { return this.#text + this.children.map((child) => child.textContent ?? child).join(''); }
  set textContent(text) {
    this.written = (this.written ?? 0) + 1;
    this.children = [];
    this.#text = text;
  }
  append(...children) {
    for (const child of children) if (child instanceof Element) child.parent = this;
    this.children.push(...children);
  }
  replaceChildren(...children) {
    for (const child of this.children) {
      child.parent = null;
      if (child.contains?.(document.activeElement)) document.activeElement = document.body;
    }
    this.children = [];
    this.append(...children);
  }
  get all() { return this.children.filter((child) => child instanceof Element).flatMap((child) => [child, ...child.all]); }
  contains(other) { return this === other || this.all.includes(other); }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
  querySelectorAll(selector) {
    return selector.match(/(?:"(?:[^"\\]|\\.)*"|\S)+/g).reduce((found, part) =>
      found.flatMap((element) => element.all.filter((inner) => matches(inner, part))), [this]);
  }
  closest(selector) {
    for (let element = this; element; element = element.parent) if (matches(element, selector)) return element;
    return null;
  }
  focus() { if (!this.disabled && !this.attributes.has('disabled')) document.activeElement = this; }
  click() { if (!this.disabled && !this.attributes.has('disabled')) this.dispatchEvent(new Event('click')); }
}

/** Makes a page with elements of these ids, in each other or not: `{ id: { id: {} } }`. */
export function install(tree) {
  const body = new Element('body');
  const build = (parent, inner) => {
    for (const [id, more] of Object.entries(inner)) {
      const element = new Element('div');
      element.setAttribute('id', id);
      parent.append(element);
      build(element, more);
    }
  };
  build(body, tree);
  globalThis.document = /** @type {any} */ ({
    body,
    activeElement: body,
    getElementById: (id) => body.querySelector(`[id="${id}"]`),
    createElement: (tag) => new Element(tag),
  });
  globalThis.CSS = /** @type {any} */ ({ escape: (text) => text.replace(/["\\]/g, '\\$&') });
  globalThis.matchMedia = /** @type {any} */ (() => ({ matches: true, addEventListener() {} }));
  return body;
}
