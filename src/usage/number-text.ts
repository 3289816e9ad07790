const comma = 44;
const zero = 48;
/** More than any number takes, with its comma. */
const longestNumber = 32;

/** Where numbers are written before they are a text; kept, since it is used by one text at a time. */
let bytes = Buffer.alloc(0);

/**
 * Numbers as the elements of a JSON array, without its brackets; what is no number is `null`. Whole numbers below 2^31
 * are written here: it takes half the time of an array of them and `JSON.stringify`, which is another one when it holds
 * a single fraction, and then takes twice as long.
 * @param count how many of the numbers
 */
export function writeNumbers(numbers: Float64Array, count: number): string {
  if (count === 0) return '';
  if (bytes.length < count * longestNumber) bytes = Buffer.allocUnsafeSlow(count * longestNumber);
  const target = bytes;
  let end = 0;
  for (let index = 0; index < count; index++) {
    const value = numbers[index] as number;
    let rest = value | 0;
    if (rest !== value || rest < 0) {
      end += target.write(Number.isFinite(value) ? `${value}` : 'null', end, 'latin1');
    } else if (rest < 10) {
      target[end++] = zero + rest;
    } else {
      const start = end;
      end += digitsOf(rest);
      for (let at = end - 1; at >= start; at--) {
        const tenth = (rest / 10) | 0;
        target[at] = zero + rest - tenth * 10;
        rest = tenth;
      }
    }
    target[end++] = comma;
  }
  return target.toString('latin1', 0, end - 1);
}

function digitsOf(whole: number): number {
  if (whole < 10_000) return whole < 100 ? 2 : whole < 1000 ? 3 : 4;
  if (whole < 1_000_000) return whole < 100_000 ? 5 : 6;
  if (whole < 100_000_000) return whole < 10_000_000 ? 7 : 8;
  return whole < 1_000_000_000 ? 9 : 10;
}
