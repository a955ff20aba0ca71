import type { Session } from '../../domain/sessions/session.ts';
import type { TenantCaller } from '../caller.ts';
import type { TenantHead } from '../ports/store.ts';
import type { TenantViews } from '../steps/tenant-views.ts';
import { isVisible } from './visibility.ts';

/**
 * What a caller may see for as long as it listens. A stream outlives the request that opened it, and the client can
 * lose its roles, its restrictions can change, and it or its tenant can go.
 */
export class ListenerRights {
  readonly #tenantViews: TenantViews;
  readonly #clientSince: number | undefined;
  #caller: TenantCaller;

  private constructor(tenantViews: TenantViews, caller: TenantCaller, clientSince: number | undefined) {
    this.#tenantViews = tenantViews;
    this.#caller = caller;
    this.#clientSince = clientSince;
  }

  static async of(tenantViews: TenantViews, caller: TenantCaller): Promise<ListenerRights> {
    const client = await caller.view.client(caller.clientId);
    return new ListenerRights(tenantViews, caller, client?.createdAt.getTime());
  }

  /** @param head the tenant as it stands now. The client is looked up again only when something of it changed. */
  async cover(session: Session, head: TenantHead): Promise<boolean> {
    if (head.status !== 'active') return false;
    if (head.revision !== this.#caller.view.head.revision) {
      const view = this.#tenantViews.of(head);
      const client = await view.client(this.#caller.clientId);
      // A client made anew under an old name does not inherit the old one's streams.
      if (client === undefined || client.createdAt.getTime() !== this.#clientSince) return false;
      const { roles, allowedPresentationConfigs, allowedIssuanceConfigs } = client;
      this.#caller = { ...this.#caller, roles, allowedPresentationConfigs, allowedIssuanceConfigs, view };
    }
    return isVisible(this.#caller, session);
  }
}
