import { chainsOfPublicKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain, KeyUsage } from '../../domain/keys/key-chain.ts';
import type { KeyChainCreation, KeyChainImport, KeyChainRotation, KeyChainUpdate } from '../../domain/keys/key-chain-input.ts';
import { assertAuthorityPurpose, assertMayChangeKeys, assertPurposeUnchanged } from '../../domain/keys/key-chain-rights.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { thumbprint } from '../../domain/shared/jwk.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Clock } from '../ports/clock.ts';
import { type KeyProvider, Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { applyUpdate, signerFor, type UpdatePaths } from './apply-key-chain-update.ts';
import { assertNotCompromised, type CompromiseReport, markCompromised, reportSharedKeys } from './compromised-key.ts';
import {
  assertAlgorithm,
  assertProvider,
  createRequestedKeyChain,
  KEY_CHAIN_CREATION_PORTS,
  withCurrentAuthority,
} from './create-requested-key-chain.ts';
import { assertNotLast, assertUnused } from './key-references.ts';
import { withNewKeys } from './new-keys.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';
import { destroyRetiredKeys, KEY_DESTRUCTION_PORTS } from './retired-keys.ts';

/** Number of keys that are destroyed before the response; a job destroys the others. */
const MAX_DESTROYED = 20;

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
 * Creates a key chain with its own internal CA, under that of another key chain, or self-signed; or imports an existing key
 * with its certificates or under an internal CA.
 */
export class CreateKeyChain extends needs({ ...KEY_CHAIN_CREATION_PORTS, store: Store, log: Log }) {
  /** @throws Failure as `createRequestedKeyChain`. */
  async execute(caller: TenantCaller, creation: KeyChainCreation | KeyChainImport): Promise<KeyChain> {
    const { store } = this.ports;
    const { tenantId } = caller;
    const { rootKeyChainId: rootId } = creation;
    const tenant = await caller.tenant.tenant();
    const chains = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    assertMayCreate(caller, creation, chains);
    return withNewKeys(this.ports, async (ports) => {
      const createdChain = await createRequestedKeyChain(ports, { tenant, chains }, creation);
      return store.forTenant(
        tenantId,
        async ({ keyChains }) => {
          if (rootId === undefined) {
            await keyChains.add(createdChain);
            return createdChain;
          }
          const currentChains = await keyChains.list();
          const chain = withCurrentAuthority(currentChains, rootId, createdChain);
          assertMayChangeKeys(caller.roles, [chain], currentChains);
          assertAuthorityPurpose(chain.usages, chain.root, { all: currentChains, path: 'rootKeyChainId', profile: tenant.profile });
          await keyChains.add(chain);
          return chain;
        },
        { by: caller, exclusive: rootId !== undefined },
      );
    });
  }
}

/** @throws Failure `forbidden`. Problems of the root itself are reported when the key chain is created. */
function assertMayCreate(
  { roles, tenant }: TenantCaller,
  { usageType, usages = [], rootKeyChainId }: KeyChainCreation | KeyChainImport,
  chains: readonly KeyChain[],
): void {
  const requestedUsages = usageType === undefined ? usages : [...usages, usageType];
  const root = chains.find(({ id }) => id === rootKeyChainId)?.root;
  assertMayChangeKeys(roles, [{ usages: requestedUsages, ...defined({ root }) }], chains);
  if (root === undefined) return;
  assertAuthorityPurpose(requestedUsages, root, { all: chains, path: 'rootKeyChainId', profile: tenant.profile });
}

/** Changes the description, usages, rotation and certificates of a key chain. */
export class UpdateKeyChain extends needs({
  store: Store,
  clock: Clock,
  certificateAuthority: CertificateAuthority,
  settings: ServiceSettings,
}) {
  /**
   * @param paths of the certificates and usages in the caller's document.
   * @throws Failure `not_found`, and as `applyUpdate`.
   */
  async execute(
    caller: TenantCaller,
    id: string,
    update: KeyChainUpdate,
    paths: UpdatePaths = { certificates: 'certificates', usages: 'usages' },
  ): Promise<KeyChain> {
    const { store, clock } = this.ports;
    const signer = update.usages?.includes('signing') ? await this.#signer(caller, id, update.usages) : undefined;
    return changeTenantExclusively(store, caller, async (repositories) => {
      const storedChain = await repositories.keyChains.get(id);
      const chains = await repositories.keyChains.list();
      assertMayChangeKeys(caller.roles, [storedChain, { usages: update.usages ?? [] }], chains);
      if (update.certificates !== undefined || signer !== undefined) assertNotCompromised(storedChain, chains);
      const updatedChain = await applyUpdate(repositories, storedChain, { ...update, signer }, clock.now(), paths);
      const { profile } = await repositories.tenant.get();
      assertPurposeUnchanged(storedChain, updatedChain, { all: chains, path: paths.usages, profile });
      await repositories.keyChains.put(updatedChain);
      return updatedChain;
    });
  }

  /** Checks the rights first, since the authority signs here. */
  async #signer({ tenantId, roles, tenant }: TenantCaller, id: string, usages: readonly KeyUsage[]) {
    const [storedChain, chains] = await this.ports.store.forTenant(
      tenantId,
      async ({ keyChains }) => [await keyChains.get(id), await keyChains.list()] as const,
    );
    assertMayChangeKeys(roles, [storedChain, { usages }], chains);
    return signerFor(this.ports, storedChain, await tenant.tenant());
  }
}

/** Removes an unused key chain, and its keys at their provider. */
export class DeleteKeyChain extends needs({ ...KEY_DESTRUCTION_PORTS, clock: Clock }) {
  /** @throws Failure `not_found`, or `conflict` when something refers to it or depends on the last key chain of a usage. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    const { store, clock } = this.ports;
    await changeTenantExclusively(store, caller, async (repositories) => {
      const chain = await repositories.keyChains.get(id);
      assertMayChangeKeys(caller.roles, [chain], await repositories.keyChains.list());
      await assertUnused(repositories, id);
      await assertNotLast(repositories, chain, chain.usages, clock.now());
      await repositories.keyChains.remove(id);
    });
    await destroyRetiredKeys(this.ports, MAX_DESTROYED, caller.tenantId);
  }
}

export class RotateKeyChain extends needs(RENEWAL_PORTS) {
  /**
   * @throws Failure `not_found`; `conflict` when its certificates are external, too many former keys are still
   *   valid, or it is rotated concurrently.
   */
  async execute(caller: TenantCaller, id: string, rotation: KeyChainRotation): Promise<CompromiseReport> {
    const { store, kms } = this.ports;
    const { tenantId } = caller;
    const provider = rotation.provider ?? rotation.kmsProvider;
    const path = rotation.provider === undefined ? 'kmsProvider' : 'provider';
    assertProvider(kms, tenantId, provider, path);
    const chains = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    const chain = chains.find((entry) => entry.id === id);
    if (chain === undefined) throw new Failure('not_found', 'there is no such key chain');
    const siblings = rotation.compromised === true ? chainsOfPublicKey(chains, thumbprint(chain.active.key.publicJwk)) : [];
    assertMayChangeKeys(caller.roles, [chain, ...siblings], chains);
    const { algorithm } = chain.active.key.handle;
    assertAlgorithm(kms, { tenantId, provider: provider ?? chain.kmsProvider }, algorithm, path);
    if (rotation.compromised !== true) {
      return { chain: await renewLeaf(this.ports, chain, { step: 'rotation', provider, by: caller }), affected: [] };
    }
    const report = await markCompromised(this.ports, chain, chains, { provider, by: caller });
    // Not awaited: it reads the key chains of all tenants, and its result is for the operator alone.
    void reportSharedKeys(this.ports);
    return report;
  }
}

export type TenantKeyProvider = KeyProvider & {
  /** True if new keys of this tenant are created there. */
  readonly isOwn: boolean;
  readonly answers: boolean;
};

/** The key providers that a tenant may use, the default one first. */
export class ListKeyProviders extends needs({ kms: Kms }) {
  async execute({ tenantId, tenant }: TenantCaller): Promise<readonly TenantKeyProvider[]> {
    const { kms } = this.ports;
    const ownProvider = (await tenant.tenant()).kms ?? kms.providerOf(tenantId);
    return Promise.all(
      kms
        .providers(tenantId)
        .map(async (provider) => ({ ...provider, isOwn: provider.name === ownProvider, answers: await this.#answers(provider.name) })),
    );
  }

  /** The reason is for the log and `GET /health`, since it concerns the operator. */
  async #answers(name: string): Promise<boolean> {
    try {
      await this.ports.kms.assertReachable(name);
      return true;
    } catch {
      return false;
    }
  }
}
