import { Failure } from '../../domain/shared/failure.ts';
import {
  activePreviousSecrets,
  INITIAL_WEBHOOK_SECRET,
  type PreviousSecret,
  rotateWebhookSecret,
  SECRET_BYTES,
  switchWebhookSigning,
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
import { changeTenantExclusively } from '../transactions/tenant-changes.ts';

/** The current secret of a tenant, with former secrets that are still used. */
export type SigningState = { readonly stored: WebhookSecret; readonly signing: readonly PreviousSecret[] };

function stateOf(secret: WebhookSecret, now: Date): SigningState {
  return { stored: secret, signing: activePreviousSecrets(secret, now) };
}

const ROLES = ['issuance:manage', 'presentation:manage'] as const;

/** The holder of the secret could forge calls about presentations and issuances, so roles of both sides are required. */
function assertMayManage({ roles }: TenantCaller): void {
  if (ROLES.every((role) => roles.includes(role))) return;
  throw new Failure(
    'forbidden',
    `this secret signs the webhooks of issuance and verification, and requires the roles ${ROLES.join(' and ')}`,
  );
}

export class GetWebhookSecret extends needs({ store: Store, clock: Clock }) {
  async execute({ tenantId }: TenantCaller): Promise<SigningState> {
    const { store, clock } = this.ports;
    const storedSecret = await store.forTenant(tenantId, ({ webhookSecret }) => webhookSecret.find('default'));
    return stateOf(storedSecret ?? INITIAL_WEBHOOK_SECRET, clock.now());
  }
}

/** Switches signing on or off; the secrets are kept. */
export class UpdateWebhookSecret extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `forbidden`. */
  async execute(caller: TenantCaller, update: WebhookSecretUpdate): Promise<SigningState> {
    assertMayManage(caller);
    const { store, clock } = this.ports;
    return changeTenantExclusively(store, caller, async ({ webhookSecret: documents }) => {
      const now = clock.now();
      const storedSecret = switchWebhookSigning(await documents.find('default'), update, now);
      await documents.put(storedSecret);
      return stateOf(storedSecret, now);
    });
  }
}

/** Creates a new secret, which is returned only here. Concurrent calls are serialized. */
export class RotateWebhookSecret extends needs({ store: Store, clock: Clock, random: Random }) {
  async execute(caller: TenantCaller, rotation: WebhookSecretRotation): Promise<SigningState & { readonly secret: string }> {
    assertMayManage(caller);
    const { store, clock, random } = this.ports;
    const secret = writeSecret(random.bytes(SECRET_BYTES));
    return changeTenantExclusively(store, caller, async ({ webhookSecret: documents }) => {
      const now = clock.now();
      const storedSecret = rotateWebhookSecret(await documents.find('default'), secret, rotation, now);
      await documents.put(storedSecret);
      return { ...stateOf(storedSecret, now), secret };
    });
  }
}
