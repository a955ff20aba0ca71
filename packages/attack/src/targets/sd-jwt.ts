import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import type { Json } from '../core/http.ts';
import { type Bend, base64url, type Key, makeJwt, now, sha256 } from '../core/jwt.ts';
import type { Held } from './held.ts';
import type { Asked } from './requests.ts';

export type CardBend = {
  /** Changes the issuer's part. */
  readonly jwt?: (jwt: string) => string;
  readonly disclosures?: (shown: readonly string[], all: readonly string[]) => readonly string[];
  readonly keyBinding?: Bend;
  readonly key?: Key;
  /** Changes the finished key binding. */
  readonly kb?: (kb: string) => string;
  /** Changes the whole presentation after it was bound. */
  readonly after?: (text: string) => string;
};

export const disclosure = (...parts: readonly unknown[]): string => base64url(JSON.stringify(parts));

/** An SD-JWT with the disclosures that were asked for, bound to the request (RFC 9901 section 4.3). */
export function presentCard({ payload }: Pick<Asked, 'payload'>, query: Json, held: Held, bend: CardBend = {}): string {
  const [issued = '', ...all] = held.text.split('~').slice(0, -1);
  const names = new Set((query.claims ?? []).flatMap(({ path }: Json) => path));
  const asked = all.filter((one) => {
    const parts = jsonOfBase64(one) as unknown[];
    return parts.length === 2 || names.has(parts[1]);
  });
  const bound = [bend.jwt?.(issued) ?? issued, ...(bend.disclosures?.(asked, all) ?? asked), ''].join('~');
  const content = {
    iat: now(),
    aud: payload.client_id,
    nonce: payload.nonce,
    sd_hash: sha256(bound),
    ...bend.keyBinding?.payload,
  };
  const kb = makeJwt(bend.key ?? held.key, { alg: 'ES256', typ: 'kb+jwt', ...bend.keyBinding?.header }, content);
  const whole = bound + (bend.kb?.(kb) ?? kb);
  return bend.after?.(whole) ?? whole;
}
