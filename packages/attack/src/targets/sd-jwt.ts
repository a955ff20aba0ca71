import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import type { Json } from '../core/http.ts';
import { type Alteration, base64url, type Key, makeJwt, now, sha256 } from '../core/jwt.ts';
import type { HeldCredential } from './held-credential.ts';
import type { FetchedRequest } from './requests.ts';

export type CardAlteration = {
  /** Modifies the issuer-signed JWT. */
  readonly jwt?: (jwt: string) => string;
  readonly disclosures?: (disclosed: readonly string[], allDisclosures: readonly string[]) => readonly string[];
  readonly keyBinding?: Alteration;
  readonly key?: Key;
  /** Modifies the signed key binding JWT. */
  readonly kb?: (kb: string) => string;
  /** Modifies the complete presentation after its signature. */
  readonly after?: (text: string) => string;
};

export const disclosure = (...parts: readonly unknown[]): string => base64url(JSON.stringify(parts));

/** An SD-JWT with the requested disclosures, bound to the request (RFC 9901 section 4.3). */
export function presentCard(
  { payload }: Pick<FetchedRequest, 'payload'>,
  query: Json,
  held: HeldCredential,
  alteration: CardAlteration = {},
): string {
  const [issued = '', ...allDisclosures] = held.text.split('~').slice(0, -1);
  const names = new Set((query.claims ?? []).flatMap(({ path }: Json) => path));
  const requestedDisclosures = allDisclosures.filter((disclosure) => {
    const parts = jsonOfBase64(disclosure) as unknown[];
    return parts.length === 2 || names.has(parts[1]);
  });
  const bound = [
    alteration.jwt?.(issued) ?? issued,
    ...(alteration.disclosures?.(requestedDisclosures, allDisclosures) ?? requestedDisclosures),
    '',
  ].join('~');
  const content = { iat: now(), aud: payload.client_id, nonce: payload.nonce, sd_hash: sha256(bound), ...alteration.keyBinding?.payload };
  const kb = makeJwt(alteration.key ?? held.key, { alg: 'ES256', typ: 'kb+jwt', ...alteration.keyBinding?.header }, content);
  const presentation = bound + (alteration.kb?.(kb) ?? kb);
  return alteration.after?.(presentation) ?? presentation;
}
