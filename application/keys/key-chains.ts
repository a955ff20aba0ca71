import { chainsOfPublicKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain, KeyUsage } from '../../domain/keys/key-chain.ts';
import type { KeyChainCreation, KeyChainImport, KeyChainRotation, KeyChainUpdate } from '../../domain/keys/key-chain-input.ts';
import { assertCertifiedFor, assertKeepsPurpose, assertMayTouch } from '../../domain/keys/key-chain-rights.ts';
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
import { changeOwnAlone } from '../transactions/own-changes.ts';
import { type ChangedMembers, changedKeyChain, signerFor } from './changed-key-chain.ts';
import { assertNotCompromised, type CompromiseReport, markCompromised, reportSharedKeys } from './compromised-key.ts';
import { assertNotLast, assertUnused } from './key-references.ts';
import { withNewKeys } from './new-keys.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';
import { DESTROYING, destroyRetiredKeys } from './retired-keys.ts';
import { assertAlgorithm, assertProvider, MAKING_KEY_CHAINS, makeWantedKeyChain, withPresentRoot } from './wanted-key-chain.ts';

/** Keys that a removal destroys before it answers; the job takes the rest. */
const MAX_DESTROYED = 20;

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
export class CreateKeyChain extends needs({ ...MAKING_KEY_CHAINS, store: Store, log: Log }) {
  /** @throws Failure as `makeWantedKeyChain`. */
  async execute(caller: TenantCaller, wanted: KeyChainCreation | KeyChainImport): Promise<KeyChain> {
    const { store } = this.ports;
    const { tenantId } = caller;
    const { rootKeyChainId: rootId } = wanted;
    const tenant = await caller.configured.tenant();
    const chains = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    assertMayMake(caller, wanted, chains);
    return withNewKeys(this.ports, async (ports) => {
      const made = await makeWantedKeyChain(ports, { tenant, chains }, wanted);
      return store.forTenant(
        tenantId,
        async ({ keyChains }) => {
          if (rootId === undefined) {
            await keyChains.add(made);
            return made;
          }
          const present = await keyChains.list();
          const chain = withPresentRoot(present, rootId, made);
          assertMayTouch(caller.roles, [chain], present);
          assertCertifiedFor(chain.usages, chain.root, { all: present, path: 'rootKeyChainId', profile: tenant.profile });
          await keyChains.add(chain);
          return chain;
        },
        { by: caller, alone: rootId !== undefined },
      );
    });
  }
}

/** @throws Failure `forbidden`. What is wrong with the root itself is told when the key chain is made. */
function assertMayMake(
  { roles, configured }: TenantCaller,
  { usageType, usages = [], rootKeyChainId }: KeyChainCreation | KeyChainImport,
  all: readonly KeyChain[],
): void {
  const wanted = usageType === undefined ? usages : [...usages, usageType];
  const root = all.find(({ id }) => id === rootKeyChainId)?.root;
  assertMayTouch(roles, [{ usages: wanted, ...defined({ root }) }], all);
  if (root === undefined) return;
  assertCertifiedFor(wanted, root, { all, path: 'rootKeyChainId', profile: configured.profile });
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
    const signer = wanted.usages?.includes('signing') ? await this.#signer(caller, id, wanted.usages) : undefined;
    return changeOwnAlone(store, caller, async (own) => {
      const known = await own.keyChains.get(id);
      const all = await own.keyChains.list();
      assertMayTouch(caller.roles, [known, { usages: wanted.usages ?? [] }], all);
      if (wanted.certificates !== undefined || signer !== undefined) assertNotCompromised(known, all);
      const changed = await changedKeyChain(own, known, { ...wanted, signer }, clock.now(), paths);
      const { profile } = await own.tenant.get();
      assertKeepsPurpose(known, changed, { all, path: paths.usages, profile });
      await own.keyChains.put(changed);
      return changed;
    });
  }

  /** The rights are looked at first: the authority signs here. */
  async #signer({ tenantId, roles, configured }: TenantCaller, id: string, usages: readonly KeyUsage[]) {
    const [known, all] = await this.ports.store.forTenant(
      tenantId,
      async ({ keyChains }) => [await keyChains.get(id), await keyChains.list()] as const,
    );
    assertMayTouch(roles, [known, { usages }], all);
    return signerFor(this.ports, known, await configured.tenant());
  }
}

/** Removes a key chain that nothing needs, and its keys at their provider. */
export class DeleteKeyChain extends needs({ ...DESTROYING, clock: Clock }) {
  /** @throws Failure `not_found`, or `conflict` when something names it or has no other key chain. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    const { store, clock } = this.ports;
    await changeOwnAlone(store, caller, async (own) => {
      const chain = await own.keyChains.get(id);
      assertMayTouch(caller.roles, [chain], await own.keyChains.list());
      await assertUnused(own, id);
      await assertNotLast(own, chain, chain.usages, clock.now());
      await own.keyChains.remove(id);
    });
    await destroyRetiredKeys(this.ports, MAX_DESTROYED, caller.tenantId);
  }
}

/** Gives a key chain another key at once, and marks the key before as compromised where the caller says so. */
export class RotateKeyChain extends needs(RENEWAL_PORTS) {
  /**
   * @throws Failure `not_found`; `conflict` when its certificates come from outside, too many former keys count still,
   *   or somebody else rotates it at this moment.
   */
  async execute(caller: TenantCaller, id: string, wanted: KeyChainRotation): Promise<CompromiseReport> {
    const { store, kms } = this.ports;
    const { tenantId } = caller;
    const provider = wanted.provider ?? wanted.kmsProvider;
    const path = wanted.provider === undefined ? 'kmsProvider' : 'provider';
    assertProvider(kms, tenantId, provider, path);
    const all = await store.forTenant(tenantId, ({ keyChains }) => keyChains.list());
    const chain = all.find((one) => one.id === id);
    if (chain === undefined) throw new Failure('not_found', 'there is no such key chain');
    const siblings = wanted.compromised === true ? chainsOfPublicKey(all, thumbprint(chain.active.key.publicJwk)) : [];
    assertMayTouch(caller.roles, [chain, ...siblings], all);
    const { algorithm } = chain.active.key.handle;
    assertAlgorithm(kms, { tenantId, provider: provider ?? chain.kmsProvider }, algorithm, path);
    if (wanted.compromised !== true) {
      return {
        chain: await renewLeaf(this.ports, chain, { step: 'rotation', provider, by: caller }),
        affected: [],
      };
    }
    const report = await markCompromised(this.ports, chain, all, { provider, by: caller });
    // Not awaited: it reads the key chains of all tenants, and its result is for the operator alone.
    void reportSharedKeys(this.ports);
    return report;
  }
}

/** A key provider as a tenant sees it. */
export type TenantKeyProvider = KeyProvider & {
  /** Whether the next keys of this tenant are made there. */
  readonly isOwn: boolean;
  readonly answers: boolean;
};

/** The key providers at which a tenant may have keys made, the default one first. */
export class ListKeyProviders extends needs({ kms: Kms }) {
  async execute({ tenantId, configured }: TenantCaller): Promise<readonly TenantKeyProvider[]> {
    const { kms } = this.ports;
    const own = (await configured.tenant()).kms ?? kms.providerOf(tenantId);
    return Promise.all(
      kms
        .providers(tenantId)
        .map(async (provider) => ({ ...provider, isOwn: provider.name === own, answers: await this.#answers(provider.name) })),
    );
  }

  /** Why it does not is for the log and `GET /health`: it concerns the operator. */
  async #answers(name: string): Promise<boolean> {
    try {
      await this.ports.kms.assertReachable(name);
      return true;
    } catch {
      return false;
    }
  }
}
