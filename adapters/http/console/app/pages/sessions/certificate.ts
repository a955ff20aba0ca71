/** What people look for in a certificate (RFC 5280). Nothing is verified here: the service and the wallet do that. */
export type CertificateSummary = {
  readonly subject: string;
  readonly issuer: string;
  readonly notAfter: Date;
  readonly daysLeft: number;
};

type Value = { readonly tag: number; readonly bytes: Uint8Array };

const [SEQUENCE, UTC_TIME, VERSION] = [0x30, 0x17, 0xa0];
const DAY_MS = 86_400_000;
const MOST_BYTES = 64 * 1024;
const NAMES: Readonly<Record<string, string>> = {
  '550403': 'CN',
  '550406': 'C',
  '550407': 'L',
  '550408': 'ST',
  '55040a': 'O',
  '55040b': 'OU',
  '550461': 'organizationIdentifier',
};

/** @param text base64 of DER, as `x5c` has it. @returns undefined for what is no certificate. */
export function readCertificate(text: unknown, now = Date.now()): CertificateSummary | undefined {
  if (typeof text !== 'string' || text.length > MOST_BYTES) return undefined;
  try {
    const [certificate] = valuesIn(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)));
    const [signed] = valuesIn(bytesOf(certificate, SEQUENCE));
    const parts = valuesIn(bytesOf(signed, SEQUENCE));
    const [, , issuer, validity, subject] = parts[0]?.tag === VERSION ? parts.slice(1) : parts;
    const notAfter = timeOf(valuesIn(bytesOf(validity, SEQUENCE))[1]);
    const daysLeft = Math.floor((notAfter.getTime() - now) / DAY_MS);
    return { subject: nameOf(subject), issuer: nameOf(issuer), notAfter, daysLeft };
  } catch {
    return undefined;
  }
}

function bytesOf(value: Value | undefined, tag: number): Uint8Array {
  if (value?.tag !== tag) throw new Error('another type was expected');
  return value.bytes;
}

/** What stands one after the other in an encoded value. */
function valuesIn(bytes: Uint8Array): Value[] {
  const values: Value[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] ?? 0;
    let length = bytes[at + 1] ?? 0;
    at += 2;
    if (length >= 0x80) {
      const size = length - 0x80;
      if (size < 1 || size > 3) throw new Error('a length that DER has not');
      length = bytes.subarray(at, at + size).reduce((sum, byte) => sum * 256 + byte, 0);
      at += size;
    }
    if (at + length > bytes.length) throw new Error('it is cut off');
    values.push({ tag, bytes: bytes.subarray(at, at + length) });
    at += length;
  }
  return values;
}

function nameOf(name: Value | undefined): string {
  const attributes = valuesIn(bytesOf(name, SEQUENCE)).flatMap(({ bytes }) => valuesIn(bytes));
  const parts = attributes.flatMap(({ bytes }) => {
    const [type, value] = valuesIn(bytes);
    const label = NAMES[hexOf(type?.bytes ?? new Uint8Array())];
    return label === undefined || value === undefined ? [] : [`${label}=${textOf(value)}`];
  });
  return parts.length === 0 ? 'without a name' : parts.join(', ');
}

const hexOf = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

function textOf({ bytes }: Value): string {
  return new TextDecoder().decode(bytes);
}

/** UTCTime says the year with two digits, of 1950 to 2049. */
function timeOf(value: Value | undefined): Date {
  if (value === undefined) throw new Error('there is no end');
  const text = textOf(value);
  const whole = value.tag === UTC_TIME ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : text;
  const date = new Date(whole.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (Number.isNaN(date.getTime())) throw new Error('no time');
  return date;
}
