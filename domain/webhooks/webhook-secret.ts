import { object, z } from 'zod';
import { wholeNumber } from '../shared/bounds.ts';
import type { Timed } from '../shared/resource.ts';

/** Prefix of the base64 secret (Standard Webhooks). */
const PREFIX = 'whsec_';
/** Standard Webhooks: from 24 to 64. */
export const SECRET_BYTES = 32;
/** Limit of previous secrets that also sign; each adds a signature to the header of every call. */
const MAX_PREVIOUS_SECRETS = 3;
const MAX_OVERLAP_SECONDS = 604_800;
const DEFAULT_OVERLAP_SECONDS = 86_400;

const Signing = z.enum(['v1', 'off']).describe('`v1`: calls are signed (Standard Webhooks); `off`: they are not signed');

export const WebhookSecretUpdate = object({ signing: Signing }).meta({ id: 'WebhookSecretUpdate' });
export type WebhookSecretUpdate = z.infer<typeof WebhookSecretUpdate>;

export const WebhookSecretRotation = object({
  overlapSeconds: wholeNumber(0, MAX_OVERLAP_SECONDS)
    .nullish()
    .describe(
      `Seconds that the present secret continues to sign together with the new one. Default: ${DEFAULT_OVERLAP_SECONDS}. ` +
        'With 0 nothing but the new one signs from now on',
    ),
}).meta({ id: 'WebhookSecretRotation' });
export type WebhookSecretRotation = z.infer<typeof WebhookSecretRotation>;

type SigningSecret = {
  /** The form for backends: `whsec_` and base64. */
  readonly secret: string;
  readonly createdAt: Date;
};
export type PreviousSecret = SigningSecret & { readonly signsUntil: Date };

/** Secrets that sign the webhook calls of a tenant; one object per tenant. */
export type WebhookSecret = Timed & {
  readonly id: 'default';
  readonly signing: z.infer<typeof Signing>;
  /** Absent until a secret was shown. */
  readonly current?: SigningSecret;
  /** Newest first. */
  readonly former: readonly PreviousSecret[];
};

/** The state of a tenant without stored secrets: calls are signed with a secret that was not shown yet. */
export const INITIAL_WEBHOOK_SECRET: WebhookSecret = {
  id: 'default',
  signing: 'v1',
  former: [],
  createdAt: new Date(0),
  updatedAt: new Date(0),
};

export function writeSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/**
 * Replaces the current secret, which also signs for the overlap.
 * @param previous undefined if nothing is stored.
 */
export function rotateWebhookSecret(
  previous: WebhookSecret | undefined,
  secret: string,
  { overlapSeconds }: WebhookSecretRotation,
  now: Date,
): WebhookSecret & Required<Pick<WebhookSecret, 'current'>> {
  const { current, former: previousSecrets, ...properties } = previous ?? { ...INITIAL_WEBHOOK_SECRET, createdAt: now };
  const overlapMs = (overlapSeconds ?? DEFAULT_OVERLAP_SECONDS) * 1000;
  const replacedSecrets = current === undefined ? [] : [{ ...current, signsUntil: new Date(now.getTime() + overlapMs) }];
  return {
    ...properties,
    current: { secret, createdAt: now },
    former: overlapMs === 0 ? [] : [...replacedSecrets, ...previousSecrets].filter(isSigning(now)).slice(0, MAX_PREVIOUS_SECRETS),
    updatedAt: now,
  };
}

export function switchWebhookSigning(previous: WebhookSecret | undefined, { signing }: WebhookSecretUpdate, now: Date): WebhookSecret {
  return { ...(previous ?? { ...INITIAL_WEBHOOK_SECRET, createdAt: now }), signing, updatedAt: now };
}

/** Previous secrets that still sign. */
export function activePreviousSecrets({ former: previousSecrets }: WebhookSecret, now: Date): readonly PreviousSecret[] {
  return previousSecrets.filter(isSigning(now));
}

/**
 * The keys that sign a call at this time, the current one first; none if signing is off.
 * @param initialKey derives the key that signs until a secret was shown.
 */
export function signingKeys(secret: WebhookSecret, now: Date, initialKey: () => Uint8Array): readonly Uint8Array[] {
  if (secret.signing === 'off') return [];
  if (secret.current === undefined) return [initialKey()];
  return [secret.current, ...activePreviousSecrets(secret, now)].map(keyOf);
}

const isSigning =
  (now: Date) =>
  ({ signsUntil }: PreviousSecret): boolean =>
    signsUntil > now;

function keyOf({ secret }: SigningSecret): Uint8Array {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}
