import { isMemberName, type Json } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { type Cbor, EncodedCbor, isArray, isBytes, isMap, SimpleValue, TAG, Tagged } from './values.ts';

/** Claims never contain numbers above 512 bits. */
const MAX_BIGNUM_BYTES = 64;
/** Names occur in reports, so their length is limited. */
const MAX_NAME_LENGTH = 256;

/** Text encodings of byte strings (RFC 8949 section 3.4.5.2). */
type Encoding = 'base64url' | 'base64' | 'hex';
const ENCODINGS: ReadonlyMap<number | bigint, Encoding> = new Map([
  [21, 'base64url'],
  [22, 'base64'],
  [23, 'hex'],
]);

/**
 * Converts an item to JSON by the advice of RFC 8949 section 6.1 (OpenID4VP 1.0 section 6.3): byte strings as base64url unless enclosed in
 * tag 22 or 23, bignums as base64url of their bytes with the prefix `~` if negative, times of tag 1 as numbers, integer keys in decimal,
 * and null for values without a JSON form. Integers beyond 64-bit floats become decimal texts, because JSON parsers would change them.
 * Unknown tags are dropped.
 * @param parent name of the property with this value.
 * @throws Refusal `malformed` for dates and bignums of another form, keys that are equal in JSON or neither text nor integer, names of an
 * object's prototype, NUL characters.
 */
export function toJson(value: Cbor, encoding: Encoding = 'base64url', parent?: string): Json {
  switch (typeof value) {
    case 'string':
      return parseText(value);
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'bigint':
      return value.toString();
    default:
      return objectToJson(value, encoding, parent);
  }
}

function objectToJson(value: Cbor, encoding: Encoding, parent: string | undefined): Json {
  if (isBytes(value)) return encoded(value, encoding);
  if (value instanceof EncodedCbor) return encoded(value.content, encoding);
  if (value instanceof Tagged) return taggedToJson(value, encoding);
  if (isArray(value)) return value.map((entry) => toJson(entry, encoding));
  if (value instanceof SimpleValue || !isMap(value)) return null;
  const object: Record<string, Json> = {};
  for (const [key, member] of value) {
    const name = parsePropertyName(key.toString(), parent);
    if (Object.hasOwn(object, name)) throw malformed('two keys of a map are equal as text');
    object[name] = toJson(member, encoding, name);
  }
  return object;
}

/** RFC 8949 section 3.4.5.2: tag 23 uses upper case letters. */
function encoded(bytes: Buffer, encoding: Encoding): string {
  const text = bytes.toString(encoding);
  return encoding === 'hex' ? text.toUpperCase() : text;
}

/** The name of an object property. @throws Refusal `malformed` */
export function parsePropertyName(key: unknown, parent?: string): string {
  if (typeof key !== 'string') throw malformed('a map has keys that are not text');
  if (!isMemberName(key, parent)) throw malformed('a map has a key that reaches a prototype');
  if (key.length > MAX_NAME_LENGTH) throw malformed('a map has a name that is too long');
  return parseText(key);
}

function parseText(text: string): string {
  // PostgreSQL cannot store NUL.
  if (text.includes('\0')) throw malformed('a text contains NUL');
  return text;
}

function taggedToJson({ tag, value }: Tagged, encoding: Encoding): Json {
  switch (tag) {
    case TAG.dateTime:
    case TAG.fullDate:
      if (typeof value !== 'string') throw malformed('a date is not text');
      return parseText(value);
    case TAG.epoch:
      if (typeof value !== 'number') throw malformed('a time is not a number');
      return toJson(value);
    case TAG.unsigned:
      return parseBignum(value).toString('base64url');
    case TAG.negative:
      return `~${parseBignum(value).toString('base64url')}`;
    default:
      return toJson(value, ENCODINGS.get(tag) ?? encoding);
  }
}

function parseBignum(value: Cbor): Buffer {
  if (!isBytes(value) || value.length > MAX_BIGNUM_BYTES) throw malformed('the bignum cannot be represented');
  return value;
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', detail);
}
