import { createHash } from 'node:crypto';
import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import { type Disclosed, type DisclosedObject, isUndisclosed } from '../formats/sd-jwt/disclosures.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';

/** What a type says of one claim (SD-JWT VC section 5.6). */
export type PresentedTypeClaim = {
  readonly path: readonly (string | number | null)[];
  readonly mandatory: boolean;
  readonly sd: 'always' | 'allowed' | 'never';
};

export type ReadType = {
  readonly claims: readonly PresentedTypeClaim[];
  /** The type that this one specializes, with the hash of its document where that is named. */
  readonly base?: { readonly vct: string; readonly integrity: string | undefined };
};

const MAX_CLAIMS = 500;
const MAX_MEMBERS = 20_000;
const MAX_DEPTH = 32;
const SD = ['always', 'allowed', 'never'] as const;

/** Weakest first. */
const HASHES = ['sha256', 'sha384', 'sha512'] as const;

const broken = (detail: string) => new Refusal('type_metadata_invalid', detail);

/**
 * Whether a document is the one that a credential was issued with (SD-JWT VC section 6, W3C Subresource Integrity): of several hashes
 * those of the strongest function count.
 */
export function fitsIntegrity(document: Buffer, integrity: string): boolean {
  const listed = integrity.split(/\s+/).map((each) => each.split('?')[0]?.split('-') ?? []);
  const strongest = HASHES.findLast((name) => listed.some(([algorithm]) => algorithm === name));
  if (strongest === undefined) return false;
  const digest = createHash(strongest).update(document).digest('base64');
  return listed.some(([algorithm, value]) => algorithm === strongest && value === digest);
}

/** @param vct that the document is of. @throws Refusal `type_metadata_invalid`. */
export function parseType(text: string, vct: string): ReadType {
  const document = parseJsonObject(text, MAX_DEPTH, MAX_MEMBERS);
  if (document === undefined) throw broken('its metadata are no JSON object');
  // SD-JWT VC section 5.2
  if (document['vct'] !== vct) throw broken('its metadata are those of another type');
  const { claims = [], extends: base, 'extends#integrity': integrity } = document;
  if (!Array.isArray(claims) || claims.length > MAX_CLAIMS) throw broken('claims of its metadata');
  if (base !== undefined && typeof base !== 'string') throw broken('extends of its metadata');
  return {
    claims: (claims as readonly Json[]).map(parseClaim),
    ...(base !== undefined && {
      base: { vct: base, integrity: typeof integrity === 'string' ? integrity : undefined },
    }),
  };
}

function parseClaim(value: Json): PresentedTypeClaim {
  const { path, mandatory = false, sd = 'allowed' }: JsonObject = isJsonObject(value) ? value : {};
  const isPath =
    Array.isArray(path) &&
    path.length > 0 &&
    path.length <= MAX_DEPTH &&
    path.every((part) => part === null || typeof part === 'string' || Number.isSafeInteger(part));
  const known = SD.find((one) => one === sd);
  if (!isPath || typeof mandatory !== 'boolean' || known === undefined) throw broken('an entry of claims in its metadata');
  return { path: path as PresentedTypeClaim['path'], mandatory, sd: known };
}

/**
 * What of a presentation its type does not allow (SD-JWT VC sections 5.6.3 and 5.6.4). A mandatory claim that its holder may withhold
 * need not be there.
 * @param visible what every presentation of the credential shows, digests and all.
 * @returns the name of a claim and what is wrong with it, never a value.
 */
export function findTypeProblem(rules: readonly PresentedTypeClaim[], claims: DisclosedObject, visible: JsonObject): string | undefined {
  for (const { path, mandatory, sd } of rules) {
    if (PROTOCOL_CLAIMS.has(String(path[0]))) continue;
    const places = placesOf(claims, visible, path);
    const name = JSON.stringify(path);
    if (sd === 'always' && places.includes('visible')) return `${name} has to be selectively disclosable`;
    if (sd === 'never' && places.includes('hidden')) return `${name} must not be selectively disclosable`;
    if (mandatory && sd === 'never' && places.length === 0) return `${name} is mandatory, but missing`;
  }
  return undefined;
}

/** Of each value that the path selects whether its holder could have withheld just that; `below` what could be withheld as a whole. */
type Place = 'visible' | 'hidden' | 'below';

function placesOf(value: Disclosed, visible: Json | undefined, [component, ...rest]: PresentedTypeClaim['path']): readonly Place[] {
  const at = (member: Disclosed, shown: Json | undefined): readonly Place[] => {
    const isShown = shown !== undefined && !isDigest(shown);
    if (rest.length > 0) return placesOf(member, isShown ? shown : undefined, rest);
    if (visible === undefined) return ['below'];
    return [isShown ? 'visible' : 'hidden'];
  };
  if (Array.isArray(value)) {
    const shown = Array.isArray(visible) ? (visible as readonly Json[]) : [];
    return (value as readonly Disclosed[]).flatMap((member, index) =>
      isUndisclosed(member) || (component !== null && component !== index) ? [] : at(member, shown[index]),
    );
  }
  if (typeof component !== 'string' || typeof value !== 'object' || value === null) return [];
  if (!Object.hasOwn(value, component)) return [];
  const shown = isJsonObject(visible) && Object.hasOwn(visible, component) ? visible[component] : undefined;
  return at((value as DisclosedObject)[component] as Disclosed, shown);
}

/** RFC 9901 section 4.2.4.2: what stands in an array for an entry that can be withheld. */
function isDigest(value: Json): boolean {
  return isJsonObject(value) && Object.keys(value).length === 1 && Object.hasOwn(value, '...');
}
