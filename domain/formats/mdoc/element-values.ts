import { invalidInput } from '../../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/json.ts';
import { type Cbor, fullDate, tdate } from '../cbor/values.ts';

type Convert = (value: Json, path: string) => Cbor;

/** Deeper claims would exceed the nesting limit of a response. */
const MAX_DEPTH = 24;
const FULL_DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BASE64URL = /^[A-Za-z0-9_-]*={0,2}$/;
const DATA_URL = /^data:[^,]{0,200};base64,/;

/**
 * Properties whose type follows from their name, in any namespace and at any depth: ISO/IEC 18013-5 section 7.2.1 and the rule book of the
 * European PID. `driving_privileges` is an array of maps with such dates.
 */
const BY_NAME: ReadonlyMap<string, (text: string, path: string) => Cbor> = new Map([
  ['birth_date', parseDate],
  ['issue_date', parseDate],
  ['issuance_date', parseDate],
  ['expiry_date', parseDate],
  ['portrait_capture_date', parseDate],
  ['hazmat_endorsement_expiration_date', parseDate],
  ['portrait', parseBytes],
  ['signature_usual_mark', parseBytes],
]);
const BIOMETRIC = /^biometric_/;

/** Types of `{ "$type": …, "value": … }`. */
const BY_TYPE: ReadonlyMap<unknown, Convert> = new Map([
  ['full-date', parseFullDate],
  ['tdate', parseDateTime],
  ['bytes', parseBytes],
  ['text', parseText],
]);

/**
 * Converts a JSON claim to CBOR. Integers, booleans, texts, arrays and objects map to the equivalent types. Dates (texts `YYYY-MM-DD` or
 * RFC 3339 times) and images (base64, base64url or data URLs) are recognized by the names in `BY_NAME`. `{ "$type": "full-date" | "tdate" |
 * "bytes" | "text", "value": "…" }` sets the type explicitly at any depth.
 * @throws Failure `invalid_input` for an invalid date or image, an unknown `$type`, or nesting that is too deep.
 */
export function parseElementValue(namespace: string, name: string, json: Json): Cbor {
  return parseProperty(name, json, `claims.${namespace}.${name}`, 1);
}

function parseProperty(name: string, json: Json, path: string, depth: number): Cbor {
  const convert = BY_NAME.get(name) ?? (BIOMETRIC.test(name) ? parseBytes : undefined);
  // A date may be a map, as in ISO/IEC 23220-2, or an image a list; then the properties are converted.
  return convert !== undefined && typeof json === 'string' ? convert(json, path) : parseValue(json, path, depth);
}

function parseValue(json: Json, path: string, depth: number): Cbor {
  if (typeof json === 'string') return parseText(json, path);
  if (typeof json !== 'object' || json === null) return json;
  if (depth > MAX_DEPTH) throw invalidInput(path, `Claims may be nested at most ${MAX_DEPTH} levels.`);
  if (!isJsonObject(json)) return json.map((member, index) => parseValue(member, `${path}.${index}`, depth + 1));
  if (Object.hasOwn(json, '$type')) return parseTyped(json, path);
  return new Map(Object.entries(json).map(([name, member]) => [name, parseProperty(name, member, `${path}.${name}`, depth + 1)]));
}

function parseTyped(json: JsonObject, path: string): Cbor {
  const convert = BY_TYPE.get(json['$type']);
  const { value } = json;
  if (convert === undefined || value === undefined || Object.keys(json).length !== 2) {
    throw invalidInput(path, 'A typed value is { "$type": "full-date" | "tdate" | "bytes" | "text", "value" }.');
  }
  return convert(value, path);
}

/** ISO/IEC 18013-5 section 7.2.1: text is UTF-8; NFC keeps values comparable. */
function parseText(value: Json, path: string): Cbor {
  if (typeof value !== 'string') throw invalidInput(path, 'A text must be a string.');
  return value.normalize('NFC');
}

/** Elements that may be a date or a time. */
function parseDate(value: string, path: string): Cbor {
  return DATE_TIME.test(value) ? parseDateTime(value, path) : parseFullDate(value, path);
}

function parseFullDate(value: Json, path: string): Cbor {
  if (typeof value !== 'string' || !FULL_DATE.test(value) || !isDay(value)) throw invalidInput(path, 'A date has the form YYYY-MM-DD.');
  return fullDate(value);
}

/** The 30th of February matches the pattern but is no day. */
function isDay(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.split('-').map(Number);
  return month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month);
}

/** Day 0 of a month is the last day of the previous month. */
function daysOf(year: number, month: number): number {
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
}

function parseDateTime(value: Json, path: string): Cbor {
  const time = typeof value === 'string' && DATE_TIME.test(value) && isDay(value.slice(0, 10)) ? new Date(value) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) throw invalidInput(path, 'A time has the form YYYY-MM-DDThh:mm:ssZ.');
  return tdate(time);
}

function parseBytes(value: Json, path: string): Cbor {
  const text = typeof value === 'string' ? value.replace(DATA_URL, '') : undefined;
  if (text === undefined || !(BASE64.test(text) || BASE64URL.test(text)) || isIncomplete(text)) {
    throw invalidInput(path, 'Bytes are written in base64, base64url or as a data URL.');
  }
  // The decoder accepts both alphabets.
  return Buffer.from(text, 'base64');
}

/** True for an impossible length: a single surplus character, or incomplete padding. */
function isIncomplete(text: string): boolean {
  const digits = text.replace(/=+$/, '').length;
  return digits % 4 === 1 || (digits !== text.length && text.length % 4 !== 0);
}
