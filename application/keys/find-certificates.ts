import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Store } from '../ports/store.ts';
import { chainsOfKey } from './shared-key.ts';

/** Certificates of the tenant, optionally of one key or one by its id; `all` tells who shares a key with whom. */
export class FindCertificates extends needs({ store: Store }) {
  /** @throws Failure `not_found` for an unknown `certId`; an unknown `keyId` finds nothing. */
  async execute(
    caller: TenantCaller,
    wanted: { readonly keyId?: string | undefined; readonly certId?: string } = {},
  ): Promise<{ readonly found: readonly KeyChain[]; readonly all: readonly KeyChain[] }> {
    const all = await this.ports.store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
    if (wanted.certId !== undefined) {
      const found = all.filter((chain) => chain.id === wanted.certId);
      if (found.length === 0) throw new Failure('not_found', 'there is no certificate of this id');
      return { found, all };
    }
    return { found: wanted.keyId === undefined ? all : chainsOfKey(wanted.keyId, all), all };
  }
}
