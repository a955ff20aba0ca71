import { base64url, type CryptoKey, SignJWT } from 'jose';

/** An EC key on P-256, whose private part stays in WebCrypto. */
export type HolderKey = { readonly privateKey: CryptoKey; readonly publicJwk: PublicJwk };
export type PublicJwk = { readonly kty: 'EC'; readonly crv: string; readonly x: string; readonly y: string };

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/** @param isExportable true for a wallet that stores its credentials in a file. */
export async function newKey(isExportable = false): Promise<HolderKey> {
  const pair = await crypto.subtle.generateKey(ALGORITHM, isExportable, ['sign', 'verify']);
  const { crv = '', x = '', y = '' } = await crypto.subtle.exportKey('jwk', pair.publicKey);
  return { privateKey: pair.privateKey, publicJwk: { kty: 'EC', crv, x, y } };
}

/** ECDSA with SHA-256; the signature has the format of JOSE and COSE. */
export async function signBytes({ privateKey }: HolderKey, bytes: Uint8Array): Promise<Uint8Array> {
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, plain(bytes));
  return new Uint8Array(signature);
}

export function signJwt({ privateKey }: HolderKey, header: object, payload: object): Promise<string> {
  return new SignJWT({ ...payload }).setProtectedHeader({ ...header, alg: 'ES256' }).sign(privateKey);
}

export async function digest(bytes: Uint8Array, algorithm = 'SHA-256'): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, plain(bytes)));
}

export async function digestText(text: string, algorithm?: string): Promise<string> {
  return base64url.encode(await digest(new TextEncoder().encode(text), algorithm));
}

export function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(length));
}

/** WebCrypto rejects views on shared memory. */
function plain(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
