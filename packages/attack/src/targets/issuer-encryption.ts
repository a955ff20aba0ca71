import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, importJWK } from 'jose';
import type { Answer, Json } from '../core/http.ts';
import { Skip } from '../core/skip.ts';

export type ResponseKey = { readonly parameters: Json; readonly privateKey: KeyObject };

/** The key for an encrypted response (OpenID4VCI 1.0 section 8.2). */
export function newResponseKey(metadata: Json): ResponseKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const enc = metadata.credential_response_encryption?.enc_values_supported?.[0] ?? 'A256GCM';
  const jwk = { ...publicKey.export({ format: 'jwk' }), use: 'enc', alg: 'ECDH-ES', kid: 'response' };
  return { parameters: { jwk, enc }, privateKey };
}

/** An encrypted request (section 10). @throws Skip when the issuer publishes no key. */
export async function encryptBody(metadata: Json, body: unknown, alteration: object = {}): Promise<string> {
  const { jwks, enc_values_supported: encs } = metadata.credential_request_encryption ?? {};
  const jwk = jwks?.keys?.[0];
  if (jwk === undefined) throw new Skip('the metadata has no key for encrypted requests');
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: jwk.alg ?? 'ECDH-ES', enc: encs?.[0] ?? 'A256GCM', kid: jwk.kid, ...alteration } as never)
    .encrypt(await importJWK(jwk, jwk.alg ?? 'ECDH-ES'));
}

export async function decryptAnswer(answer: Answer, { privateKey }: ResponseKey): Promise<Answer> {
  if (answer.status >= 300 || answer.text.split('.').length !== 5) return answer;
  const { plaintext } = await compactDecrypt(answer.text.trim(), privateKey);
  return { ...answer, json: JSON.parse(Buffer.from(plaintext).toString()) };
}
