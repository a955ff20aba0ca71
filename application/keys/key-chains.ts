import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type {
  KeyChainCreation,
  KeyChainImport,
  KeyChainRotation,
  KeyChainUpdate,
} from '../../domain/keys/key-chain-input.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { changeOwnAlone } from '../own-changes.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Clock } from '../ports/clock.ts';
import { Kms } from '../ports/kms.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { type ChangedMembers, changedKeyChain, signerFor } from './changed-key-chain.ts';
import { assertNotLast, assertUnused } from './key-references.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';
import {
  assertProvider,
  assertRootStays,
  MAKING_KEY_CHAINS,
  makeWantedKeyChain,
} from './wanted-key-chain.ts';

/** The key chains of the caller's tenant, in order of their ids. */
export class ListKeyChains extends needs({ store: Store }) {
  async execute({ tenantId }: TenantCaller): Promise<KeyChain[]> {
    return this.ports.store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
  }
}

export class GetKeyChain extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute({ tenantId }: TenantCaller, id: string): Promise<KeyChain> {
    return this.ports.store.forTenant(tenantId, ({ keyChains }) => keyChains.get(id));
  }
}

/**
 * Makes a key chain with its own internal CA, under that of another one, or certified by itself; or takes in a key that was
 * made elsewhere, with its certificates or under an internal CA.
 */
export class CreateKeyChain extends needs({ ...MAKING_KEY_CHAINS, store: Store }) {
  /** @throws Failure as `makeWantedKeyChain`. */
  async execute(caller: TenantCaller, wanted: KeyChainCreation | KeyChainImport): Promise<KeyChain> {
    const { store } = this.ports;
    const { tenantId } = caller;
    const { rootKeyChainId: rootId } = wanted;
    const { name } = await caller.configured.tenant();
    const chains = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    const chain = await makeWantedKeyChain(this.ports, { tenantId, name, chains }, wanted);
    await store.forTenant(
      tenantId,
      async ({ keyChains }) => {
        if (rootId !== undefined) assertRootStays(await keyChains.list(), rootId, chain);
        await keyChains.add(chain);
      },
      { by: caller, alone: rootId !== undefined },
    );
    return chain;
  }
}

/** Changes the description of a key chain, what it may sign, when it is rotated, and its certificates. */
export class UpdateKeyChain extends needs({
  store: Store,
  clock: Clock,
  certificateAuthority: CertificateAuthority,
  settings: ServiceSettings,
}) {
  /**
   * @param paths of the members of the caller's document that have the certificates and the usages.
   * @throws Failure `not_found`, and as `changedKeyChain`.
   */
  async execute(
    caller: TenantCaller,
    id: string,
    wanted: KeyChainUpdate,
    paths: ChangedMembers = { certificates: 'certificates', usages: 'usages' },
  ): Promise<KeyChain> {
    const { store, clock } = this.ports;
    const signer = wanted.usages?.includes('signing')
      ? await signerFor(
          this.ports,
          await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.get(id)),
        )
      : undefined;
    return changeOwnAlone(store, caller, async (own) => {
      const known = await own.keyChains.get(id);
      const changed = await changedKeyChain(own, known, { ...wanted, signer }, clock.now(), paths);
      await own.keyChains.put(changed);
      return changed;
    });
  }
}

/** Removes a key chain that nothing needs. */
export class DeleteKeyChain extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `not_found`, or `conflict` when something names it or has no other key chain. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    const { store, clock } = this.ports;
    await changeOwnAlone(store, caller, async (own) => {
      const chain = await own.keyChains.get(id);
      await assertUnused(own, id);
      await assertNotLast(own, chain, chain.usages, clock.now());
      await own.keyChains.remove(id);
    });
  }
}

/** Gives a key chain another key at once. */
export class RotateKeyChain extends needs(RENEWAL_PORTS) {
  /**
   * @throws Failure `not_found`; `conflict` when its certificates come from outside, too many former keys count still,
   *   or somebody else rotates it at this moment.
   */
  async execute(caller: TenantCaller, id: string, { kmsProvider }: KeyChainRotation): Promise<KeyChain> {
    const { store, kms } = this.ports;
    assertProvider(kms, kmsProvider);
    const chain = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.get(id));
    return renewLeaf(this.ports, chain, { step: 'rotation', provider: kmsProvider, by: caller });
  }
}

/** The KMS providers at which keys can be born, the default one first. */
export class ListKeyProviders extends needs({ kms: Kms }) {
  async execute(): Promise<ReturnType<Kms['providers']>> {
    return this.ports.kms.providers();
  }
}
