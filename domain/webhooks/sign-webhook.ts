import { createHmac } from 'node:crypto';

/**
 * Headers by which a backend verifies the origin and the time of a call (Standard Webhooks, symmetric signatures).
 * @param id of the delivery. @param body the exact bytes that are sent.
 * @param keys one signature each; without keys there are no headers.
 */
export function signatureHeaders(id: string, body: string, keys: readonly Uint8Array[], now: Date): Readonly<Record<string, string>> {
  if (keys.length === 0) return {};
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const signedContent = `${id}.${timestamp}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signedContent).digest('base64')}`);
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
