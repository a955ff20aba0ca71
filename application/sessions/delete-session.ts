import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { TenantCaller } from '../caller.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Store } from '../ports/store.ts';
import { readVisibleSession } from './visibility.ts';

type Ports = { readonly store: Store; readonly eventBus: EventBus };

/** Removes a session with all it holds; a wallet finds it gone. */
export class DeleteSession {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: SessionId): Promise<void> {
    const { store, eventBus } = this.#ports;
    await readVisibleSession(store, caller, id);
    const removed = await store.beats(caller.tenantId).removeSession(id, caller);
    if (!removed) throw new Failure('not_found', 'there is no such session');
    eventBus.publish({ type: 'session', tenantId: caller.tenantId, sessionId: id });
  }
}
