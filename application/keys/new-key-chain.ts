import type { KeyChain, KeyUsage } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import type { Kms } from '../ports/kms.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { NewKeyChain } from './make-key-chain.ts';

type Ports = { readonly store: Store; readonly kms: Kms; readonly settings: ServiceSettings };

/** What creation and import have in common; a member of the caller's document may be left out. */
type Wanted = {
  readonly [Member in 'id' | 'kmsProvider' | 'subjectName' | 'country' | 'organization' | 'rootKeyChainId']?:
    | string
    | undefined;
} & {
  readonly description?: string | null | undefined;
  readonly usageType?: KeyUsage | undefined;
  readonly usages?: readonly KeyUsage[] | undefined;
  readonly rotationEnabled?: boolean | undefined;
  readonly rotationIntervalDays?: number | undefined;
  readonly certValidityDays?: number | undefined;
};

/**
 * Reads what the caller wants, before any key is made: an external KMS would keep the keys of a chain that is refused.
 * @throws Failure `conflict` when the id is taken, `invalid_input` for an unknown KMS provider or root.
 */
export async function newKeyChain(ports: Ports, caller: TenantCaller, wanted: Wanted): Promise<NewKeyChain> {
  const { id, description, kmsProvider, rootKeyChainId, usageType, usages = [] } = wanted;
  const { country, organization, rotationEnabled, rotationIntervalDays, certValidityDays } = wanted;
  const chains = await ports.store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
  if (chains.some((chain) => chain.id === id)) {
    throw new Failure('conflict', 'a key chain of this id exists already');
  }
  assertProvider(ports.kms, kmsProvider);
  const root = rootKeyChainId === undefined ? undefined : rootOf(chains, rootKeyChainId);
  return {
    tenantId: caller.tenantId,
    usages: [...new Set([...usages, ...(usageType === undefined ? [] : [usageType])])],
    subjectName: wanted.subjectName ?? (await caller.configured.tenant()).name,
    dnsName: new URL(ports.settings.publicUrl).hostname,
    ...(id !== undefined && { id }),
    ...(description !== undefined && description !== null && { description }),
    ...(country !== undefined && { country }),
    ...(organization !== undefined && { organization }),
    ...(kmsProvider !== undefined && { provider: kmsProvider }),
    ...(rotationEnabled !== undefined && { rotationEnabled }),
    ...(rotationIntervalDays !== undefined && { rotationIntervalDays }),
    ...(certValidityDays !== undefined && { certValidityDays }),
    ...(root !== undefined && { certification: { by: 'root', root } }),
  };
}

/**
 * Stores what was made of it. Making it takes a while: an internal authority that went meanwhile must not come back with
 * a key chain under it.
 * @throws Failure `conflict` when the id is taken, `invalid_input` when the authority has gone.
 */
export function addKeyChain(
  { store }: Pick<Ports, 'store'>,
  caller: TenantCaller,
  chain: KeyChain,
  rootKeyChainId: string | undefined,
): Promise<void> {
  return store.forTenant(
    caller.tenantId,
    async ({ keyChains }) => {
      if (rootKeyChainId !== undefined) {
        const root = rootOf(await keyChains.list(), rootKeyChainId);
        if (root.certificate !== chain.root?.certificate) throw noRoot(rootKeyChainId);
      }
      await keyChains.add(chain);
    },
    { by: caller, alone: rootKeyChainId !== undefined },
  );
}

/** @throws Failure `invalid_input` at `kmsProvider`. */
export function assertProvider(kms: Kms, name: string | undefined): void {
  const names = kms.providers().map((provider) => provider.name);
  if (name === undefined || names.includes(name)) return;
  throw invalidInput('kmsProvider', `There is no KMS provider "${name}", but: ${names.join(', ')}.`);
}

function rootOf(chains: readonly KeyChain[], id: string) {
  const root = chains.find((chain) => chain.id === id)?.root;
  if (root === undefined) throw noRoot(id);
  return root;
}

function noRoot(id: string): Failure {
  return invalidInput('rootKeyChainId', `There is no key chain "${id}" with an internal authority.`);
}
