/*
 * Reads the expiry of a signed URL from its query. AWS, Google and Volcengine sign from a date for a number of seconds
 * (`X-Amz-Date`, `X-Amz-Expires` and the like). Older signatures and those of most CDNs have the Unix second (`Expires`),
 * Azure has a date (`se`), and Tencent has start and end (`q-sign-time`).
 */

const lasting = /^x-([a-z]+)-expires$/;
const compactDate = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;
const unixNames: ReadonlySet<string> = new Set(['expires', 'expire', 'x-expires']);
const unixSeconds = /^\d{10}$/;
const isoDate = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const signedBetween = /^\d{10};(\d{10})$/;

/** @returns the expiry in Unix milliseconds; null for a URL without one, or an invalid URL */
export function expiryOf(url: string): number | null {
  if (!URL.canParse(url)) return null;
  const said = [...new URL(url).searchParams].map(([name, value]) => [name.toLowerCase(), value] as const);
  const query = new Map(said);
  let earliest: number | null = null;
  for (const [name, value] of said) {
    const at = expiryIn(name, value, query);
    if (at !== null && (earliest === null || at < earliest)) earliest = at;
  }
  return earliest;
}

function expiryIn(name: string, value: string, query: ReadonlyMap<string, string>): number | null {
  const vendor = lasting.exec(name)?.[1];
  if (vendor !== undefined) {
    const from = compactTime(query.get(`x-${vendor}-date`) ?? '');
    return from === null || !/^\d{1,8}$/.test(value) ? null : from + Number(value) * 1000;
  }
  if (unixNames.has(name)) return unixSeconds.test(value) ? Number(value) * 1000 : null;
  if (name === 'se') return isoDate.test(value) ? timeOf(value) : null;
  const until = name === 'q-sign-time' ? signedBetween.exec(value)?.[1] : undefined;
  return until === undefined ? null : Number(until) * 1000;
}

function compactTime(text: string): number | null {
  return compactDate.test(text) ? timeOf(text.replace(compactDate, '$1-$2-$3T$4:$5:$6Z')) : null;
}

function timeOf(text: string): number | null {
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}
