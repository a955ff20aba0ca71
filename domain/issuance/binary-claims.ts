import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { resolveSchema, schemaAt } from './frame-schema.ts';

const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(;[\w!#$&^.+-]+=[\w!#$&^.+-]+)*$/;
/** RFC 2397: a media type with parameters, if any, and data that is base64 or percent-encoded. */
const DATA_URI = /^data:([a-z0-9][\w!#$&^.+-]*\/[\w!#$&^.+-]+)?(;[\w!#$&^.+-]+=[^;,"]*)*(;base64)?,(.*)$/is;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BASE64URL = /^[A-Za-z0-9_-]*={0,2}$/;
const PERCENT_ENCODED = /^(?:[A-Za-z0-9!$&'()*+,;=:@/?._~-]|%[0-9A-Fa-f]{2})*$/;
const ANY_TYPE = 'application/octet-stream';

/** Most schemas have no binary claims; their claims need not be visited. */
export function hasBinaryClaims(schema: JsonObject): boolean {
  return JSON.stringify(schema).includes('"contentEncoding"');
}

/**
 * Converts claims whose schema says `contentEncoding: base64` to data URIs (SD-JWT VC section 2.2.2.4) of the media type
 * `contentMediaType`. Data URIs stay unchanged.
 * @throws Error for a text that is neither; `findBinaryProblems` reports its path.
 */
export function withDataUris(claims: JsonObject, schema: JsonObject): JsonObject {
  return convertBinaryClaims(claims, schema, schema, '', (path) => {
    throw new Error(`claims${path} ${MESSAGE}`);
  }) as JsonObject;
}

const MESSAGE = 'is neither base64 nor a data URI';

/** Binary claims that are neither base64 nor data URIs. Paths begin with a dot. */
export function findBinaryProblems(claims: JsonObject, schema: JsonObject): readonly FieldError[] {
  const faults: FieldError[] = [];
  convertBinaryClaims(claims, schema, schema, '', (path) => faults.push({ path, message: MESSAGE }));
  return faults;
}

function convertBinaryClaims(
  value: Json,
  localSchema: JsonObject | undefined,
  root: JsonObject,
  path: string,
  refuse: (path: string) => void,
): Json {
  const schema = resolveSchema(localSchema, root);
  if (schema === undefined) return value;
  if (typeof value === 'string') return isBinary(schema) ? toDataUri(value, schema, () => refuse(path)) : value;
  const convertProperty = (member: Json, key: string | number): Json =>
    convertBinaryClaims(member, schemaAt(schema, key) || undefined, root, `${path}.${key}`, refuse);
  if (Array.isArray(value)) return (value as readonly Json[]).map(convertProperty);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, convertProperty(member, name)]));
}

function isBinary({ contentEncoding }: JsonObject): boolean {
  return typeof contentEncoding === 'string' && contentEncoding.toLowerCase() === 'base64';
}

function toDataUri(text: string, { contentMediaType }: JsonObject, refuse: () => void): string {
  const bytes = bytesOf(text);
  if (bytes !== undefined) {
    const mediaType = typeof contentMediaType === 'string' ? contentMediaType.replaceAll(' ', '') : '';
    return `data:${MEDIA_TYPE.test(mediaType) ? mediaType : ANY_TYPE};base64,${bytes.toString('base64')}`;
  }
  if (!isDataUri(text)) refuse();
  return text;
}

function isDataUri(text: string): boolean {
  const [matchedText, , , isBase64, data = ''] = DATA_URI.exec(text) ?? [];
  if (matchedText === undefined) return false;
  return isBase64 === undefined ? PERCENT_ENCODED.test(data) : bytesOf(data) !== undefined;
}

/** Decodes base64 or base64url, with or without padding and line breaks. */
function bytesOf(text: string): Buffer | undefined {
  const joined = text.replaceAll(/\r?\n/g, '');
  if (!BASE64.test(joined) && !BASE64URL.test(joined)) return undefined;
  const unpadded = joined.replace(/=+$/, '');
  if (unpadded.length % 4 === 1 || (joined.endsWith('=') && joined.length % 4 !== 0)) return undefined;
  return Buffer.from(joined, 'base64');
}
