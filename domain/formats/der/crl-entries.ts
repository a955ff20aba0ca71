import { DerError, parseElements, parseOid, parseSequence, TAG } from './reader.ts';
import { parseTime } from './time.ts';

/** Exceeds the lists of any issuer of credentials; each entry is visited once. */
const MAX_ENTRIES = 100_000;
/** Limit of a single entry. */
const MAX_EXTENSIONS = 10;
const REASON_CODE = '2.5.29.21';
/** RFC 5280 section 5.3.1 */
const REASONS = [
  'unspecified',
  'keyCompromise',
  'cACompromise',
  'affiliationChanged',
  'superseded',
  'cessationOfOperation',
  'certificateHold',
  undefined,
  'removeFromCRL',
  'privilegeWithdrawn',
  'aACompromise',
] as const;

/** A certificate on the list is revoked, even if the time or the reason is invalid. */
export type RevokedEntry = { readonly since?: Date; readonly reason: string };

/**
 * The revoked certificates of a list in their encoded form: a list may have a hundred thousand entries and one is searched, so no other
 * entry is parsed.
 */
export class RevokedEntries {
  readonly #bytes: Buffer;
  readonly count: number;

  /**
   * @param bytes content of `revokedCertificates` (RFC 5280 section 5.1.2.6).
   * @throws DerError for an invalid or too long list, and for an entry with a critical extension other than its reason: such an entry may
   * be about a certificate of another issuer.
   */
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.count = visitEntries(bytes);
  }

  /** @param serial content of the INTEGER. */
  find(serial: Buffer): RevokedEntry | undefined {
    const encodedSerial = Buffer.concat([Buffer.from([TAG.integer, serial.length]), serial]);
    // The byte search is fast; only a hit is compared with the positions of serial numbers.
    const firstMatch = this.#bytes.indexOf(encodedSerial);
    if (firstMatch < 0) return undefined;
    let entry: RevokedEntry | undefined;
    visitEntries(this.#bytes, (start, end, serialOffset) => {
      if (serialOffset < firstMatch || entry !== undefined || this.#bytes[serialOffset + 1] !== serial.length) return;
      if (this.#bytes.compare(encodedSerial, 0, encodedSerial.length, serialOffset, serialOffset + encodedSerial.length) !== 0) return;
      entry = parseEntry(this.#bytes.subarray(start, end));
    });
    return entry;
  }
}

/** @param visit receives the offsets of an entry's start, its end, and its serial number. @returns the number of entries. */
function visitEntries(bytes: Buffer, visit?: (start: number, end: number, serial: number) => void): number {
  let count = 0;
  for (let offset = 0; offset < bytes.length; ) {
    if (++count > MAX_ENTRIES) throw new DerError('too many entries');
    if (bytes[offset] !== TAG.sequence) throw new DerError('entry');
    const serial = contentAt(bytes, offset, bytes.length);
    const end = serial + lengthAt(bytes, offset);
    const time = assertSerial(bytes, serial, end);
    const extensions = contentAt(bytes, time, end) + lengthAt(bytes, time);
    if (extensions < end) assertExtensions(bytes.subarray(extensions, end));
    visit?.(offset, end, serial);
    offset = end;
  }
  return count;
}

/** @returns the offset of its end. X.690 section 8.3.2: the shortest form, so that each number has one encoding. */
function assertSerial(bytes: Buffer, offset: number, limit: number): number {
  const content = contentAt(bytes, offset, limit);
  const length = lengthAt(bytes, offset);
  const [firstByte = 0, secondByte = 0] = [bytes[content], bytes[content + 1]];
  const isPadded = length > 1 && ((firstByte === 0 && secondByte < 0x80) || (firstByte === 0xff && secondByte >= 0x80));
  // RFC 5280 section 4.1.2.2 allows at most 20 octets; one length byte suffices for longer ones in use.
  if (bytes[offset] !== TAG.integer || length === 0 || length >= 0x80 || isPadded) throw new DerError('serial');
  return content + length;
}

function assertExtensions(field: Buffer): void {
  for (const { content } of parseSequence(field, MAX_EXTENSIONS)) {
    const [oid, critical] = parseElements(content, MAX_EXTENSIONS);
    if (critical?.tag !== TAG.boolean || critical.content[0] === 0) continue;
    if (oid === undefined || parseOid(oid.content) !== REASON_CODE) throw new DerError('critical entry extension');
  }
}

function parseEntry(entry: Buffer): RevokedEntry {
  try {
    const [, time, extensions] = parseSequence(entry);
    return { ...(time && { since: parseTime(time) }), reason: reasonOf(extensions?.encoded) };
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return { reason: 'unspecified' };
  }
}

function reasonOf(extensions: Buffer | undefined): string {
  for (const { content } of extensions === undefined ? [] : parseSequence(extensions)) {
    const parts = parseElements(content);
    if (parseOid(parts[0]?.content ?? Buffer.alloc(0)) !== REASON_CODE) continue;
    return REASONS[parts.at(-1)?.content.at(-1) ?? 0] ?? 'unspecified';
  }
  return 'unspecified';
}

/** Offset of the element's content, which ends before `limit`. */
function contentAt(bytes: Buffer, offset: number, limit: number): number {
  const start = offset + 2 + octetsAt(bytes, offset);
  if (start + lengthAt(bytes, offset) > limit) throw new DerError('length');
  return start;
}

/** Number of further length bytes after the first. X.690 section 10.1: definite form */
function octetsAt(bytes: Buffer, offset: number): number {
  const firstByte = bytes[offset + 1];
  if (firstByte === undefined || firstByte === 0x80 || firstByte > 0x83) throw new DerError('length');
  return firstByte < 0x80 ? 0 : firstByte & 0x7f;
}

function lengthAt(bytes: Buffer, offset: number): number {
  const octets = octetsAt(bytes, offset);
  if (octets === 0) return bytes[offset + 1] ?? 0;
  if (offset + 2 + octets > bytes.length) throw new DerError('length');
  const length = bytes.readUIntBE(offset + 2, octets);
  // X.690 section 10.1: the shortest form
  if (length < 0x80 || length < 2 ** (8 * (octets - 1))) throw new DerError('length');
  return length;
}
