import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import type { CertificateCreation } from '../../domain/keys/key-chain-input.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { changeOwnAlone } from '../own-changes.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { certifyLeaf, leafOf } from './certify-leaf.ts';
import { readCertificates } from './read-certificates.ts';
import { chainsOfKey } from './shared-key.ts';

/**
 * Gives a key another certificate: one that was obtained elsewhere, or a leaf of the key's internal CA. It becomes a
 * key chain of its own over the same key.
 */
export class CreateCertificate extends needs({
  store: Store,
  certificateAuthority: CertificateAuthority,
  random: Random,
  clock: Clock,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `not_found` for an unknown key, `invalid_input` for a chain that is not for it, `conflict` when the
   *   key was rotated or lost its internal CA meanwhile.
   */
  async execute(
    caller: TenantCaller,
    wanted: CertificateCreation,
  ): Promise<{ readonly chain: KeyChain; readonly all: readonly KeyChain[] }> {
    const { store, random, clock } = this.ports;
    const known = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
    const holders = holdersOf(wanted.keyId, known);
    const holder = holders.find((chain) => chain.root !== undefined) ?? holders[0];

    const { crt } = wanted;
    const active =
      crt === undefined
        ? await this.#certify(caller, holder, wanted)
        : {
            key: holder.active.key,
            ...readCertificates(
              crt,
              { key: holder.active.key.publicJwk, usages: wanted.certUsageTypes },
              clock.now(),
            ),
          };
    const now = clock.now();
    const { root, kmsProvider, rotationIntervalDays, certValidityDays } = holder;
    const chain: KeyChain = {
      id: wanted.id ?? random.token(),
      tenantId: caller.tenantId,
      ...defined({ description: wanted.description ?? undefined }),
      usages: [...new Set(wanted.certUsageTypes)],
      kmsProvider,
      ...(crt === undefined && root !== undefined && { root }),
      active,
      rotationEnabled: false,
      rotationIntervalDays,
      certValidityDays,
      createdAt: now,
      updatedAt: now,
    };
    return changeOwnAlone(store, caller, async ({ keyChains }) => {
      const present = await keyChains.list();
      assertHeld(chain, holdersOf(wanted.keyId, present));
      await keyChains.add(chain);
      return { chain, all: [...present, chain] };
    });
  }

  async #certify(
    caller: TenantCaller,
    holder: KeyChain,
    { subjectName, certUsageTypes: usages }: CertificateCreation,
  ): Promise<KeyLeaf> {
    const { root } = holder;
    if (root === undefined)
      throw invalidInput('crt', 'this key has no internal authority; give its certificates');
    return certifyLeaf(this.ports.certificateAuthority, {
      ...leafOf(this.ports, holder, root),
      usages,
      subjectName: subjectName ?? (await caller.configured.tenant()).name,
    });
  }
}

/** @throws Failure `not_found`. */
function holdersOf(keyId: string, all: readonly KeyChain[]): readonly [KeyChain, ...KeyChain[]] {
  const [first, ...others] = chainsOfKey(keyId, all);
  if (first === undefined) throw new Failure('not_found', 'there is no key of this id');
  return [first, ...others];
}

/** Making a certificate takes a while: a key or an internal CA that went meanwhile must not come back with it. */
function assertHeld({ active, root }: KeyChain, holders: readonly KeyChain[]): void {
  const isHeld = holders.some(
    (holder) =>
      isSameHandle(holder.active.key.handle, active.key.handle) &&
      (root === undefined || holder.root?.certificate === root.certificate),
  );
  if (!isHeld) throw new Failure('conflict', 'the key was changed or rotated meanwhile; try again');
}
