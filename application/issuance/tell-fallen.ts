import type { Session } from '../../domain/sessions/session.ts';
import { needs } from '../needs.ts';
import type { EventPublisher } from '../ports/event-publisher.ts';
import type { FallenBatch } from '../ports/followed-wallets.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import { WORLD } from '../transactions/known.ts';
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
  /**
   * @param publisher where other systems subscribe to events: they are told as soon as they can be, and no backend waits
   *   for that.
   * @returns how many were told, at most as many as are told at once.
   */
  async execute(publisher?: EventPublisher): Promise<number> {
    const { store, clock } = this.ports;
    const { maintenance } = store;
    const fallen = await maintenance.fallenBatches(AT_ONCE);
    await Promise.all(
      fallen.map(async (batch) => {
        await this.#tell(batch);
        if (publisher === undefined) await maintenance.forgetFallen(batch);
        else await maintenance.toldOfFallen(batch, clock.now());
      }),
    );
    return fallen.length + (await this.#publish(publisher));
  }

  /** At least once: what stops in between is sent again. */
  async #publish(publisher: EventPublisher | undefined): Promise<number> {
    const { store, log } = this.ports;
    if (publisher?.isReady === false) return 0;
    let published = 0;
    for (const batch of await store.maintenance.fallenBatches(AT_ONCE, true)) {
      try {
        // Without subscribers, any more, there is nobody to be told.
        const { fellAt: at, ...about } = batch;
        const isTaken = publisher === undefined || (await publisher.publishRevocation({ ...about, at }));
        if (!isTaken) {
          log.warn('a queue refuses the event of a revocation, which is given up for it', {
            tenantId: batch.tenantId,
            sessionId: batch.sessionId,
          });
        }
      } catch (error) {
        log.warn('the event of a revocation could not be handed on; it is sent again', {
          tenantId: batch.tenantId,
          reason: error instanceof Error ? error.message : String(error),
        });
        return published;
      }
      await store.maintenance.forgetFallen(batch);
      published++;
    }
    return published;
  }

  /** One attempt; the delivery of the session tells what came of it, and is made again like any other. */
  async #tell({ tenantId, sessionId, batchId, credentialConfigurationId, fellAt }: FallenBatch): Promise<void> {
    const { store, tenantConfigurations, sessionNotes } = this.ports;
    const configured = await tenantConfigurations.stored(tenantId);
    if (configured === undefined) return;
    const session = (await store.read(tenantId).session(sessionId))?.session;
    const notification = {
      id: batchId,
      event: 'credential_revoked',
      credentialConfigurationId,
      eventDescription: 'the wallet provider revoked the wallet or its key store',
    };
    const webhook = await webhookOfOutcome(configured, session ?? { request: null }, credentialConfigurationId);
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
    const about = { configured, session: session ?? { id: sessionId, request: null } };
    const { delivery } = await deliver(this.ports, webhook, intent, { notification }, about);
    const known: Session | undefined = noted;
    if (known !== undefined) await sessionNotes.note(known, (outcome) => withDelivery(outcome, delivery));
  }
}
