// Measures how well what a page shows now can be seen (WCAG 2.2, 1.4.3 and 1.4.11): an expression that gives a list of
// what cannot. Text needs 4.5:1, large text and the icons of buttons 3:1. Buttons that are disabled are left out, as there.
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  /** Any colour of CSS as red, green, blue from 0 to 255 and alpha from 0 to 1. */
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = ([...top], under, opacity = 1) => {
    const alpha = top[3] * opacity;
    return [0, 1, 2].map((index) => top[index] * alpha + under[index] * (1 - alpha)).concat(1);
  };
  const luminance = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => {
    const part = colour[index] / 255;
    return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  }, 0);
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((first, second) => first - second);
    return (high + 0.05) / (low + 0.05);
  };
  /** What lies behind an element's own content, and how opaque the element is. */
  const ground = (element) => {
    const chain = [];
    for (let each = element; each; each = each.parentElement) chain.unshift(each);
    let colour = [255, 255, 255, 1];
    let opacity = 1;
    for (const each of chain) {
      const style = getComputedStyle(each);
      opacity *= Number(style.opacity);
      colour = over(parse(style.backgroundColor), colour, opacity);
    }
    return { colour, opacity };
  };
  const found = [];
  const name = (element) => [element.closest('[id]')?.id ?? '', element.getAttribute('class') ?? element.tagName.toLowerCase()].join(' ');
  const judge = (what, element, text, behind, needed) => {
    const { colour, opacity } = ground(behind);
    const seen = ratio(over(parse(text), colour, opacity), colour);
    if (seen < needed) found.push(`${what} in ${name(element)}: ${seen.toFixed(2)} of ${needed}`);
  };
  const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
  const isShown = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 1 && height > 1 && element.checkVisibility({ visibilityProperty: true }) && !element.matches(':disabled, :disabled *');
  };
  for (const element of top.querySelectorAll('*')) {
    if (!isShown(element) || element.closest('.face, svg svg, option')) continue;
    const style = getComputedStyle(element);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const needed = isLarge ? 3 : 4.5;
    const words = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (words.length > 0) judge(`“${words[0].data.trim().slice(0, 30)}”`, element, style.color, element, needed);
    if (element.matches('input, select')) {
      judge('what is written', element, style.color, element, needed);
      if (element.placeholder) judge('the placeholder', element, getComputedStyle(element, '::placeholder').color, element, needed);
    }
    if (element.matches('button > svg')) judge('the icon', element, style.stroke !== 'none' ? style.stroke : style.fill, element, 3);
    if (element.matches('.dot')) {
      const shadow = /^(rgb|color|okl)[^)]*\)/.exec(style.boxShadow)?.[0];
      judge('the dot', element.parentElement, parse(style.backgroundColor)[3] > 0 ? style.backgroundColor : shadow, element.parentElement, 3);
    }
    if (element.matches('button, input, select') && style.outlineStyle !== 'none') judge('the focus ring', element, style.outlineColor, element.parentElement, 3);
  }
  return found;
})()
