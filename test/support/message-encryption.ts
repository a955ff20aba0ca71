import { generateKeyPairSync } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, importJWK, type JWK } from 'jose';

/** A key for the encryption of responses to a wallet. */
export function responseKey(properties: JWK = {}): { readonly jwk: JWK; readonly privateJwk: JWK } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...publicKey.export({ format: 'jwk' }), alg: 'ECDH-ES', kid: 'w-1', ...properties } as JWK;
  return { jwk, privateJwk: privateKey.export({ format: 'jwk' }) as JWK };
}

/** Encrypts a request with another implementation; `header` overrides the protected header. */
export async function encryptMessage(jwk: JWK, message: unknown, header: Record<string, unknown> = {}): Promise<string> {
  const { alg = 'ECDH-ES', kid } = jwk;
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg, enc: 'A128GCM', ...(kid !== undefined && { kid }), ...header })
    .encrypt(await importJWK({ ...jwk, alg }, String(header['alg'] ?? alg)));
}

/** Decrypts a response with another implementation. */
export async function decryptMessage(jwe: string, privateJwk: JWK) {
  const { plaintext, protectedHeader } = await compactDecrypt(jwe, await importJWK(privateJwk, 'ECDH-ES'));
  const header = protectedHeader as unknown as Record<string, unknown>;
  return { header, body: JSON.parse(Buffer.from(plaintext).toString()) };
}
