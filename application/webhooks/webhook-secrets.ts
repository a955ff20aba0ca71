import { Failure } from '../../domain/shared/failure.ts';
import {
  type FormerSecret,
  formerSigning,
  rotateWebhookSecret,
  SECRET_BYTES,
  switchWebhookSigning,
  UNTOLD,
  type WebhookSecret,
  type WebhookSecretRotation,
  type WebhookSecretUpdate,
  writeSecret,
} from '../../domain/webhooks/webhook-secret.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { Store } from '../ports/store.ts';
import { changeOwnAlone } from '../transactions/own-changes.ts';

/** What signs the calls of a tenant's backends, with the former secrets that sign still. */
export type SigningState = { readonly stored: WebhookSecret; readonly signing: readonly FormerSecret[] };

function stateOf(stored: WebhookSecret, now: Date): SigningState {
  return { stored, signing: formerSigning(stored, now) };
}

const ROLES = ['issuance:manage', 'presentation:manage'] as const;

/** Who knows the secret could tell the tenant's backends what was presented, and what is to be issued. */
function assertMaySign({ roles }: TenantCaller): void {
  if (ROLES.every((role) => roles.includes(role))) return;
  throw new Failure('forbidden', `this signs what both sides tell backends, and needs the roles ${ROLES.join(' and ')}`);
}

export class GetWebhookSecret extends needs({ store: Store, clock: Clock }) {
  async execute({ tenantId }: TenantCaller): Promise<SigningState> {
    const { store, clock } = this.ports;
    const stored = await store.forTenant(tenantId, ({ webhookSecret }) => webhookSecret.find('default'));
    return stateOf(stored ?? UNTOLD, clock.now());
  }
}

/** Switches signing on or off; secrets stay what they are. */
export class UpdateWebhookSecret extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `forbidden`. */
  async execute(caller: TenantCaller, wanted: WebhookSecretUpdate): Promise<SigningState> {
    assertMaySign(caller);
    const { store, clock } = this.ports;
    return changeOwnAlone(store, caller, async ({ webhookSecret: documents }) => {
      const now = clock.now();
      const stored = switchWebhookSigning(await documents.find('default'), wanted, now);
      await documents.put(stored);
      return stateOf(stored, now);
    });
  }
}

/** Makes a new secret, which is told here and nowhere else. Of several at once each follows upon the one before. */
export class RotateWebhookSecret extends needs({ store: Store, clock: Clock, random: Random }) {
  /** @returns `secret` as customers know it. @throws Failure `forbidden`. */
  async execute(caller: TenantCaller, wanted: WebhookSecretRotation): Promise<SigningState & { readonly secret: string }> {
    assertMaySign(caller);
    const { store, clock, random } = this.ports;
    const secret = writeSecret(random.bytes(SECRET_BYTES));
    return changeOwnAlone(store, caller, async ({ webhookSecret: documents }) => {
      const now = clock.now();
      const stored = rotateWebhookSecret(await documents.find('default'), secret, wanted, now);
      await documents.put(stored);
      return { ...stateOf(stored, now), secret };
    });
  }
}
