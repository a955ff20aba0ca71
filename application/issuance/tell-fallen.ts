import type { Session } from '../../domain/sessions/session.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import type { FallenBatch } from '../ports/followed-wallets.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import { deliver, intend, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfOutcome } from '../webhooks/outcome-webhook.ts';

/** Backends that are called at the same time. */
const AT_ONCE = 8;

/** Tells backends of credentials that were revoked with their wallets, and has their sessions say so. */
export class TellFallen extends needs({
  ...WORLD,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  random: Random,
  log: Log,
}) {
  /** @returns how many were told, at most as many as are told at once. */
  async execute(): Promise<number> {
    const { maintenance } = this.ports.store;
    const fallen = await maintenance.fallenBatches(AT_ONCE);
    await Promise.all(
      fallen.map(async (batch) => {
        await this.#tell(batch);
        await maintenance.forgetFallen(batch);
      }),
    );
    return fallen.length;
  }

  /** One attempt; the delivery of the session tells what came of it, and is made again like any other. */
  async #tell({
    tenantId,
    sessionId,
    batchId,
    credentialConfigurationId,
    fellAt,
  }: FallenBatch): Promise<void> {
    const { store, tenantConfigurations, sessionNotes } = this.ports;
    const configured = await tenantConfigurations.stored(tenantId);
    if (configured === undefined) return;
    const session = (await store.read(tenantId).session(sessionId))?.session;
    const notification = {
      ...{ id: batchId, event: 'credential_revoked', credentialConfigurationId },
      eventDescription: 'the wallet provider revoked the wallet or its key store',
    };
    const webhook = await webhookOfOutcome(
      configured,
      session ?? { request: null },
      credentialConfigurationId,
    );
    const intent = intend(this.ports, 'notification', { notification });
    // What is left of a session that was cleaned up says nothing any more.
    const kept = session?.request === null ? undefined : session;
    const fell = { id: batchId, credentialConfigurationId, at: fellAt.toISOString() };
    const noted =
      kept &&
      (await sessionNotes.note(kept, (outcome) => {
        const next = { ...outcome, revokedWithWallet: [...(outcome?.revokedWithWallet ?? []), fell] };
        return webhook === undefined ? next : withDelivery(next, intent);
      }));
    if (webhook === undefined) return;
    const about = { configured, session: sessionId };
    const body: JsonObject = { session: sessionId, notification };
    const { delivery } = await deliver(this.ports, webhook, intent, body, about);
    const known: Session | undefined = noted;
    if (known !== undefined) await sessionNotes.note(known, (outcome) => withDelivery(outcome, delivery));
  }
}
