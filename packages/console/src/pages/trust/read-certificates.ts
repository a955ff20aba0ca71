import { bytesOf } from '../decoder/bytes.ts';
import { readCertificate } from '../decoder/certificate.ts';
import { elements } from '../decoder/der.ts';

/** A certificate that may be trusted, as it is written into a configuration. */
export type FoundCertificate = { readonly pem: string; readonly subject: string; readonly notAfter: string; readonly isAuthority: boolean };

export type CertificatePurpose = 'authority' | 'issuer' | 'signer';

export type Reading = { readonly found: readonly FoundCertificate[]; readonly refused: readonly string[]; readonly hasKey: boolean };

export const MAX_FILE_BYTES = 256 * 1024;
/** A configuration names at most 200. */
const MAX_CERTIFICATES = 200;
const SEQUENCE = 0x30;
const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const OBJECT_IDENTIFIER = 0x06;
const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/g;

const privateKeyIn = (name: string) =>
  `${name} holds a private key. Nothing of it was taken, and nothing of it left this window. Give certificates alone, and replace that key if others could read the file.`;

/**
 * Certificates of a file or of pasted text: PEM, several of them, or DER.
 * @param name what people call where it comes from, at the beginning of a sentence.
 */
export function readCertificates(bytes: Uint8Array, name: string, wanted: CertificatePurpose, now: Date): Reading {
  if (bytes.length > MAX_FILE_BYTES) return refuse(`${name} has more than ${MAX_FILE_BYTES / 1024} KiB; certificates are smaller.`);
  const text = new TextDecoder().decode(bytes);
  if (/PRIVATE KEY-----|"d"\s*:/.test(text)) return refuse(privateKeyIn(name), true);
  const blocks = [...text.matchAll(BLOCK)];
  if (blocks.length > MAX_CERTIFICATES) return refuse(`${name} has more than ${MAX_CERTIFICATES} certificates; give fewer.`);
  const ders = blocks.length > 0 ? blocks.map(derOf) : [bytes[0] === SEQUENCE ? bytes : bytesOf(text)];
  const found = new Map<string, FoundCertificate>();
  const refused: string[] = [];
  for (const der of ders) {
    const judged = der === undefined ? `${name} is no certificate, in PEM or DER.` : judge(der, name, wanted, now);
    if (typeof judged === 'string') refused.push(judged);
    else found.set(judged.pem, judged);
  }
  if (refused.includes(privateKeyIn(name))) return refuse(privateKeyIn(name), true);
  return { found: [...found.values()], refused: [...new Set(refused)], hasKey: false };
}

function refuse(sentence: string, hasKey = false): Reading {
  return { found: [], refused: [sentence], hasKey };
}

function derOf([, label = '', body = '']: RegExpMatchArray): Uint8Array | undefined {
  return /^(?:X509 )?CERTIFICATE$/.test(label) ? bytesOf(body) : undefined;
}

/** @returns why it is not taken. */
function judge(der: Uint8Array, name: string, wanted: CertificatePurpose, now: Date): FoundCertificate | string {
  const other = otherThan(der);
  if (other === 'key') return privateKeyIn(name);
  if (other === 'bundle')
    return `${name} is a bundle (PKCS #7). Export its certificates as PEM, for example with openssl pkcs7 -print_certs.`;
  const certificate = read(der, now);
  if (certificate === undefined) return `${name} is no certificate, in PEM or DER.`;
  const { subject, notAfter } = certificate;
  const called = `“${subject || 'The certificate without a name'}”`;
  if (new Date(notAfter) <= now) return `${called} ended on ${new Date(notAfter).toLocaleDateString()} and can vouch for nothing.`;
  const isAuthority = certificate['isAuthority'] === true;
  if (wanted === 'authority' && !isAuthority)
    return `${called} is no authority (CA), but the certificate of one that signs. Say so above if it is the issuer itself that you trust.`;
  const usages = certificate['keyUsage'];
  if (wanted === 'authority' && Array.isArray(usages) && !usages.includes('keyCertSign'))
    return `${called} is of an authority that may not sign certificates, so nothing can be trusted by it.`;
  return { pem: pemOf(der), subject, notAfter, isAuthority };
}

function read(der: Uint8Array, now: Date) {
  try {
    return readCertificate(der, now);
  } catch {
    return undefined;
  }
}

function otherThan(der: Uint8Array): 'key' | 'bundle' | undefined {
  const length = der[1] ?? 0;
  const first = der[length > 0x80 ? 2 + (length & 0x7f) : 2];
  if (der[0] === SEQUENCE && first === INTEGER) return 'key';
  if (der[0] === SEQUENCE && first === OBJECT_IDENTIFIER) return 'bundle';
  try {
    const [whole] = elements(der);
    const inside = whole === undefined ? [] : elements(whole.value);
    return inside.length === 2 && inside[1]?.tag === OCTET_STRING ? 'key' : undefined;
  } catch {
    return undefined;
  }
}

/** RFC 7468: lines of 64 characters. */
export function pemOf(der: Uint8Array): string {
  const base64 = btoa(Array.from(der, (byte) => String.fromCharCode(byte)).join(''));
  const lines = base64.match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** @returns undefined where the text is no PEM. */
export function derOfPem(pem: string): Uint8Array | undefined {
  const [block] = pem.matchAll(BLOCK);
  return block === undefined ? undefined : derOf(block);
}
