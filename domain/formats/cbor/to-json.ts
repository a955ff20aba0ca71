import { isMemberName, type Json } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { type Cbor, EncodedCbor, isArray, isBytes, isMap, SimpleValue, TAG, Tagged } from './values.ts';

/** Decimal digits grow faster than time: no claim is a number of more than 512 bits. */
const MAX_BIGNUM_BYTES = 64;
/** Names come into reports; no element is called by a longer one. */
const MAX_NAME_LENGTH = 256;

/**
 * Shows an item as JSON: byte strings as base64url, dates as texts, integers that no JSON number holds as decimal
 * texts. Unknown tags are left away.
 * @throws Refusal `malformed` for what has no JSON form: maps with other keys than text, NaN and infinity, names
 *   of an object's prototype, NUL characters.
 */
export function toJson(value: Cbor): Json {
  switch (typeof value) {
    case 'string':
      return checkText(value);
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw malformed('a number is not finite');
      return value;
    case 'bigint':
      return value.toString();
    default:
      return value === null || value === undefined ? null : objectToJson(value);
  }
}

function objectToJson(value: NonNullable<Cbor>): Json {
  if (isBytes(value)) return value.toString('base64url');
  if (value instanceof EncodedCbor) return value.content.toString('base64url');
  if (value instanceof Tagged) return taggedToJson(value);
  if (isArray(value)) return value.map(toJson);
  if (value instanceof SimpleValue || !isMap(value)) throw malformed('a simple value has no JSON form');
  const object: Record<string, Json> = {};
  for (const [key, member] of value) object[checkName(key)] = toJson(member);
  return object;
}

/** The name of a member of an object. @throws Refusal `malformed` */
export function checkName(key: unknown): string {
  if (typeof key !== 'string') throw malformed('a map has keys that are not text');
  if (!isMemberName(key)) throw malformed('a map names a member of a prototype');
  if (key.length > MAX_NAME_LENGTH) throw malformed('a map has a name that is too long');
  return checkText(key);
}

function checkText(text: string): string {
  // Databases keep no NUL.
  if (text.includes('\0')) throw malformed('a text contains NUL');
  return text;
}

function taggedToJson({ tag, value }: Tagged): Json {
  switch (tag) {
    case TAG.dateTime:
    case TAG.fullDate:
      if (typeof value !== 'string') throw malformed('a date is not text');
      return checkText(value);
    case TAG.epoch:
      return epochToJson(value);
    case TAG.unsigned:
      return readBignum(value).toString();
    case TAG.negative:
      return (-1n - readBignum(value)).toString();
    default:
      return toJson(value);
  }
}

function epochToJson(value: Cbor): string {
  const time = typeof value === 'number' ? new Date(value * 1000) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) throw malformed('a time is not a number');
  return time.toISOString();
}

function readBignum(value: Cbor): bigint {
  if (!isBytes(value) || value.length > MAX_BIGNUM_BYTES) throw malformed('a bignum has no such form');
  return BigInt(`0x0${value.toString('hex')}`);
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', detail);
}
