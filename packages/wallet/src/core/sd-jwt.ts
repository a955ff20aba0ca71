import { base64url, importX509, jwtVerify } from 'jose';
import { pem } from './certificates.ts';
import { another, isTouched, type Json, type JsonObject, type Path } from './claims.ts';
import { jsonOfBase64 } from './formats/base64.ts';
import { readJwt } from './formats/jwt.ts';
import { digestText, type HolderKey, randomBytes, signJwt } from './keys.ts';

/** An SD-JWT (RFC 9901) taken apart. */
export type SdJwt = {
  readonly jwt: string;
  readonly header: JsonObject;
  readonly payload: JsonObject;
  readonly disclosures: readonly Disclosure[];
  /** With all disclosures in their places. */
  readonly claims: JsonObject;
};

export type Disclosure = { readonly text: string; readonly path: Path };
type Found = { readonly text: string; readonly parts: Json[] };

/** Claims of the protocol, which say nothing about the holder. */
const PROTOCOL = ['_sd_alg', 'cnf', 'status', 'vct', 'vct#integrity', 'iss', 'iat', 'nbf', 'exp', 'sub'];
/** Nothing real is nested deeper. */
const MAX_DEPTH = 32;

/** @throws Error when it is none, or a disclosure belongs nowhere. */
export async function readSdJwt(text: string): Promise<SdJwt> {
  const [jwt = '', ...disclosed] = text.split('~').slice(0, -1);
  const { header, payload } = readJwt(jwt) as { header: JsonObject; payload: JsonObject };
  const algorithm = String(payload['_sd_alg'] ?? 'sha-256').toUpperCase();
  const byDigest = new Map<string, Found>();
  for (const disclosure of disclosed)
    byDigest.set(await digestText(disclosure, algorithm), {
      text: disclosure,
      parts: jsonOfBase64(disclosure) as Json[],
    });
  const disclosures: Disclosure[] = [];
  const claims = unfold(payload, [], byDigest, disclosures) as JsonObject;
  if (disclosures.length !== disclosed.length) throw new Error('a disclosure of the credential belongs to nothing that was signed');
  return { jwt, header, payload, disclosures, claims };
}

/** @throws Error when the certificate in its header did not sign it. */
export async function verifySdJwt({ jwt, header }: SdJwt): Promise<void> {
  const [leaf] = Array.isArray(header['x5c']) ? header['x5c'] : [];
  if (typeof leaf !== 'string') throw new Error('the credential names no certificate of its signer');
  const alg = String(header['alg']);
  await jwtVerify(jwt, await importX509(pem(leaf), alg), { typ: 'dc+sd-jwt', algorithms: [alg] });
}

/** What it says about its holder. */
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

/** Discloses what the paths lead to and binds it to the request (RFC 9901 section 4.3). */
export async function presentSdJwt(
  { jwt, disclosures, payload }: SdJwt,
  paths: readonly Path[],
  binding: Binding,
  altered?: Path,
): Promise<string> {
  const shown = disclosures.filter(({ path }) => isTouched(path, paths));
  const hit = shown.find(({ path }) => altered !== undefined && isTouched(path, [altered]));
  const kept = shown.map((one) => (one === hit ? alteredText(one.text) : one.text));
  const signed = altered !== undefined && hit === undefined ? alteredJwt(jwt, altered) : jwt;
  const bound = [signed, ...kept, ''].join('~');
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

/** Another value under the same name, with a new salt, as somebody would make who has the card and wants another. */
function alteredText(text: string): string {
  const parts = jsonOfBase64(text) as Json[];
  const forged = [base64url.encode(randomBytes(16)), ...parts.slice(1, -1), another(parts.at(-1) ?? null)];
  return base64url.encode(JSON.stringify(forged));
}

/** The same for a claim that stands in what was signed. */
function alteredJwt(jwt: string, [name]: Path): string {
  const [header, payload = '', signature] = jwt.split('.');
  const claims = jsonOfBase64(payload) as JsonObject;
  const forged = { ...claims, [String(name)]: another(claims[String(name)] ?? null) };
  return [header, base64url.encode(JSON.stringify(forged)), signature].join('.');
}

function unfold(value: Json, path: Path, known: ReadonlyMap<string, Found>, used: Disclosure[]): Json {
  if (path.length > MAX_DEPTH) throw new Error('the credential is nested too deeply');
  if (Array.isArray(value)) {
    // Decoys have no place in what is read.
    const entries: Json[] = [];
    for (const entry of value) {
      const place = [...path, entries.length];
      const hidden = hiddenEntry(entry);
      const found = hidden === undefined ? undefined : known.get(hidden);
      if (hidden !== undefined && found === undefined) continue;
      if (found !== undefined) used.push({ text: found.text, path: place });
      entries.push(unfold(found === undefined ? entry : (found.parts[1] as Json), place, known, used));
    }
    return entries;
  }
  if (typeof value !== 'object' || value === null) return value;
  const claims: JsonObject = {};
  for (const [name, entry] of Object.entries(value)) if (name !== '_sd') claims[name] = unfold(entry, [...path, name], known, used);
  for (const hash of Array.isArray(value['_sd']) ? value['_sd'] : []) {
    const found = known.get(String(hash));
    if (found === undefined) continue;
    const name = String(found.parts[1]);
    used.push({ text: found.text, path: [...path, name] });
    claims[name] = unfold(found.parts[2] as Json, [...path, name], known, used);
  }
  return claims;
}

function hiddenEntry(entry: Json): string | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return undefined;
  return typeof entry['...'] === 'string' ? entry['...'] : undefined;
}
