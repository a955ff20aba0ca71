import { DerError, parseElements, parseOid, parseSequence, TAG } from './reader.ts';
import { parseTime } from './time.ts';

/** More than any list of a signer of credentials has; each is looked at once. */
const MAX_ENTRIES = 100_000;
/** Of one entry. */
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

/** Who stands on the list is revoked, also where the time or the reason cannot be read. */
export type RevokedEntry = { readonly since?: Date; readonly reason: string };

/**
 * The revoked certificates of a list, as the bytes that they came in: a list has up to a hundred thousand, of which
 * one is looked for, so no object is made of any other.
 */
export class RevokedEntries {
  readonly #bytes: Buffer;
  readonly count: number;

  /**
   * @param bytes content of `revokedCertificates` (RFC 5280 section 5.1.2.6).
   * @throws DerError for what is no such list, one that is too long, and an entry with a critical extension other than its
   *   reason: such an entry may be about a certificate of another issuer.
   */
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.count = walk(bytes);
  }

  /** @param serial content of the INTEGER. */
  find(serial: Buffer): RevokedEntry | undefined {
    const wanted = Buffer.concat([Buffer.from([TAG.integer, serial.length]), serial]);
    // Found among the bytes first, which is fast; whether it stands where serial numbers do only then.
    const first = this.#bytes.indexOf(wanted);
    if (first < 0) return undefined;
    let found: RevokedEntry | undefined;
    walk(this.#bytes, (start, end, at) => {
      if (at < first || found !== undefined || this.#bytes[at + 1] !== serial.length) return;
      if (this.#bytes.compare(wanted, 0, wanted.length, at, at + wanted.length) !== 0) return;
      found = parseEntry(this.#bytes.subarray(start, end));
    });
    return found;
  }
}

/** @param visit is told where an entry begins and ends, and where its serial number begins. @returns how many there are. */
function walk(bytes: Buffer, visit?: (start: number, end: number, serial: number) => void): number {
  let count = 0;
  for (let at = 0; at < bytes.length; ) {
    if (++count > MAX_ENTRIES) throw new DerError('too many entries');
    if (bytes[at] !== TAG.sequence) throw new DerError('entry');
    const serial = contentAt(bytes, at, bytes.length);
    const end = serial + lengthAt(bytes, at);
    const time = assertSerial(bytes, serial, end);
    const extensions = contentAt(bytes, time, end) + lengthAt(bytes, time);
    if (extensions < end) assertExtensions(bytes.subarray(extensions, end));
    visit?.(at, end, serial);
    at = end;
  }
  return count;
}

/** @returns where it ends. X.690 section 8.3.2: as short as possible, else one number would have two forms. */
function assertSerial(bytes: Buffer, at: number, limit: number): number {
  const content = contentAt(bytes, at, limit);
  const length = lengthAt(bytes, at);
  const [first = 0, second = 0] = [bytes[content], bytes[content + 1]];
  const isPadded = length > 1 && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80));
  // RFC 5280 section 4.1.2.2 has at most 20 octets; one length byte will do for what others make.
  if (bytes[at] !== TAG.integer || length === 0 || length >= 0x80 || isPadded) throw new DerError('serial');
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
    return { ...(time && { since: parseTime(time) }), reason: reasonOf(extensions?.whole) };
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

/** Where the content of the element begins; it ends before `limit`. */
function contentAt(bytes: Buffer, at: number, limit: number): number {
  const start = at + 2 + octetsAt(bytes, at);
  if (start + lengthAt(bytes, at) > limit) throw new DerError('length');
  return start;
}

/** Bytes that follow the first byte of the length. X.690 section 10.1: definite form */
function octetsAt(bytes: Buffer, at: number): number {
  const first = bytes[at + 1];
  if (first === undefined || first === 0x80 || first > 0x83) throw new DerError('length');
  return first < 0x80 ? 0 : first & 0x7f;
}

function lengthAt(bytes: Buffer, at: number): number {
  const octets = octetsAt(bytes, at);
  if (octets === 0) return bytes[at + 1] ?? 0;
  if (at + 2 + octets > bytes.length) throw new DerError('length');
  const length = bytes.readUIntBE(at + 2, octets);
  // X.690 section 10.1: as short as possible
  if (length < 0x80 || length < 2 ** (8 * (octets - 1))) throw new DerError('length');
  return length;
}
