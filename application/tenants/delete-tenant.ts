import type { TenantId } from '../../domain/shared/ids.ts';
import type { Caller } from '../caller.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store; readonly eventBus: EventBus };

/** Removes a tenant with everything that is its own. Its tokens end at once. */
export class DeleteTenant {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: Caller, id: TenantId): Promise<void> {
    const { store, eventBus } = this.#ports;
    await store.forService(({ tenants }) => tenants.remove(id), { by: caller });
    eventBus.publish({ type: 'tenant', tenantId: id });
  }
}
