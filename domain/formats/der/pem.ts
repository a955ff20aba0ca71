import { valueOrUndefined } from '../../shared/value-or-undefined.ts';
import { parseElement, TAG } from './reader.ts';

/** Markers of an encapsulated certificate (RFC 7468 sections 3 and 5.1). */
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';
const LINE = 64;

/**
 * Parses PEM certificates in their order, in linear time because the text is untrusted.
 * @returns DER in standard base64 (the form of `x5c`), or `undefined` when there is none, there are more than `max`, a block is not one DER
 * SEQUENCE, or another marker occurs outside of the blocks. Other text there is ignored (RFC 7468 section 2), such as that of `openssl x509
 * -text`.
 */
export function parsePemCertificates(text: string, max = 10): readonly string[] | undefined {
  const certificates: string[] = [];
  let offset = 0;
  for (let begin = text.indexOf(BEGIN); begin >= 0; begin = text.indexOf(BEGIN, offset)) {
    const end = text.indexOf(END, begin);
    if (end < 0 || hasPemMarker(text.slice(offset, begin)) || certificates.length === max) return undefined;
    const base64 = text.slice(begin + BEGIN.length, end).replace(/\s/g, '');
    const der = Buffer.from(base64, 'base64');
    if (der.toString('base64') !== base64 || !isOneSequence(der)) return undefined;
    certificates.push(base64);
    offset = end + END.length;
  }
  return certificates.length === 0 || hasPemMarker(text.slice(offset)) ? undefined : certificates;
}

/** Matches misspelt markers as well: a block that is not parsed must not be mistaken for surrounding text. */
const MARKER = /--[\t ]?(?:BEGIN|END)\b/gi;

export function hasPemMarker(text: string): boolean {
  return countPemMarkers(text) > 0;
}

export function countPemMarkers(text: string): number {
  return text.match(MARKER)?.length ?? 0;
}

/** @param certificates DER in standard base64. @returns concatenated PEM blocks. */
export function writePemCertificates(certificates: readonly string[]): string {
  return certificates.map((base64) => writePem('CERTIFICATE', base64)).join('');
}

/** @param base64 DER in standard base64. @returns one block (RFC 7468 section 3). */
export function writePem(label: string, base64: string): string {
  const lines = base64.match(new RegExp(`.{1,${LINE}}`, 'g')) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

function isOneSequence(der: Buffer): boolean {
  return valueOrUndefined(() => parseElement(der, TAG.sequence).encoded.length === der.length) ?? false;
}
