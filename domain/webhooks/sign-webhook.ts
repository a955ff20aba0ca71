import { createHmac } from 'node:crypto';

/**
 * The headers by which a backend tells that a call comes from its issuer or verifier, and when it was made (Standard
 * Webhooks, symmetric signatures).
 * @param id of the delivery. @param body as it is sent, byte for byte.
 * @param keys one signature each; without any the call bears none of these headers.
 */
export function signatureHeaders(id: string, body: string, keys: readonly Uint8Array[], now: Date): Readonly<Record<string, string>> {
  if (keys.length === 0) return {};
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
