import { createHash, type KeyObject } from 'node:crypto';
import type { Jwk, JwtSigner } from '@openid4vc/oauth2';
import { exportJWK, importX509, jwtVerify, SignJWT } from 'jose';

export type Key = { readonly privateKey: KeyObject; readonly publicJwk: Jwk };

export type StoredCredential = { readonly configurationId: string; readonly text: string; readonly holder: Key };

export type PresentationRequest = {
  readonly clientId: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Certificates of the signer, DER in standard base64, leaf first; empty for an unsigned request. */
  readonly signedBy: readonly string[];
  /** Paths of the claims that the verifier asks for, dotted, per query. */
  readonly asked: Readonly<Record<string, readonly string[]>>;
};

/** The payload with the paths that it asks for. */
export function toPresentationRequest(resolved: object, clientId: string, signer: JwtSigner | undefined): PresentationRequest {
  const payload = resolved as Record<string, unknown>;
  const query = payload['dcql_query'] as { credentials: { id: string; claims?: { path: (string | number | null)[] }[] }[] };
  const requestedPaths = query.credentials.map(({ id, claims }) => [id, (claims ?? []).map(({ path }) => path.join('.'))] as const);
  const signedBy = signer?.method === 'x5c' ? signer.x5c : [];
  return { clientId, payload, asked: Object.fromEntries(requestedPaths), signedBy };
}

/** One for each query, by its id. */
export async function presentations(
  asked: PresentationRequest['asked'],
  credential: StoredCredential,
  nonce: string,
  audience: string,
): Promise<Record<string, string[]>> {
  const vpToken: Record<string, string[]> = {};
  for (const [id, claims] of Object.entries(asked)) {
    const names = new Set(claims.flatMap((claim) => claim.split('.')));
    vpToken[id] = [await presentation(credential, names, nonce, audience)];
  }
  return vpToken;
}

/** Credentials of one answer, each with the key of its place. */
export async function toStoredCredentials(
  configurationId: string,
  entries: readonly unknown[] = [],
  holders: readonly Key[],
): Promise<readonly StoredCredential[]> {
  const received: StoredCredential[] = [];
  for (const [index, entry] of entries.entries()) {
    const text = String((entry as { credential: unknown }).credential);
    if (text.includes('~')) await verifyIssuerSignature(text);
    const holder = holders[index];
    if (holder === undefined) throw new Error('more credentials than keys');
    received.push({ configurationId, text, holder });
  }
  return received;
}

export async function verifySigner(signer: JwtSigner, { compact }: { compact: string }) {
  const certificate = signer.method === 'x5c' ? signer.x5c[0] : undefined;
  if (certificate === undefined) return { verified: false as const };
  const key = await importX509(pem(certificate), signer.alg);
  try {
    await jwtVerify(compact, key, { typ: 'oauth-authz-req+jwt' });
    return { verified: true as const, signerJwk: (await exportJWK(key)) as Jwk };
  } catch {
    return { verified: false as const };
  }
}

async function verifyIssuerSignature(credential: string): Promise<void> {
  const [jwt = ''] = credential.split('~');
  const { x5c } = JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString()) as { x5c: string[] };
  await jwtVerify(jwt, await importX509(pem(x5c[0] ?? ''), 'ES256'), { typ: 'dc+sd-jwt' });
}

function pem(certificate: string): string {
  return `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----`;
}

/** Keeps the disclosures of the wanted names and binds them to the request (RFC 9901 section 4.3). */
async function presentation(credential: StoredCredential, names: ReadonlySet<string>, nonce: string, audience: string) {
  const [jwt = '', ...disclosures] = credential.text.split('~').slice(0, -1);
  const selectedDisclosures = disclosures.filter((disclosure) => {
    const disclosureParts = JSON.parse(Buffer.from(disclosure, 'base64url').toString()) as unknown[];
    return disclosureParts.length === 2 || names.has(String(disclosureParts[1]));
  });
  const bound = [jwt, ...selectedDisclosures, ''].join('~');
  const keyBinding = await new SignJWT({ nonce, sd_hash: createHash('sha256').update(bound).digest('base64url') })
    .setProtectedHeader({ alg: 'ES256', typ: 'kb+jwt' })
    .setAudience(audience)
    .setIssuedAt()
    .sign(credential.holder.privateKey);
  return bound + keyBinding;
}

/** The claims of a credential for display. */
export function readableClaims(text: string): Record<string, unknown> {
  const [, ...disclosures] = text.split('~').slice(0, -1);
  const claims: Record<string, unknown> = {};
  for (const disclosure of disclosures) {
    const disclosureParts = JSON.parse(Buffer.from(disclosure, 'base64url').toString()) as unknown[];
    if (disclosureParts.length === 3) claims[String(disclosureParts[1])] = disclosureParts[2];
  }
  return claims;
}
