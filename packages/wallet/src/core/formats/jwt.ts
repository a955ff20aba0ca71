import { jsonOfBase64 } from './base64.ts';

/** Parses header and payload of a compact JWS without verifying it. @throws Error when one of them is not JSON. */
export function readJwt(jwt: string): { readonly header: unknown; readonly payload: unknown } {
  const [header = '', payload = ''] = jwt.split('.');
  return { header: jsonOfBase64(header), payload: jsonOfBase64(payload) };
}
