/** What an element is made with: properties of the element, and beside them `class`, `data` and handlers. */
export type Properties<Name extends keyof HTMLElementTagNameMap> = Partial<
  Omit<HTMLElementTagNameMap[Name], 'style' | 'dataset' | 'classList' | 'children' | 'attributes'>
> & {
  readonly class?: string;
  readonly data?: Readonly<Record<string, string>>;
  /** Attributes that no property stands for: `aria-…`, `role`, `for`. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly on?: {
    readonly [Event in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Event]) => void;
  };
};

export type Child = Node | string | number | null;

/**
 * Makes an element. Text is text, whatever is in it: nothing here reads markup.
 * @param children null is left out
 */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Properties<Name> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  const { class: className, data, attributes, on, ...rest } = properties;
  if (className !== undefined) element.className = className;
  for (const [key, value] of Object.entries(data ?? {})) element.dataset[key] = value;
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value);
  for (const [event, handle] of Object.entries(on ?? {})) {
    element.addEventListener(event, handle as EventListener);
  }
  Object.assign(element, rest);
  fill(element, children);
  return element;
}

/** Puts children in the place of those that an element has. */
export function fill(element: Element, children: readonly Child[]): void {
  element.replaceChildren(...children.filter((child) => child !== null).map(nodeOf));
}

/** Writes a text where it differs, so that a reader's selection stays. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function nodeOf(child: Node | string | number): Node {
  return child instanceof Node ? child : document.createTextNode(`${child}`);
}
