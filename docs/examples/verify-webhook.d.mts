/** See `verify-webhook.mjs`. */
export class WebhookVerificationError extends Error {}

export function verifyWebhook(
  headers: { readonly [name: string]: string | readonly string[] | undefined } | { get(name: string): string | null },
  rawBody: string | Uint8Array,
  secrets: string | readonly string[],
  options?: { readonly toleranceSeconds?: number; readonly now?: Date },
): string;
