/**
 * Puts elements into a parent in an order, and takes away what else is in it. Those that are in their place already are
 * not touched, and the focus stays with an element that has to move.
 */
export function placeAll(parent: Element, elements: readonly Element[]): void {
  const focused = document.activeElement;
  const wanted = new Set(elements);
  for (const each of [...parent.children]) if (!wanted.has(each)) each.remove();
  let at = parent.firstElementChild;
  for (const element of elements) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  const isLost = focused !== document.activeElement && parent.contains(focused);
  if (isLost && focused instanceof HTMLElement) focused.focus();
}
