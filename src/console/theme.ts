import { signal } from '@preact/signals';

/** `auto` follows the operating system. */
export type Theme = 'auto' | 'light' | 'dark';

const storedName = 'theme';

/** Changes whenever the colours have changed, by the reader or by the system. */
export const colours = signal(0);

/** The theme saved in this browser. */
export function savedTheme(): Theme {
  const saved = localStorage.getItem(storedName);
  return saved === 'light' || saved === 'dark' ? saved : 'auto';
}

/** Applies and saves a theme. */
export function chooseTheme(theme: Theme): void {
  if (theme === 'auto') localStorage.removeItem(storedName);
  else localStorage.setItem(storedName, theme);
  applyTheme(theme);
}

/** Applies the saved theme, and follows the system from now on. Called once. */
export function startTheme(): void {
  applyTheme(savedTheme());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tellChange);
}

function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === 'auto') delete dataset.theme;
  else dataset.theme = theme;
  tellChange();
}

function tellChange(): void {
  colours.value++;
}
