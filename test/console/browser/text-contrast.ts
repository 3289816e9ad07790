import type { Page } from 'playwright-core';

/** As much of the browser as is looked at in it: the types of a page are not those of these tests. */
interface Style {
  readonly color: string;
  readonly backgroundColor: string;
  readonly opacity: string;
  readonly fontSize: string;
  readonly fontWeight: string;
}
interface Canvas {
  getContext(
    kind: '2d',
    settings: { willReadFrequently: boolean },
  ): {
    fillStyle: string;
    clearRect(x: number, y: number, width: number, height: number): void;
    fillRect(x: number, y: number, width: number, height: number): void;
    getImageData(x: number, y: number, width: number, height: number): { readonly data: Iterable<number> };
  };
}
interface PageNode {
  readonly nodeType: number;
  readonly textContent: string | null;
}
interface PageElement {
  readonly tagName: string;
  readonly className: string;
  readonly parentElement: PageElement | null;
  readonly childNodes: Iterable<PageNode>;
  readonly ownerDocument: {
    readonly defaultView: { getComputedStyle(element: PageElement): Style };
    createElement(name: 'canvas'): Canvas;
  };
  querySelectorAll(selector: string): Iterable<PageElement>;
  checkVisibility(options: {
    readonly opacityProperty: boolean;
    readonly visibilityProperty: boolean;
  }): boolean;
  matches(selector: string): boolean;
}

/**
 * Finds texts in sight whose contrast with what is behind them is less than WCAG 2.2 asks for at level AA. Backgrounds
 * are those of the elements around them; controls that are disabled are left out, as they are there.
 * @returns each with its contrast
 */
export function faintTexts(page: Page): Promise<readonly string[]> {
  return page.locator('body').evaluate(findFaint);
}

/** Runs in the browser: nothing of this module is there. */
function findFaint(body: PageElement): string[] {
  const { defaultView, createElement } = body.ownerDocument;
  const context = createElement
    .call(body.ownerDocument, 'canvas')
    .getContext('2d', { willReadFrequently: true });
  /** Any colour that CSS knows, as red, green, blue and how opaque it is, each up to 255. */
  const read = (colour: string): readonly number[] => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const over = (above: readonly number[], below: readonly number[]): readonly number[] => {
    const share = (above[3] ?? 0) / 255;
    return [0, 1, 2].map((at) => (above[at] ?? 0) * share + (below[at] ?? 0) * (1 - share)).concat(255);
  };
  const behind = (element: PageElement | null): readonly number[] => {
    if (element === null) return [255, 255, 255, 255];
    const own = read(defaultView.getComputedStyle(element).backgroundColor);
    return own[3] === 255 ? own : over(own, behind(element.parentElement));
  };
  const luminance = (colour: readonly number[]): number =>
    [0.2126, 0.7152, 0.0722].reduce((sum, weight, at) => {
      const part = (colour[at] ?? 0) / 255;
      return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    }, 0);

  const found: string[] = [];
  for (const element of body.querySelectorAll('*')) {
    const text = [...element.childNodes]
      .filter(({ nodeType }) => nodeType === 3)
      .map(({ textContent }) => textContent ?? '')
      .join('')
      .trim();
    if (text === '' || element.matches(':disabled, :disabled *, option, noscript, .visually-hidden'))
      continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = defaultView.getComputedStyle(element);
    const ground = behind(element);
    const [light, dark] = [luminance(over(read(style.color), ground)), luminance(ground)].sort(
      (a, b) => b - a,
    );
    const contrast = ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05);
    const px = Number.parseFloat(style.fontSize);
    const isLarge = px >= 24 || (px >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast >= (isLarge ? 3 : 4.5)) continue;
    found.push(
      `${contrast.toFixed(2)} ${element.tagName.toLowerCase()}.${element.className}: ${text.slice(0, 40)}`,
    );
  }
  return found;
}
