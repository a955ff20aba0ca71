import { mayUse } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store };

/** The status lists of the tenant as they stand now, in order of their age. */
export class ListStatusLists {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** A restricted client sees those of its configurations, and those that all share. */
  async execute(caller: TenantCaller): Promise<readonly StatusList[]> {
    const lists = await this.#ports.store.forTenant(caller.tenantId, ({ statusLists }) => statusLists.list());
    return lists.filter((list) => maySee(caller, list));
  }
}

/** One status list as it stands now. */
export class GetStatusList {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`, also for one of a configuration that the client may not use. */
  async execute(caller: TenantCaller, id: string): Promise<StatusList> {
    const list = await this.#ports.store.forTenant(caller.tenantId, ({ statusLists }) => statusLists.get(id));
    if (!maySee(caller, list)) throw new Failure('not_found', 'there is no such status list');
    return list;
  }
}

function maySee(
  { allowedIssuanceConfigs }: TenantCaller,
  { credentialConfigurationId }: StatusList,
): boolean {
  return credentialConfigurationId === null || mayUse(allowedIssuanceConfigs, credentialConfigurationId);
}
