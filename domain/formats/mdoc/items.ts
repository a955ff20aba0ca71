import { hash, timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { decodeCbor } from '../cbor/decode.ts';
import { parsePropertyName, toJson } from '../cbor/to-json.ts';
import { type Cbor, type EncodedCbor, isBytes, isMap, isUint } from '../cbor/values.ts';
import { defineLazyProperty, emptyElements } from './lazy-element.ts';
import type { MobileSecurityObject } from './mso.ts';
import { type ParsedMdoc, parseMap } from './parse.ts';

/**
 * Elements as JSON, by namespace. Each is converted at its first access, because unrequested elements may have no JSON form and a portrait
 * takes time. The access may throw Refusal `malformed`.
 */
export type JsonNameSpaces = Readonly<Record<string, JsonObject>>;

const MIN_RANDOM_BYTES = 16;
const MAX_DIGEST_ID = 2 ** 31 - 1;

/**
 * Verifies every item against its signed digest (ISO/IEC 18013-5 section 9.3.1) and parses it.
 * @throws Refusal `digest_mismatch`, also for an unknown namespace or number; `duplicate_element`, `duplicate_digest` or `malformed`.
 */
export function verifyItems(items: ParsedMdoc['items'], mso: MobileSecurityObject): JsonNameSpaces {
  const nameSpaces: Record<string, JsonObject> = {};
  for (const [namespace, members] of items) nameSpaces[parsePropertyName(namespace)] = verifyNameSpace(namespace, members, mso);
  return nameSpaces;
}

function verifyNameSpace(namespace: string, items: readonly EncodedCbor[], mso: MobileSecurityObject): JsonObject {
  const digests = mso.valueDigests.get(namespace);
  const elements = emptyElements();
  const ids = new Set<number>();
  for (const encoded of items) {
    const { digestID, name, value } = parseItem(encoded.content);
    const digest = isMap(digests) ? digests.get(digestID) : undefined;
    // ISO/IEC 18013-5 section 9.1.2.5: over tag, head of the byte string and content, as received
    const actual = hash(mso.hashName, encoded.encoded, 'buffer');
    if (!isBytes(digest) || digest.length !== actual.length || !timingSafeEqual(digest, actual)) throw new Refusal('digest_mismatch');
    if (Object.hasOwn(elements, name)) throw new Refusal('duplicate_element', name);
    if (ids.has(digestID)) throw new Refusal('duplicate_digest');
    ids.add(digestID);
    defineLazyProperty(elements, name, () => toJson(value, undefined, name));
  }
  return elements;
}

/** Names of the items, without verification of their digests. @throws Refusal `malformed`. */
export function parseElementNames(items: readonly EncodedCbor[]): readonly string[] {
  return items.map(({ content }) => parseItem(content).name);
}

type Item = { readonly digestID: number; readonly name: string; readonly value: Cbor };

/** IssuerSignedItem of ISO/IEC 18013-5 section 8.3.2.1.2.2. */
function parseItem(content: Buffer): Item {
  const item = parseMap(decodeCbor(content), 'an item');
  const digestID = item.get('digestID');
  const random = item.get('random');
  // ISO/IEC 18013-5 section 9.1.2.4
  if (!isUint(digestID) || digestID > MAX_DIGEST_ID) throw new Refusal('malformed', 'digestID');
  // ISO/IEC 18013-5 section 9.1.2.5
  if (!isBytes(random) || random.length < MIN_RANDOM_BYTES) throw new Refusal('malformed', 'random');
  if (!item.has('elementValue')) throw new Refusal('malformed', 'elementValue');
  return { digestID, name: parsePropertyName(item.get('elementIdentifier')), value: item.get('elementValue') };
}
