/** One element of DER (X.690): its tag byte, its content and its complete encoding, as slices of the input. */
export type DerElement = { readonly tag: number; readonly content: Buffer; readonly encoded: Buffer };

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

/** The error for bytes that are not DER (X.690 section 10). */
export class DerError extends Error {}

function parseAt(bytes: Buffer, offset: number): DerElement {
  const tag = bytes[offset];
  const lengthByte = bytes[offset + 1];
  // Tag numbers above 30 do not occur in certificates.
  if (tag === undefined || lengthByte === undefined || (tag & 0x1f) === 0x1f) throw new DerError('tag');
  let start = offset + 2;
  let length = lengthByte;
  if (lengthByte >= 0x80) {
    const octets = lengthByte & 0x7f;
    // X.690 section 10.1: definite form, the shortest one
    if (octets === 0 || octets > 3 || start + octets > bytes.length) throw new DerError('length');
    length = bytes.readUIntBE(start, octets);
    if (length < 0x80 || length < 2 ** (8 * (octets - 1))) throw new DerError('length');
    start += octets;
  }
  const end = start + length;
  if (end > bytes.length) throw new DerError('length');
  return { tag, content: bytes.subarray(start, end), encoded: bytes.subarray(offset, end) };
}

/** The single element in `bytes`. @throws DerError for invalid or trailing bytes. */
export function parseElement(bytes: Buffer, tag?: number): DerElement {
  const element = parseAt(bytes, 0);
  if (element.encoded.length !== bytes.length) throw new DerError('trailing bytes');
  if (tag !== undefined && element.tag !== tag) throw new DerError('unexpected tag');
  return element;
}

/** The consecutive elements in `content`. @throws DerError, also for more than `max`. */
export function parseElements(content: Buffer, max = Number.POSITIVE_INFINITY): DerElement[] {
  const elements: DerElement[] = [];
  for (let offset = 0; offset < content.length; ) {
    if (elements.length === max) throw new DerError('too many elements');
    const element = parseAt(content, offset);
    elements.push(element);
    offset += element.encoded.length;
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
