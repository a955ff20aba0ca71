import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Cbor, decodeCbor, Tagged } from '../../../wallet/src/core/formats/cbor.ts';
import type { Json } from '../core/http.ts';
import { type Key, payloadOf } from '../core/jwt.ts';

/** A credential with the key to which it was issued. */
export type HeldCredential = {
  readonly text: string;
  readonly key: Key;
  readonly format: 'dc+sd-jwt' | 'mso_mdoc';
  /** Its vct, or its document type. */
  readonly type: string;
  /** The Vidimus that issued it. */
  readonly session: string | undefined;
};

export function heldOf(text: string, key: Key, session?: string): HeldCredential {
  if (text.includes('~')) {
    return { text, key, format: 'dc+sd-jwt', type: String(payloadOf(text.split('~')[0] ?? '').vct), session };
  }
  const issuerAuth = (decodeCbor(Buffer.from(text, 'base64url')) as Map<Cbor, Cbor>).get('issuerAuth') as Cbor[];
  const tagged = decodeCbor(issuerAuth[2] as Uint8Array);
  const mso = decodeCbor((tagged instanceof Tagged ? tagged.value : tagged) as Uint8Array) as Map<Cbor, Cbor>;
  return { text, key, format: 'mso_mdoc', type: String(mso.get('docType')), session };
}

/** @param keyFile a private JWK. */
export function heldFromFiles(file: string, keyFile: string): HeldCredential {
  const privateKey = createPrivateKey({ key: JSON.parse(readFileSync(keyFile, 'utf8')), format: 'jwk' });
  const { kty, crv, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  return heldOf(readFileSync(file, 'utf8').trim(), { privateKey, jwk: { kty, crv, x, y } });
}

/** True if a credential has the type of a query (OpenID4VP 1.0 appendix B). */
export function fits(held: Pick<HeldCredential, 'format' | 'type'>, query: Json): boolean {
  if (held.format !== query.format) return false;
  if (held.format === 'mso_mdoc') return query.meta?.doctype_value === held.type;
  return (query.meta?.vct_values ?? []).includes(held.type);
}
