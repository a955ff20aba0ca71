import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import type { Json } from './http.ts';

export type Key = { readonly privateKey: KeyObject; readonly jwk: Json };

/** Generates a P-256 key with its public half. */
export function newKey(): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' });
  return { privateKey, jwk: { kty, crv, x, y } };
}

/** Properties that are overridden by undefined are omitted. */
export type Alteration = { readonly header?: object; readonly payload?: object };

export const now = (): number => Math.floor(Date.now() / 1000);
export const base64url = (text: string | Buffer): string => Buffer.from(text).toString('base64url');
export const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('base64url');

const encode = (value: object): string => base64url(JSON.stringify(value));

/** A compact JWS with an ES256 signature, independent of its header. */
export function makeJwt(key: Key, header: object, payload: object): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${base64url(sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }))}`;
}

/** The same content with `alg: none` and no signature. */
export function unsigned(jwt: string): string {
  const [head = '', payload = ''] = jwt.split('.');
  return `${encode({ ...read(head), alg: 'none' })}.${payload}.`;
}

/** The same content, signed by HS256 with a public text: the public key. */
export function symmetric(jwt: string, secret: string): string {
  const [head = '', payload = ''] = jwt.split('.');
  const input = `${encode({ ...read(head), alg: 'HS256' })}.${payload}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

/** Another payload with the old signature. */
export function withPayload(jwt: string, change: object): string {
  const [head, payload = '', signature] = jwt.split('.');
  return `${head}.${encode({ ...read(payload), ...change })}.${signature}`;
}

/** The signature with one changed byte. */
export function withBrokenSignature(jwt: string): string {
  const [head, payload, signature = ''] = jwt.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  bytes[10] = (bytes[10] ?? 0) ^ 1;
  return `${head}.${payload}.${base64url(bytes)}`;
}

const read = (part: string): Json => jsonOfBase64(part) as Json;
export const headerOf = (jwt: string): Json => read(jwt.split('.')[0] ?? '');
export const payloadOf = (jwt: string): Json => read(jwt.split('.')[1] ?? '');

/** RFC 9449 section 4.2. */
export function dpopProof(key: Key, method: string, url: string, claims: object, alteration: Alteration = {}): string {
  return makeJwt(
    key,
    { typ: 'dpop+jwt', alg: 'ES256', jwk: key.jwk, ...alteration.header },
    { jti: randomUUID(), htm: method, htu: url, iat: now(), ...claims, ...alteration.payload },
  );
}

/** OpenID4VCI 1.0 appendix F.1. */
export function keyProof(key: Key, issuer: string, nonce: string | undefined, alteration: Alteration = {}): string {
  return makeJwt(
    key,
    { typ: 'openid4vci-proof+jwt', alg: 'ES256', jwk: key.jwk, ...alteration.header },
    { aud: issuer, iat: now(), ...(nonce === undefined ? {} : { nonce }), ...alteration.payload },
  );
}

/** RFC 7638, for keys on a curve. */
export const thumbprint = ({ crv, kty, x, y }: Json): string =>
  sha256(JSON.stringify(y === undefined ? { crv, kty, x } : { crv, kty, x, y }));
