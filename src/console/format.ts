/** Shown in place of an unknown value. */
export const nothing = '–';

const units = ['', 'k', 'M', 'G', 'T'];

/** A count in short form: `950`, `12.3k`, `4.56M`. */
export function count(value: number): string {
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= (unit === 0 ? 9999.5 : 999.5) && unit < units.length - 1) {
    rest /= 1000;
    unit++;
  }
  return `${unit === 0 ? round(rest, rest < 10 ? 2 : rest < 100 ? 1 : 0) : precise(rest)}${units[unit]}`;
}

/** A count with all its digits, in groups of three. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** A number per second. */
export function rate(value: number): string {
  return `${count(value)}/s`;
}

/** A duration in seconds, in a suitable unit: `340 µs`, `12.5 ms`, `2.41 s`. */
export function duration(seconds: number | null): string {
  if (seconds === null) return nothing;
  if (seconds < 0.001) return `${precise(seconds * 1e6)} µs`;
  if (seconds < 1) return `${precise(seconds * 1000)} ms`;
  if (seconds < 120) return `${precise(seconds)} s`;
  return span(seconds * 1000);
}

/** A long time in milliseconds: `4 min`, `3 h 12 min`, `5 d 2 h`. */
export function span(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `${Math.max(0, Math.floor(ms / 1000))} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${Math.floor(hours / 24)} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The age of a time. @param now Unix milliseconds, like `at` */
export function ago(at: number, now: number = Date.now()): string {
  return now - at < 1000 ? 'now' : `${span(now - at)} ago`;
}

/** US dollars with two decimals, or more for small amounts. */
export function dollars(value: number): string {
  if (value === 0) return '$0';
  const digits = Math.abs(value) >= 0.1 ? 2 : Math.abs(value) >= 0.001 ? 4 : 6;
  return `$${value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** Bytes in binary units. */
export function bytes(value: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let rest = value;
  while (rest >= 1023.5 && unit < names.length - 1) {
    rest /= 1024;
    unit++;
  }
  return `${unit === 0 ? rest : precise(rest)} ${names[unit]}`;
}

/** A fraction from 0 to 1 as a percentage. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value === 0 || value >= 10 ? Math.round(value) : precise(value)}%`;
}

/** A time in the reader's time zone: the time of day, with the date if it is not today. */
export function moment(at: number, now: number = Date.now()): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now).toDateString();
  const time = date.toLocaleTimeString('en-GB');
  return isToday ? time : `${date.toLocaleDateString('en-CA')} ${time}`;
}

/** Three significant digits. */
function precise(value: number): string {
  return round(value, Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2);
}

function round(value: number, digits: number): string {
  return `${Number(value.toFixed(digits))}`;
}
