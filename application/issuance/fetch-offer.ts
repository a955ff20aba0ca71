import { statusAt } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configuration.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly clock: Clock;
  readonly eventBus: EventBus;
};

/** A wallet fetches an offer by reference (OpenID4VCI 1.0 section 4.1.3). */
export class FetchOffer {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`, alike for an offer that never was and one that is over. */
  async execute(tenantId: TenantId, publicId: PublicId): Promise<JsonObject> {
    const { store, tenantConfigurations, clock, eventBus } = this.#ports;
    const now = clock.now();
    const found = await store.beats(tenantId).fetchSession(publicId, now);
    tenantConfigurations.ofWallet(found?.head);
    const session = found?.session;
    const open = session !== undefined && ['active', 'fetched', 'completed'].includes(statusAt(session, now));
    // A wallet that began by itself has a session, and no offer.
    if (!open || session.request?.kind !== 'issuance' || session.request.offerUrl === '')
      throw new Failure('not_found', 'unknown or expired offer');
    if (found?.changed) eventBus.publish({ type: 'session', tenantId, sessionId: session.id });
    return session.request.offer;
  }
}
