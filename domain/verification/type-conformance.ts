import { createHash } from 'node:crypto';
import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import { type Disclosed, type DisclosedObject, isUndisclosed } from '../formats/sd-jwt/disclosures.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';

/** Rule of a credential type about one claim (SD-JWT VC section 5.6). */
export type PresentedTypeClaim = {
  readonly path: readonly (string | number | null)[];
  readonly mandatory: boolean;
  readonly sd: 'always' | 'allowed' | 'never';
};

export type ParsedType = {
  readonly claims: readonly PresentedTypeClaim[];
  /** The type that this one extends, with the hash of its document, if present. */
  readonly base?: { readonly vct: string; readonly integrity: string | undefined };
};

const MAX_CLAIMS = 500;
const MAX_MEMBERS = 20_000;
const MAX_DEPTH = 32;
const SD = ['always', 'allowed', 'never'] as const;

/** Sorted from weakest to strongest. */
const HASHES = ['sha256', 'sha384', 'sha512'] as const;

const invalidTypeMetadata = (detail: string) => new Refusal('type_metadata_invalid', detail);

/**
 * True if a document is the one with which a credential was issued (SD-JWT VC section 6, W3C Subresource Integrity): of several hashes only
 * those of the strongest function count.
 */
export function matchesIntegrity(document: Buffer, integrity: string): boolean {
  const hashes = integrity.split(/\s+/).map((hashText) => hashText.split('?')[0]?.split('-') ?? []);
  const strongestHash = HASHES.findLast((name) => hashes.some(([algorithm]) => algorithm === name));
  if (strongestHash === undefined) return false;
  const digest = createHash(strongestHash).update(document).digest('base64');
  return hashes.some(([algorithm, value]) => algorithm === strongestHash && value === digest);
}

/** @param vct of the document. @throws Refusal `type_metadata_invalid`. */
export function parseType(text: string, vct: string): ParsedType {
  const document = parseJsonObject(text, MAX_DEPTH, MAX_MEMBERS);
  if (document === undefined) throw invalidTypeMetadata('its metadata are not a JSON object');
  // SD-JWT VC section 5.2
  if (document['vct'] !== vct) throw invalidTypeMetadata('its metadata are those of another type');
  const { claims = [], extends: base, 'extends#integrity': integrity } = document;
  if (!Array.isArray(claims) || claims.length > MAX_CLAIMS) throw invalidTypeMetadata('claims of its metadata');
  if (base !== undefined && typeof base !== 'string') throw invalidTypeMetadata('extends of its metadata');
  return {
    claims: (claims as readonly Json[]).map(parseClaim),
    ...(base !== undefined && { base: { vct: base, integrity: typeof integrity === 'string' ? integrity : undefined } }),
  };
}

function parseClaim(value: Json): PresentedTypeClaim {
  const { path, mandatory = false, sd = 'allowed' }: JsonObject = isJsonObject(value) ? value : {};
  const isPath =
    Array.isArray(path) &&
    path.length > 0 &&
    path.length <= MAX_DEPTH &&
    path.every((part) => part === null || typeof part === 'string' || Number.isSafeInteger(part));
  const disclosability = SD.find((value) => value === sd);
  if (!isPath || typeof mandatory !== 'boolean' || disclosability === undefined)
    throw invalidTypeMetadata('an entry of claims in its metadata');
  return { path: path as PresentedTypeClaim['path'], mandatory, sd: disclosability };
}

/**
 * Finds a violation of the type by a presentation (SD-JWT VC sections 5.6.3 and 5.6.4). A mandatory claim that its holder may withhold need
 * not be present.
 * @param visible the always visible part of the credential, including digests.
 * @returns the name of a claim and the problem, never a value.
 */
export function findTypeProblem(rules: readonly PresentedTypeClaim[], claims: DisclosedObject, visible: JsonObject): string | undefined {
  for (const { path, mandatory, sd } of rules) {
    if (PROTOCOL_CLAIMS.has(String(path[0]))) continue;
    const visibilities = visibilitiesOf(claims, visible, path);
    const name = JSON.stringify(path);
    if (sd === 'always' && visibilities.includes('visible')) return `${name} must be selectively disclosable`;
    if (sd === 'never' && visibilities.includes('hidden')) return `${name} must not be selectively disclosable`;
    if (mandatory && sd === 'never' && visibilities.length === 0) return `${name} is mandatory but missing`;
  }
  return undefined;
}

/**
 * Visibility of a value that the path selects: `hidden` if its holder could withhold it individually, `below` if a parent could be
 * withheld.
 */
type ClaimVisibility = 'visible' | 'hidden' | 'below';

function visibilitiesOf(
  value: Disclosed,
  visible: Json | undefined,
  [component, ...remainingPath]: PresentedTypeClaim['path'],
): readonly ClaimVisibility[] {
  const visibilityAt = (member: Disclosed, visibleValue: Json | undefined): readonly ClaimVisibility[] => {
    const isShown = visibleValue !== undefined && !isDigest(visibleValue);
    if (remainingPath.length > 0) return visibilitiesOf(member, isShown ? visibleValue : undefined, remainingPath);
    if (visible === undefined) return ['below'];
    return [isShown ? 'visible' : 'hidden'];
  };
  if (Array.isArray(value)) {
    const visibleValue = Array.isArray(visible) ? (visible as readonly Json[]) : [];
    return (value as readonly Disclosed[]).flatMap((member, index) =>
      isUndisclosed(member) || (component !== null && component !== index) ? [] : visibilityAt(member, visibleValue[index]),
    );
  }
  if (typeof component !== 'string' || typeof value !== 'object' || value === null) return [];
  if (!Object.hasOwn(value, component)) return [];
  const visibleValue = isJsonObject(visible) && Object.hasOwn(visible, component) ? visible[component] : undefined;
  return visibilityAt((value as DisclosedObject)[component] as Disclosed, visibleValue);
}

/** RFC 9901 section 4.2.4.2: the placeholder of a withheld array entry. */
function isDigest(value: Json): boolean {
  return isJsonObject(value) && Object.keys(value).length === 1 && Object.hasOwn(value, '...');
}
