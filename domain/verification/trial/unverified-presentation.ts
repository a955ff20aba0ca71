import type { CompiledClaim, CompiledCredentialQuery } from '../../dcql/compile.ts';
import { type ClaimsPath, selectClaims, selectElement } from '../../dcql/path.ts';
import { parseElementNames } from '../../formats/mdoc/items.ts';
import { parseDeviceResponse } from '../../formats/mdoc/parse.ts';
import { isUndisclosed, processDisclosures } from '../../formats/sd-jwt/disclosures.ts';
import { parseSdJwt } from '../../formats/sd-jwt/parse.ts';
import { isJsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import type { PastedPresentation } from './pasted-presentation.ts';

/** Content of a presentation, verified or not. The value of each mdoc element is replaced by `true`. */
export type UnverifiedPresentation = {
  readonly format: PastedPresentation['format'];
  readonly types: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
};

/** Claims about the token, not about its subject (RFC 7519, SD-JWT VC section 2.2.2). */
const TOKEN_CLAIMS: ReadonlySet<string> = new Set([
  ...['iss', 'iat', 'nbf', 'exp', 'aud', 'jti', 'cnf', 'status', '_sd_alg'],
  ...['vct', 'vct#integrity', 'aka_vcts'],
]);
/** Exceeds the number of claims in any credential. */
const MAX_PATHS = 500;
/** Limit of unverified values, because each claim of a query may visit all of them. */
const MAX_VALUES = 10_000;

/**
 * Parses a presentation without verification.
 * @returns undefined for a malformed presentation, also if a disclosure has no signed digest, and above the limit of values.
 */
export function readUnverified({ format, text }: PastedPresentation): UnverifiedPresentation | undefined {
  try {
    const presentation = format === 'mso_mdoc' ? readMdoc(text) : readSdJwt(text);
    return remainingValues(presentation.claims, MAX_VALUES) < 0 ? undefined : presentation;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

function readSdJwt(text: string): UnverifiedPresentation {
  const { issuer, disclosures } = parseSdJwt(text);
  const { claims } = processDisclosures(issuer.payload, disclosures);
  const { vct } = claims;
  return { format: 'dc+sd-jwt', types: typeof vct === 'string' ? [vct] : [], claims };
}

function readMdoc(text: string): UnverifiedPresentation {
  const { docType, items } = parseDeviceResponse(text);
  const elements = [...items].map(([namespace, members]) => [
    namespace,
    Object.fromEntries(parseElementNames(members).map((name) => [name, true])),
  ]);
  return { format: 'mso_mdoc', types: [docType], claims: Object.fromEntries(elements) };
}

/** @returns the remainder of the limit; negative when it is exceeded. */
function remainingValues(value: unknown, most: number): number {
  let remaining = most - 1;
  if (typeof value !== 'object' || value === null) return remaining;
  for (const member of Object.values(value)) {
    if (remaining < 0) break;
    remaining = remainingValues(member, remaining);
  }
  return remaining;
}

/** Paths of its claims without values; an array is one path. At most 500. */
export function claimPathsOf({ format, claims }: UnverifiedPresentation): readonly ClaimsPath[] {
  const paths: ClaimsPath[] = [];
  const gather = (value: unknown, path: readonly string[]) => {
    if (paths.length >= MAX_PATHS) return;
    const members = isJsonObject(value) ? Object.entries(value) : [];
    if (members.length === 0) paths.push(path);
    for (const [name, member] of members) gather(member, [...path, name]);
  };
  for (const [name, value] of Object.entries(claims)) {
    if (format === 'mso_mdoc' || !TOKEN_CLAIMS.has(name)) gather(value, [name]);
  }
  return paths;
}

/** Missing claims of a query: of several claim sets the one with the fewest. */
export function findMissingClaims(
  { claimSets = [] }: CompiledCredentialQuery,
  { format, claims }: UnverifiedPresentation,
): readonly ClaimsPath[] {
  // Sets share their claims; each claim is evaluated once.
  const presenceByClaim = new Map<CompiledClaim, boolean>();
  const hasClaim = (claim: CompiledClaim): boolean => {
    const { path } = claim;
    const isPresent =
      presenceByClaim.get(claim) ??
      typeof (format === 'mso_mdoc' ? selectElement(claims, path) : selectClaims(claims, path, isUndisclosed)) !== 'string';
    presenceByClaim.set(claim, isPresent);
    return isPresent;
  };
  const missingPaths = claimSets.map((set) => set.flatMap((claim) => (hasClaim(claim) ? [] : [claim.path])));
  const [firstSet = [], ...otherSets] = missingPaths;
  return otherSets.reduce((fewest, set) => (set.length < fewest.length ? set : fewest), firstSet);
}
