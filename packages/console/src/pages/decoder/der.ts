/** An element of DER (X.690), with what is in it where it is constructed. */
export type Element = { readonly tag: number; readonly value: Uint8Array };

/** @throws Error where the bytes are no row of elements. */
export function elements(bytes: Uint8Array): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag, first] = [bytes[at], bytes[at + 1]];
    if (tag === undefined || first === undefined || (tag & 31) === 31) throw new Error('this is no DER');
    at += 2;
    let length = first;
    if (first >= 0x80) {
      const count = first & 0x7f;
      if (count === 0 || count > 3) throw new Error('this is no DER');
      length = 0;
      for (let read = 0; read < count; read++) length = length * 256 + (bytes[at++] ?? 0);
    }
    if (at + length > bytes.length) throw new Error('it ends too early');
    found.push({ tag, value: bytes.subarray(at, at + length) });
    at += length;
  }
  return found;
}

export function oidOf(bytes: Uint8Array): string {
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of bytes) {
    arc = arc * 128 + (byte & 0x7f);
    if (byte < 0x80) {
      arcs.push(arc);
      arc = 0;
    }
  }
  const [first = 0, ...rest] = arcs;
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - root * 40, ...rest].join('.');
}

/** `UTCTime` (RFC 5280: 50 and above is of the last century) or `GeneralizedTime`. */
export function timeOf({ tag, value }: Element): Date {
  const text = String.fromCharCode(...value);
  const full = tag === 0x17 ? `${Number(text.slice(0, 2)) >= 50 ? 19 : 20}${text}` : text;
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full);
  if (match === null) throw new Error('a time that no certificate has');
  const [, year, month, day, hour, minute, second] = match;
  return new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}
