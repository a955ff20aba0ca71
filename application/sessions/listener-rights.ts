import type { Session } from '../../domain/sessions/session.ts';
import type { Listener } from '../caller.ts';
import { rightsOf } from '../clients/rights.ts';
import type { TenantState } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configurations.ts';
import { isVisible } from './visibility.ts';

/**
 * What a caller may see for as long as it listens. A stream outlives the request that opened it, and the client can
 * lose its roles, its restrictions can change, and it or its tenant can go. The same counts as for a new request.
 */
export class ListenerRights {
  readonly #tenantConfigurations: TenantConfigurations;
  #caller: Listener;

  constructor(tenantConfigurations: TenantConfigurations, caller: Listener) {
    this.#tenantConfigurations = tenantConfigurations;
    this.#caller = caller;
  }

  /** The end of the access token: a stream gives no more than the requests that the token is good for. */
  get expiresAt(): Date {
    return this.#caller.access.expiresAt;
  }

  /** @param head the tenant as it stands now. The client is looked up again only when something of it changed. */
  async cover(session: Session, head: TenantState): Promise<boolean> {
    if (head.status !== 'active') return false;
    if (head.revision !== this.#caller.configured.state.revision) {
      const configured = this.#tenantConfigurations.of(head);
      const rights = await rightsOf(this.#caller.access, configured);
      if (typeof rights === 'string') return false;
      this.#caller = { ...this.#caller, ...rights, configured };
    }
    return isVisible(this.#caller, session);
  }
}
