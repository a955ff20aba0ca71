import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import { type AutomaticStep, assertRenewable, LEAF_STEPS, replaceActiveLeaf } from '../../domain/keys/rotation.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { PortsOf } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Clock } from '../ports/clock.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { certifyLeaf, leafOf } from './certify-leaf.ts';
import { withNewKeys } from './new-keys.ts';

export const RENEWAL_PORTS = {
  store: Store,
  kms: Kms,
  certificateAuthority: CertificateAuthority,
  clock: Clock,
  settings: ServiceSettings,
  log: Log,
};
type RenewalPorts = PortsOf<typeof RENEWAL_PORTS>;

type Renewal = {
  readonly step: AutomaticStep;
  readonly by: TenantActor;
  /** KMS provider of this and all later keys; by default that of the key chain. */
  readonly provider?: string | undefined;
};

/**
 * Issues another leaf with the internal CA and makes it the active one. The key chain is unchanged until that is stored, so a crash only
 * leaves an unused key.
 * @param chain as it was read a moment ago.
 * @throws Failure `conflict` when it cannot be renewed, or was changed meanwhile.
 */
export async function renewLeaf(ports: RenewalPorts, chain: KeyChain, { step, provider, by }: Renewal): Promise<KeyChain> {
  const { store, clock } = ports;
  const kmsProvider = provider ?? chain.kmsProvider;
  return withNewKeys(ports, async (trackedPorts) => {
    const leaf = await createLeaf(trackedPorts, { ...chain, kmsProvider }, step);
    return store.forTenant(
      chain.tenantId as TenantId,
      async ({ keyChains }) => {
        const now = clock.now();
        const storedChain = await keyChains.get(chain.id);
        if (!isUnchanged(storedChain, chain)) throw new Failure('conflict', 'the key chain was changed or rotated concurrently; try again');
        assertRenewable(storedChain, now);
        const renewed = { ...replaceActiveLeaf(storedChain, step, leaf, now), kmsProvider };
        await keyChains.put(renewed);
        return renewed;
      },
      { by, exclusive: true },
    );
  });
}

/** @throws Failure `conflict` when the internal CA cannot certify another leaf. */
export async function createLeaf(ports: RenewalPorts, chain: KeyChain, step: AutomaticStep): Promise<KeyLeaf> {
  const { tenantId, active, kmsProvider } = chain;
  const root = assertRenewable(chain, ports.clock.now());
  const { algorithm } = active.key.handle;
  const certificateSubject = await ports.store.forTenant(tenantId as TenantId, ({ tenant }) => tenant.get());
  const isSame = LEAF_STEPS[step].key === 'same';
  const key = isSame ? active.key : await ports.kms.generate(tenantId, algorithm, kmsProvider);
  return certifyLeaf(ports.certificateAuthority, { ...leafOf(ports, chain, root, certificateSubject), key });
}

/** Compares the leaf as well as the time, since several changes can happen within one millisecond. */
export function isUnchanged({ active, updatedAt }: KeyChain, previousChain: KeyChain): boolean {
  return (
    updatedAt.getTime() === previousChain.updatedAt.getTime() &&
    isSameHandle(active.key.handle, previousChain.active.key.handle) &&
    active.certificates[0] === previousChain.active.certificates[0]
  );
}
