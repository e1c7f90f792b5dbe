// Small plots of the last minute.

/**
 * @typedef {{ lines: string[], bottom: number, top: number, grows?: boolean, isBar?: boolean }} PlotOptions
 *   `lines`: names of the CSS properties that hold the colours; `grows`: the top rises with what is shown
 */

export class Plot {
  /** @type {(number | null)[][]} */
  #values;
  #canvas;
  #options;
  #capacity = 120;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {PlotOptions} options
   */
  constructor(canvas, options) {
    this.#canvas = canvas;
    this.#options = options;
    this.#values = options.lines.map(() => []);
    new ResizeObserver(() => this.#draw()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
  }

  /** @param {...(number | null)} values one for each line */
  push(...values) {
    values.forEach((value, line) => {
      this.#values[line].push(value);
      if (this.#values[line].length > this.#capacity) this.#values[line].shift();
    });
    this.#draw();
  }

  /**
   * @param {(number | null)[][]} lines all values, in place of those that are shown
   * @param {number} capacity values of a line from now on
   */
  fill(lines, capacity) {
    this.#capacity = capacity;
    this.#values = lines.map((values) => values.slice(-capacity));
    this.#draw();
  }

  clear() {
    this.#values = this.#values.map(() => []);
    this.#draw();
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const context = this.#canvas.getContext('2d');
    if (!context || width === 0) return;
    const scale = devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale)) this.#canvas.width = Math.round(width * scale);
    if (this.#canvas.height !== Math.round(height * scale)) this.#canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);

    const style = getComputedStyle(this.#canvas);
    const { bottom, lines, isBar } = this.#options;
    const top = this.#top();
    const x = (/** @type {number} */ index, /** @type {number} */ count) =>
      width - 1 - ((count - 1 - index) * (width - 2)) / (this.#capacity - 1);
    const y = (/** @type {number} */ value) =>
      height - 1.5 - (Math.min(Math.max(value, bottom), top) - bottom) / (top - bottom) * (height - 4);

    context.strokeStyle = style.getPropertyValue('--line');
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, height - 0.5);
    context.lineTo(width, height - 0.5);
    context.stroke();
    lines.forEach((name, line) => {
      const colour = style.getPropertyValue(name).trim();
      const points = this.#values[line].map((value, index, all) =>
        value === null ? null : { x: x(index, all.length), y: y(value) });
      if (isBar) this.#bars(context, points, colour, height, width / this.#capacity);
      else this.#line(context, points, colour, height, lines.length === 1);
    });
  }

  #top() {
    const { top, grows } = this.#options;
    if (!grows) return top;
    const highest = Math.max(0, ...this.#values.flat().map((value) => value ?? 0)) * 1.15;
    return highest <= top ? top : niceCeiling(highest);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {({ x: number, y: number } | null)[]} points
   * @param {string} colour
   * @param {number} height
   * @param {boolean} fills
   */
  #line(context, points, colour, height, fills) {
    for (const part of runs(points)) {
      context.beginPath();
      part.forEach((point, index) => (index ? context.lineTo(point.x, point.y) : context.moveTo(point.x, point.y)));
      context.strokeStyle = colour;
      context.lineWidth = 1.75;
      context.lineJoin = 'round';
      context.lineCap = 'round';
      context.stroke();
      if (!fills || part.length < 2) continue;
      context.lineTo(part[part.length - 1].x, height - 1);
      context.lineTo(part[0].x, height - 1);
      context.closePath();
      context.globalAlpha = 0.12;
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = 1;
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {({ x: number, y: number } | null)[]} points
   * @param {string} colour
   * @param {number} height
   * @param {number} step
   */
  #bars(context, points, colour, height, step) {
    context.fillStyle = colour;
    for (const point of points) {
      if (point && point.y < height - 2) context.fillRect(point.x - step / 2, point.y, Math.max(1.5, step - 0.5), height - point.y);
    }
  }
}

/**
 * Parts without gaps.
 * @template T
 * @param {(T | null)[]} points
 * @returns {T[][]}
 */
function runs(points) {
  /** @type {T[][]} */
  const found = [];
  let isOpen = false;
  for (const point of points) {
    if (point === null) {
      isOpen = false;
    } else {
      if (!isOpen) found.push([]);
      found[found.length - 1].push(point);
      isOpen = true;
    }
  }
  return found;
}

/**
 * The next of 1, 2, 5, 10, 20, …
 * @param {number} value
 */
export function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? 10 * power;
}
