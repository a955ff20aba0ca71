import { base64url, importX509, jwtVerify } from 'jose';
import { pem } from './certificates.ts';
import { differentValue, type Json, type JsonObject, overlapsPaths, type Path } from './claims.ts';
import { jsonOfBase64 } from './formats/base64.ts';
import { readJwt } from './formats/jwt.ts';
import { digestText, type HolderKey, randomBytes, signJwt } from './keys.ts';

/** A parsed SD-JWT (RFC 9901). */
export type SdJwt = {
  readonly jwt: string;
  readonly header: JsonObject;
  readonly payload: JsonObject;
  readonly disclosures: readonly Disclosure[];
  /** Claims with all disclosures resolved. */
  readonly claims: JsonObject;
};

export type Disclosure = { readonly text: string; readonly path: Path };
type PendingDisclosure = { readonly text: string; readonly parts: Json[] };

/** Protocol claims, which are not about the holder. */
const PROTOCOL = ['_sd_alg', 'cnf', 'status', 'vct', 'vct#integrity', 'iss', 'iat', 'nbf', 'exp', 'sub'];
/** Limit of the nesting; real credentials are less deep. */
const MAX_DEPTH = 32;

/** @throws Error for an invalid SD-JWT, or a disclosure without a digest. */
export async function readSdJwt(text: string): Promise<SdJwt> {
  const [jwt = '', ...disclosed] = text.split('~').slice(0, -1);
  const { header, payload } = readJwt(jwt) as { header: JsonObject; payload: JsonObject };
  const algorithm = String(payload['_sd_alg'] ?? 'sha-256').toUpperCase();
  const byDigest = new Map<string, PendingDisclosure>();
  for (const disclosure of disclosed)
    byDigest.set(await digestText(disclosure, algorithm), { text: disclosure, parts: jsonOfBase64(disclosure) as Json[] });
  const disclosures: Disclosure[] = [];
  const claims = resolveDisclosures(payload, [], byDigest, disclosures) as JsonObject;
  if (disclosures.length !== disclosed.length) throw new Error('a disclosure of the credential has no signed digest');
  return { jwt, header, payload, disclosures, claims };
}

/** @throws Error for a signature that does not match the certificate in the header. */
export async function verifySdJwt({ jwt, header }: SdJwt): Promise<void> {
  const [leaf] = Array.isArray(header['x5c']) ? header['x5c'] : [];
  if (typeof leaf !== 'string') throw new Error('the credential has no certificate of its signer');
  const alg = String(header['alg']);
  await jwtVerify(jwt, await importX509(pem(leaf), alg), { typ: 'dc+sd-jwt', algorithms: [alg] });
}

export function holderClaims({ claims }: SdJwt): JsonObject {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !PROTOCOL.includes(name)));
}

export type Binding = {
  readonly audience: string;
  readonly nonce: string;
  readonly issuedAt: number;
  readonly holder: HolderKey;
  readonly transactionData: readonly string[];
};

/** Discloses the claims at the paths and binds the presentation to the request (RFC 9901 section 4.3). */
export async function presentSdJwt(
  { jwt, disclosures, payload }: SdJwt,
  paths: readonly Path[],
  binding: Binding,
  altered?: Path,
): Promise<string> {
  const selectedDisclosures = disclosures.filter(({ path }) => overlapsPaths(path, paths));
  const target = selectedDisclosures.find(({ path }) => altered !== undefined && overlapsPaths(path, [altered]));
  const disclosureTexts = selectedDisclosures.map((disclosure) => (disclosure === target ? alteredText(disclosure.text) : disclosure.text));
  const issuerJwt = altered !== undefined && target === undefined ? alteredJwt(jwt, altered) : jwt;
  const bound = [issuerJwt, ...disclosureTexts, ''].join('~');
  const algorithm = String(payload['_sd_alg'] ?? 'sha-256').toUpperCase();
  const { holder, audience, nonce, issuedAt, transactionData } = binding;
  const hashes = await Promise.all(transactionData.map((data) => digestText(data)));
  const claims = {
    iat: issuedAt,
    aud: audience,
    nonce,
    sd_hash: await digestText(bound, algorithm),
    ...(hashes.length > 0 && { transaction_data_hashes: hashes, transaction_data_hashes_alg: 'sha-256' }),
  };
  return bound + (await signJwt(holder, { typ: 'kb+jwt' }, claims));
}

/** Forges a disclosure with another value and a new salt under the same name. */
function alteredText(text: string): string {
  const parts = jsonOfBase64(text) as Json[];
  const forged = [base64url.encode(randomBytes(16)), ...parts.slice(1, -1), differentValue(parts.at(-1) ?? null)];
  return base64url.encode(JSON.stringify(forged));
}

/** Forges a claim in the signed part. */
function alteredJwt(jwt: string, [name]: Path): string {
  const [header, payload = '', signature] = jwt.split('.');
  const claims = jsonOfBase64(payload) as JsonObject;
  const forged = { ...claims, [String(name)]: differentValue(claims[String(name)] ?? null) };
  return [header, base64url.encode(JSON.stringify(forged)), signature].join('.');
}

function resolveDisclosures(
  value: Json,
  path: Path,
  disclosuresByDigest: ReadonlyMap<string, PendingDisclosure>,
  used: Disclosure[],
): Json {
  if (path.length > MAX_DEPTH) throw new Error('the credential is nested too deeply');
  if (Array.isArray(value)) {
    // Decoys are omitted.
    const entries: Json[] = [];
    for (const entry of value) {
      const place = [...path, entries.length];
      const hidden = digestOfEntry(entry);
      const disclosure = hidden === undefined ? undefined : disclosuresByDigest.get(hidden);
      if (hidden !== undefined && disclosure === undefined) continue;
      if (disclosure !== undefined) used.push({ text: disclosure.text, path: place });
      entries.push(resolveDisclosures(disclosure === undefined ? entry : (disclosure.parts[1] as Json), place, disclosuresByDigest, used));
    }
    return entries;
  }
  if (typeof value !== 'object' || value === null) return value;
  const claims: JsonObject = {};
  for (const [name, entry] of Object.entries(value))
    if (name !== '_sd') claims[name] = resolveDisclosures(entry, [...path, name], disclosuresByDigest, used);
  for (const hash of Array.isArray(value['_sd']) ? value['_sd'] : []) {
    const disclosure = disclosuresByDigest.get(String(hash));
    if (disclosure === undefined) continue;
    const name = String(disclosure.parts[1]);
    used.push({ text: disclosure.text, path: [...path, name] });
    claims[name] = resolveDisclosures(disclosure.parts[2] as Json, [...path, name], disclosuresByDigest, used);
  }
  return claims;
}

function digestOfEntry(entry: Json): string | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return undefined;
  return typeof entry['...'] === 'string' ? entry['...'] : undefined;
}
