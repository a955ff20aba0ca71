import { decodeUtf8 } from '../../shared/utf8.ts';
import { type DerElement, DerError, parseElements, parseOid, parseSequence } from './reader.ts';

/** RFC 4514 section 3, and attributes in certificates of legal persons. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
};

/** Tags of the string types whose content is ASCII or UTF-8: UTF8, Printable, IA5, Numeric. */
const TEXT_TAGS = new Set([0x0c, 0x13, 0x16, 0x12]);

/** RFC 4514 string of a distinguished name in DER, last relative name first. @throws DerError */
export function formatName(name: Buffer): string {
  return parseSequence(name)
    .map((relative) =>
      parseElements(relative.content)
        .map((pair) => formatPair(pair.encoded))
        .join('+'),
    )
    .reverse()
    .join(',');
}

/**
 * Values of one attribute type in a distinguished name in DER, in their order.
 * @param type dotted object identifier.
 * @returns text; values of other types are hexadecimal DER after a `#`. @throws DerError
 */
export function attributesOf(name: Buffer, type: string): readonly string[] {
  return parseSequence(name)
    .flatMap((relative) => parseElements(relative.content))
    .flatMap((pair) => {
      const [oid, value] = parseSequence(pair.encoded);
      if (oid === undefined || value === undefined || parseOid(oid.content) !== type) return [];
      return [textOf(value) ?? `#${value.encoded.toString('hex')}`];
    });
}

/**
 * Normalizes a distinguished name so that equal names are equal texts (RFC 5280 section 7.1): string type, case, repeated or outer white
 * space of a value, and the order within a relative name are ignored.
 * @param name DER, hexadecimal.
 * @returns the unchanged DER if it is invalid.
 */
export function normalizeName(name: string): string {
  try {
    const relativeNames = parseSequence(Buffer.from(name, 'hex')).map((relative) =>
      parseElements(relative.content)
        .map(({ encoded }) => normalizePair(encoded))
        .sort(),
    );
    return JSON.stringify(relativeNames);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return name;
  }
}

/** Compares distinguished names in DER, hexadecimal, by RFC 5280 section 7.1. */
export function isSameName(a: string, b: string): boolean {
  return a === b || normalizeName(a) === normalizeName(b);
}

/** Attributes of a distinguished name except the `excluded` types, normalized like in `normalizeName`. @throws DerError */
export function normalizedAttributes(name: string, excluded: ReadonlySet<string>): readonly string[] {
  return parseSequence(Buffer.from(name, 'hex'))
    .flatMap(({ content }) => parseElements(content))
    .filter(({ content }) => !excluded.has(parseOid(parseElements(content)[0]?.content ?? Buffer.alloc(0))))
    .map(({ encoded }) => normalizePair(encoded))
    .sort();
}

const BMP_STRING = 0x1e;
const SPACE = /[\s\u0085]+/g;
/** Control and formatting characters, which RFC 4518 section 2.2 removes. */
const IGNORED = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

function normalizePair(pair: Buffer): string {
  const [type, value, ...more] = parseSequence(pair);
  if (type === undefined || value === undefined || more.length > 0) throw new DerError('name');
  const text =
    value.tag === BMP_STRING && value.content.length % 2 === 0 ? Buffer.from(value.content).swap16().toString('utf16le') : textOf(value);
  const oid = parseOid(type.content);
  return text === undefined ? `${oid}=#${value.encoded.toString('hex')}` : `${oid}=${JSON.stringify(prepare(text))}`;
}

/** RFC 4518 sections 2.2, 2.3 and 2.6.1 */
function prepare(text: string): string {
  const mapped = text.replace(SPACE, ' ').replace(IGNORED, '');
  return mapped.normalize('NFKC').toUpperCase().normalize('NFKC').replace(SPACE, ' ').trim();
}

function textOf({ tag, content }: DerElement): string | undefined {
  return TEXT_TAGS.has(tag) ? decodeUtf8(content) : undefined;
}

function formatPair(pair: Buffer): string {
  const [type, value] = parseSequence(pair);
  if (type === undefined || value === undefined) return '';
  const oid = parseOid(type.content);
  const text = textOf(value);
  const short = SHORT_NAMES[oid];
  // RFC 4514 section 2.4: a type without a name takes its value as hexadecimal DER.
  if (short === undefined || text === undefined) return `${short ?? oid}=#${value.encoded.toString('hex')}`;
  return `${short}=${escapeValue(text)}`;
}

/** RFC 4514 section 2.4 */
function escapeValue(text: string): string {
  return text
    .replace(/["+,;<>\\]/g, '\\$&')
    .replace(/^[ #]/, '\\$&')
    .replace(/ $/, '\\ ')
    .replaceAll('\0', '\\00');
}
