import type { CompiledClaim, CompiledCredentialQuery } from '../../dcql/compile.ts';
import { type ClaimsPath, selectClaims, selectElement } from '../../dcql/path.ts';
import { parseElementNames } from '../../formats/mdoc/items.ts';
import { parseDeviceResponse } from '../../formats/mdoc/parse.ts';
import { isUndisclosed, processDisclosures } from '../../formats/sd-jwt/disclosures.ts';
import { parseSdJwt } from '../../formats/sd-jwt/parse.ts';
import { isJsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import type { Pasted } from './pasted.ts';

/** What a presentation holds, verified or not. Of an mdoc `true` stands in the place of each value. */
export type Peeked = {
  readonly format: Pasted['format'];
  readonly types: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
};

/** Of the token and not of the person (RFC 7519, SD-JWT VC section 2.2.2). */
const OF_TOKEN: ReadonlySet<string> = new Set([
  ...['iss', 'iat', 'nbf', 'exp', 'aud', 'jti', 'cnf', 'status', '_sd_alg'],
  ...['vct', 'vct#integrity', 'aka_vcts'],
]);
/** More than any credential has. */
const MAX_PATHS = 500;
/** The same of values: nobody signed for them yet, and each claim of a question may look at all. */
const MAX_VALUES = 10_000;

/**
 * @returns undefined for what cannot be taken apart, also where a disclosure belongs to nothing that was signed, and for what has
 *   more values than any credential.
 */
export function peek({ format, text }: Pasted): Peeked | undefined {
  try {
    const peeked = format === 'mso_mdoc' ? peekMdoc(text) : peekSdJwt(text);
    return valuesLeft(peeked.claims, MAX_VALUES) < 0 ? undefined : peeked;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

function peekSdJwt(text: string): Peeked {
  const { issuer, disclosures } = parseSdJwt(text);
  const { claims } = processDisclosures(issuer.payload, disclosures);
  const { vct } = claims;
  return { format: 'dc+sd-jwt', types: typeof vct === 'string' ? [vct] : [], claims };
}

function peekMdoc(text: string): Peeked {
  const { docType, items } = parseDeviceResponse(text);
  const named = [...items].map(([namespace, members]) => [
    namespace,
    Object.fromEntries(parseElementNames(members).map((name) => [name, true])),
  ]);
  return { format: 'mso_mdoc', types: [docType], claims: Object.fromEntries(named) };
}

/** @returns how many of `most` are left; below zero when there are more. */
function valuesLeft(value: unknown, most: number): number {
  let left = most - 1;
  if (typeof value !== 'object' || value === null) return left;
  for (const member of Object.values(value)) {
    if (left < 0) break;
    left = valuesLeft(member, left);
  }
  return left;
}

/** Where its claims stand, without their values; of an array as a whole. At most 500. */
export function shownPaths({ format, claims }: Peeked): readonly ClaimsPath[] {
  const paths: ClaimsPath[] = [];
  const gather = (value: unknown, path: readonly string[]) => {
    if (paths.length >= MAX_PATHS) return;
    const members = isJsonObject(value) ? Object.entries(value) : [];
    if (members.length === 0) paths.push(path);
    for (const [name, member] of members) gather(member, [...path, name]);
  };
  for (const [name, value] of Object.entries(claims)) {
    if (format === 'mso_mdoc' || !OF_TOKEN.has(name)) gather(value, [name]);
  }
  return paths;
}

/** The claims that a query asks for and that are not there: of several sets the fewest. */
export function missingClaims({ claimSets = [] }: CompiledCredentialQuery, { format, claims }: Peeked): readonly ClaimsPath[] {
  // Sets share their claims; each is looked for once, however many sets name it.
  const known = new Map<CompiledClaim, boolean>();
  const isThere = (claim: CompiledClaim): boolean => {
    const { path } = claim;
    const found =
      known.get(claim) ??
      typeof (format === 'mso_mdoc' ? selectElement(claims, path) : selectClaims(claims, path, isUndisclosed)) !== 'string';
    known.set(claim, found);
    return found;
  };
  const lacking = claimSets.map((set) => set.flatMap((claim) => (isThere(claim) ? [] : [claim.path])));
  const [first = [], ...others] = lacking;
  return others.reduce((fewest, one) => (one.length < fewest.length ? one : fewest), first);
}
