/** One element of DER (X.690): its tag byte, its content and its whole encoding, as slices of the input. */
export type DerElement = { readonly tag: number; readonly content: Buffer; readonly whole: Buffer };

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Bytes that are not DER as X.690 section 10 demands it. */
export class DerError extends Error {}

function parseAt(bytes: Buffer, at: number): DerElement {
  const tag = bytes[at];
  const first = bytes[at + 1];
  // Tag numbers above 30 do not occur in certificates.
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) throw new DerError('tag');
  let start = at + 2;
  let length = first;
  if (first >= 0x80) {
    const octets = first & 0x7f;
    // X.690 section 10.1: definite form, as short as possible
    if (octets === 0 || octets > 3 || start + octets > bytes.length) throw new DerError('length');
    length = bytes.readUIntBE(start, octets);
    if (length < 0x80 || length < 2 ** (8 * (octets - 1))) throw new DerError('length');
    start += octets;
  }
  const end = start + length;
  if (end > bytes.length) throw new DerError('length');
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) };
}

/** The one element that `bytes` is. @throws DerError for anything else, also for bytes that follow it. */
export function parseElement(bytes: Buffer, tag?: number): DerElement {
  const element = parseAt(bytes, 0);
  if (element.whole.length !== bytes.length) throw new DerError('trailing bytes');
  if (tag !== undefined && element.tag !== tag) throw new DerError('unexpected tag');
  return element;
}

/** The elements that stand one after the other in `content`. @throws DerError, also for more than `max`. */
export function parseElements(content: Buffer, max = Number.POSITIVE_INFINITY): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < content.length; ) {
    if (elements.length === max) throw new DerError('too many elements');
    const element = parseAt(content, at);
    elements.push(element);
    at += element.whole.length;
  }
  return elements;
}

/** Elements of a SEQUENCE. @throws DerError, also for more than `max`. */
export function parseSequence(bytes: Buffer, max?: number): DerElement[] {
  return parseElements(parseElement(bytes, TAG.sequence).content, max);
}

/** Dotted form of an object identifier's content. @throws DerError */
export function parseOid(content: Buffer): string {
  const arcs: number[] = [];
  let arc = 0;
  for (const [index, byte] of content.entries()) {
    arc = arc * 128 + (byte & 0x7f);
    if (arc > Number.MAX_SAFE_INTEGER) throw new DerError('object identifier');
    if (byte >= 0x80) {
      if (index === content.length - 1) throw new DerError('object identifier');
      continue;
    }
    if (arcs.length === 0) arcs.push(Math.min(Math.floor(arc / 40), 2), arc - 40 * Math.min(Math.floor(arc / 40), 2));
    else arcs.push(arc);
    arc = 0;
  }
  if (arcs.length === 0) throw new DerError('object identifier');
  return arcs.join('.');
}
