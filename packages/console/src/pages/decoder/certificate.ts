import { hexOf, textOf } from './bytes.ts';
import { type Element, elements, oidOf, timeOf } from './der.ts';

const NAMES: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.97': 'organizationIdentifier',
};
const USAGES = ['digitalSignature', 'nonRepudiation', 'keyEncipherment', 'dataEncipherment', 'keyAgreement', 'keyCertSign', 'cRLSign'];
const PURPOSES: Readonly<Record<string, string>> = {
  '1.3.6.1.5.5.7.3.1': 'serverAuth',
  '1.3.6.1.5.5.7.3.2': 'clientAuth',
  '1.0.18013.5.1.2': 'mdoc signer (ISO 18013-5)',
  '1.0.18013.5.1.6': 'mdoc reader (ISO 18013-5)',
};
const KEYS: Readonly<Record<string, string>> = {
  '1.2.840.10045.2.1': 'EC',
  '1.2.840.113549.1.1.1': 'RSA',
  '1.3.101.112': 'Ed25519',
  '1.2.840.10045.3.1.7': 'P-256',
  '1.3.132.0.34': 'P-384',
  '1.3.132.0.35': 'P-521',
};
const DAY_MS = 86_400_000;

export type Certificate = {
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: string;
  readonly notAfter: string;
  readonly daysLeft: number;
  readonly [more: string]: unknown;
};

/** @throws Error where it is none. */
export function readCertificate(der: Uint8Array, now: Date): Certificate {
  const [whole, ...after] = elements(der);
  if (whole?.tag !== 0x30 || after.length > 0) throw new Error('this is no certificate');
  const [body, algorithm, signature] = elements(whole.value);
  if (body?.tag !== 0x30 || algorithm?.tag !== 0x30 || signature?.tag !== 0x03) throw new Error('this is no certificate');
  const parts = elements(body.value);
  if (parts[0]?.tag === 0xa0) parts.shift();
  const [serial, , issuer, validity, subject, key, ...rest] = parts;
  if (!(serial && issuer && validity && subject && key)) throw new Error('this is no certificate');
  const [from, until] = elements(validity.value).map(timeOf);
  if (!(from && until)) throw new Error('this is no certificate');
  return {
    subject: nameOf(subject),
    issuer: nameOf(issuer),
    notBefore: from.toISOString(),
    notAfter: until.toISOString(),
    daysLeft: Math.floor((until.getTime() - now.getTime()) / DAY_MS),
    key: keyOf(key),
    serialNumber: hexOf(serial.value),
    ...extensionsOf(rest.find(({ tag }) => tag === 0xa3)),
  };
}

function nameOf({ value }: Element): string {
  const attributes = elements(value).flatMap((set) => elements(set.value));
  return attributes
    .map((attribute) => {
      const [type, said] = elements(attribute.value);
      const oid = type === undefined ? '' : oidOf(type.value);
      return `${NAMES[oid] ?? oid}=${said === undefined ? '' : textOf(said.value)}`;
    })
    .join(', ');
}

function keyOf({ value }: Element): string {
  const [algorithm] = elements(value);
  const oids = algorithm === undefined ? [] : elements(algorithm.value).filter(({ tag }) => tag === 6);
  return oids.map((oid) => KEYS[oidOf(oid.value)] ?? oidOf(oid.value)).join(' ');
}

function extensionsOf(wrapped: Element | undefined): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const [list] = wrapped === undefined ? [] : elements(wrapped.value);
  for (const extension of list === undefined ? [] : elements(list.value)) {
    const parts = elements(extension.value);
    const [type, last] = [parts[0], parts.at(-1)];
    const [inner] = last === undefined ? [] : elements(last.value);
    if (type === undefined || inner === undefined) continue;
    const oid = oidOf(type.value);
    if (oid === '2.5.29.15') found['keyUsage'] = usagesOf(inner.value);
    if (oid === '2.5.29.17') found['names'] = elements(inner.value).map(alternativeOf);
    if (oid === '2.5.29.19') found['isAuthority'] = elements(inner.value).some(({ tag }) => tag === 1);
    if (oid === '2.5.29.37') found['extendedKeyUsage'] = elements(inner.value).map(({ value }) => PURPOSES[oidOf(value)] ?? oidOf(value));
  }
  return found;
}

function usagesOf([, first = 0]: Uint8Array): string[] {
  return USAGES.filter((_, bit) => (first & (0x80 >> bit)) !== 0);
}

function alternativeOf({ tag, value }: Element): string {
  const kinds: Readonly<Record<number, string>> = { 129: 'mail', 130: 'DNS', 134: 'URI' };
  const kind = kinds[tag];
  return kind === undefined ? hexOf(value) : `${kind}: ${textOf(value)}`;
}
