import { object, z } from 'zod';
import { wholeNumber } from '../shared/bounds.ts';
import type { Timed } from '../shared/resource.ts';

/** Before the secret itself, in base64 (Standard Webhooks). */
const PREFIX = 'whsec_';
/** Standard Webhooks: from 24 to 64. */
export const SECRET_BYTES = 32;
/** Former secrets that sign beside the present one; each is one more signature in the header of every call. */
const MAX_FORMER = 3;
const MAX_OVERLAP_SECONDS = 604_800;
const DEFAULT_OVERLAP_SECONDS = 86_400;

const Signing = z.enum(['v1', 'off']).describe('`v1`: calls bear a signature of the Standard Webhooks; `off`: they bear none');

export const WebhookSecretUpdate = object({ signing: Signing }).meta({ id: 'WebhookSecretUpdate' });
export type WebhookSecretUpdate = z.infer<typeof WebhookSecretUpdate>;

export const WebhookSecretRotation = object({
  overlapSeconds: wholeNumber(0, MAX_OVERLAP_SECONDS)
    .nullish()
    .describe(
      `Seconds that the secret so far goes on signing beside the new one; ${DEFAULT_OVERLAP_SECONDS} unless stated. ` +
        'With 0 nothing but the new one signs from now on',
    ),
}).meta({ id: 'WebhookSecretRotation' });
export type WebhookSecretRotation = z.infer<typeof WebhookSecretRotation>;

type SigningSecret = {
  /** As customers know it: `whsec_` and base64. */
  readonly secret: string;
  readonly createdAt: Date;
};
export type FormerSecret = SigningSecret & { readonly signsUntil: Date };

/** What the calls of a tenant's backends are signed with; one per tenant. */
export type WebhookSecret = Timed & {
  readonly id: 'default';
  readonly signing: z.infer<typeof Signing>;
  /** Absent as long as nobody was told one. */
  readonly current?: SigningSecret;
  /** The newest first. */
  readonly former: readonly FormerSecret[];
};

/** How it stands with a tenant that has written nothing: calls are signed, with a secret that nobody knows. */
export const UNTOLD: WebhookSecret = { id: 'default', signing: 'v1', former: [], createdAt: new Date(0), updatedAt: new Date(0) };

export function writeSecret(bytes: Uint8Array): string {
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/**
 * Puts a new secret in the place of the present one, which goes on signing for a while.
 * @param before undefined where nothing is stored.
 */
export function rotateWebhookSecret(
  before: WebhookSecret | undefined,
  secret: string,
  { overlapSeconds }: WebhookSecretRotation,
  now: Date,
): WebhookSecret & Required<Pick<WebhookSecret, 'current'>> {
  const { current, former, ...rest } = before ?? { ...UNTOLD, createdAt: now };
  const overlapMs = (overlapSeconds ?? DEFAULT_OVERLAP_SECONDS) * 1000;
  const replaced = current === undefined ? [] : [{ ...current, signsUntil: new Date(now.getTime() + overlapMs) }];
  return {
    ...rest,
    current: { secret, createdAt: now },
    former: overlapMs === 0 ? [] : [...replaced, ...former].filter(isSigning(now)).slice(0, MAX_FORMER),
    updatedAt: now,
  };
}

export function switchWebhookSigning(before: WebhookSecret | undefined, { signing }: WebhookSecretUpdate, now: Date): WebhookSecret {
  return { ...(before ?? { ...UNTOLD, createdAt: now }), signing, updatedAt: now };
}

/** Former secrets that sign still. */
export function formerSigning({ former }: WebhookSecret, now: Date): readonly FormerSecret[] {
  return former.filter(isSigning(now));
}

/**
 * The keys that sign a call at this time, the present one first; none where signing is off.
 * @param untold makes the key that signs as long as nobody was told one.
 */
export function signingKeys(secret: WebhookSecret, now: Date, untold: () => Uint8Array): readonly Uint8Array[] {
  if (secret.signing === 'off') return [];
  if (secret.current === undefined) return [untold()];
  return [secret.current, ...formerSigning(secret, now)].map(keyOf);
}

const isSigning =
  (now: Date) =>
  ({ signsUntil }: FormerSecret): boolean =>
    signsUntil > now;

function keyOf({ secret }: SigningSecret): Uint8Array {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}
