import type { ListVersion, PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

type Ports = { readonly store: Store };

/** The trust lists of the caller's tenant, in order of their ids. */
export class ListTrustLists {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  async execute(caller: TenantCaller): Promise<readonly PublishedList[]> {
    return this.#ports.store.forTenant(caller.tenantId, ({ trustLists }) => trustLists.list());
  }
}

export class GetTrustList {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<PublishedList> {
    return this.#ports.store.forTenant(caller.tenantId, ({ trustLists }) => trustLists.get(id));
  }
}

/** What a list was before, newest first. Versions of a list that was removed are not shown. */
export class ListTrustListVersions {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<readonly ListVersion[]> {
    return this.#ports.store.forTenant(caller.tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      return trustLists.versions(id);
    });
  }
}

export class GetTrustListVersion {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found` for an unknown list and an unknown version. */
  async execute(caller: TenantCaller, id: string, versionId: string): Promise<ListVersion> {
    return this.#ports.store.forTenant(caller.tenantId, async ({ trustLists }) => {
      await trustLists.get(id);
      return trustLists.version(id, versionId);
    });
  }
}
