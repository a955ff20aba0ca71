import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import { assertRenewable, type DueStep, LEAF_STEPS, replaceLeaf } from '../../domain/keys/rotation.ts';
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
  readonly step: DueStep;
  readonly by: TenantActor;
  /** KMS provider of this and all later keys; the one of the key chain unless stated. */
  readonly provider?: string | undefined;
};

/**
 * Has the internal CA certify another leaf, and signs with that from then on. Until it is stored the key chain is as
 * it was, so a crash costs nothing but a key that nobody uses.
 * @param chain as it was read a moment ago.
 * @throws Failure `conflict` when it cannot be renewed, or was changed meanwhile.
 */
export async function renewLeaf(ports: RenewalPorts, chain: KeyChain, { step, provider, by }: Renewal): Promise<KeyChain> {
  const { store, clock } = ports;
  const kmsProvider = provider ?? chain.kmsProvider;
  return withNewKeys(ports, async (remembering) => {
    const leaf = await makeLeaf(remembering, { ...chain, kmsProvider }, step);
    return store.forTenant(
      chain.tenantId as TenantId,
      async ({ keyChains }) => {
        const now = clock.now();
        const known = await keyChains.get(chain.id);
        if (!isUnchanged(known, chain)) throw new Failure('conflict', 'the key chain was changed or rotated meanwhile; try again');
        assertRenewable(known, now);
        const renewed = { ...replaceLeaf(known, step, leaf, now), kmsProvider };
        await keyChains.put(renewed);
        return renewed;
      },
      { by, alone: true },
    );
  });
}

/** @throws Failure `conflict` when the internal CA cannot certify another leaf. */
export async function makeLeaf(ports: RenewalPorts, chain: KeyChain, step: DueStep): Promise<KeyLeaf> {
  const { tenantId, active, kmsProvider } = chain;
  const root = assertRenewable(chain, ports.clock.now());
  const { algorithm } = active.key.handle;
  const holder = await ports.store.forTenant(tenantId as TenantId, ({ tenant }) => tenant.get());
  const isSame = LEAF_STEPS[step].key === 'same';
  const key = isSame ? active.key : await ports.kms.generate(tenantId, algorithm, kmsProvider);
  return certifyLeaf(ports.certificateAuthority, { ...leafOf(ports, chain, root, holder), key });
}

/** The time alone would not do: several changes can fall into one millisecond. */
export function isUnchanged({ active, updatedAt }: KeyChain, before: KeyChain): boolean {
  return (
    updatedAt.getTime() === before.updatedAt.getTime() &&
    isSameHandle(active.key.handle, before.active.key.handle) &&
    active.certificates[0] === before.active.certificates[0]
  );
}
