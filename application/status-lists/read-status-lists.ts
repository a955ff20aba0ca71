import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store };

/** All status lists of the tenant as they stand now, in order of their age. */
export class ListStatusLists {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  async execute({ tenantId }: TenantCaller): Promise<readonly StatusList[]> {
    return this.#ports.store.forTenant(tenantId, ({ statusLists }) => statusLists.list());
  }
}

/** One status list as it stands now. */
export class GetStatusList {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute({ tenantId }: TenantCaller, id: string): Promise<StatusList> {
    return this.#ports.store.forTenant(tenantId, ({ statusLists }) => statusLists.get(id));
  }
}
