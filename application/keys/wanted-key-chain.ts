import type { KeyChain, KeyRoot } from '../../domain/keys/key-chain.ts';
import type { KeyChainCreation, KeyChainImport } from '../../domain/keys/key-chain-input.ts';
import { assertSelfSignedFits } from '../../domain/keys/self-signed.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { organizationName } from '../../domain/tenants/organization.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { PortsOf } from '../needs.ts';
import type { Kms } from '../ports/kms.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { MAKING, makeKeyChain, type NewKeyChain } from './make-key-chain.ts';
import { parseCertificates } from './parse-certificates.ts';
import { parsePrivateKey } from './private-key.ts';

export type WantedKeyChain = KeyChainCreation | KeyChainImport;

/** The tenant that gets a key chain, as far as that depends on it. */
export type KeyOwner = { readonly tenant: Tenant; readonly chains: readonly KeyChain[] };

export const MAKING_KEY_CHAINS = { ...MAKING, settings: ServiceSettings };
type Ports = PortsOf<typeof MAKING_KEY_CHAINS>;

/**
 * Makes a key chain as somebody wishes, or takes in a key that was made elsewhere. It is judged before any key is made:
 * an external KMS would keep the keys of one that is refused.
 * @throws Failure `conflict` when the id is taken; `invalid_input` for what does not go together, a key that is none of
 *   ours, certificates that are not for it, an unknown root, and a KMS provider that there is not or that takes no keys.
 */
export async function makeWantedKeyChain(ports: Ports, owner: KeyOwner, wanted: WantedKeyChain): Promise<KeyChain> {
  if ('key' in wanted) return takeIn(ports, owner, wanted);
  return makeKeyChain(ports, created(ports.kms, commonOf(ports, owner, wanted), wanted));
}

function commonOf({ kms, settings }: Ports, owner: KeyOwner, wanted: WantedKeyChain): NewKeyChain {
  const { id, rootKeyChainId, usageType, usages = [] } = wanted;
  const { tenant } = owner;
  const provider = wanted.kmsProvider ?? tenant.kms ?? undefined;
  const { rotationEnabled, rotationIntervalDays, certValidityDays } = wanted;
  if (owner.chains.some((chain) => chain.id === id)) throw new Failure('conflict', 'a key chain of this id exists already');
  assertProvider(kms, tenant.id, provider);
  const root = rootKeyChainId === undefined ? undefined : rootOf(owner.chains, rootKeyChainId);
  return {
    tenantId: tenant.id,
    usages: [...new Set([...usages, ...(usageType === undefined ? [] : [usageType])])],
    subjectName: wanted.subjectName ?? tenant.name,
    // TS 119 602 section 6.8: readers compare them with what a list says of its operator.
    organization: wanted.organization ?? organizationName(tenant),
    publicUrl: settings.publicUrl,
    holder: tenant,
    ...defined({
      id,
      provider,
      rotationEnabled,
      rotationIntervalDays,
      certValidityDays,
      country: wanted.country ?? tenant.country ?? undefined,
      description: wanted.description ?? undefined,
      certification: root && ({ by: 'root', root } as const),
    }),
  };
}

function created(kms: Kms, common: NewKeyChain, { algorithm, selfSigned = false }: KeyChainCreation): NewKeyChain {
  assertAlgorithm(kms, common, algorithm);
  const known = { ...common, ...defined({ algorithm }) };
  if (!selfSigned) return known;
  assertSelfSignedFits(common.usages, 'selfSigned');
  if (common.certification !== undefined) throw invalidInput('selfSigned', 'give either selfSigned or rootKeyChainId');
  return { ...known, certification: { by: 'itself' } };
}

async function takeIn(ports: Ports, owner: KeyOwner, wanted: KeyChainImport): Promise<KeyChain> {
  const { pkcs8, publicJwk, algorithm } = parsePrivateKey(wanted.key as string | JsonObject);
  try {
    const common = commonOf(ports, owner, wanted);
    assertAlgorithm(ports.kms, common, algorithm, 'key');
    const known = { ...common, algorithm, leafKey: pkcs8 };
    if (wanted.certificates === undefined) return await makeKeyChain(ports, known);
    if (common.certification !== undefined) throw invalidInput('rootKeyChainId', 'give either certificates or rootKeyChainId');
    const certified = { key: publicJwk, usages: common.usages };
    const read = parseCertificates(wanted.certificates, certified, ports.clock.now(), 'certificates');
    return await makeKeyChain(ports, { ...known, certification: { by: 'others', ...read } });
  } catch (error) {
    const isOfKms = error instanceof Failure && error.code === 'invalid_input' && !error.details.errors;
    // The KMS does not know where the key came from.
    throw isOfKms ? invalidInput('key', error.message) : error;
  } finally {
    pkcs8.fill(0);
  }
}

/** @throws Failure `invalid_input` at `path` for a provider that there is not for this tenant. */
export function assertProvider(kms: Kms, tenantId: string, name: string | undefined, path = 'kmsProvider'): void {
  const names = kms.providers(tenantId).map((provider) => provider.name);
  if (name === undefined || names.includes(name)) return;
  // Only an account that manages tenants is told of providers that belong to others.
  if (path === 'kms' && kms.providers().some((provider) => provider.name === name)) {
    throw invalidInput(path, `The KMS provider "${name}" is not for this tenant: KMS_CONFIG names others in onlyFor.`);
  }
  throw invalidInput(path, `There is no KMS provider "${name}", but: ${names.join(', ')}.`);
}

/** @throws Failure `invalid_input` at `path` for an algorithm that the provider does not have. */
export function assertAlgorithm(
  kms: Kms,
  { tenantId, provider }: Pick<NewKeyChain, 'tenantId' | 'provider'>,
  algorithm: SigningAlgorithm = 'ES256',
  path = 'algorithm',
): void {
  const wanted = provider ?? kms.providerOf(tenantId);
  const known = kms.providers().find(({ name }) => name === wanted);
  if (known === undefined || known.algorithms.includes(algorithm)) return;
  const possible = known.algorithms.join(', ');
  throw invalidInput(path, `The KMS provider "${wanted}" has no keys for ${algorithm}, but for: ${possible}.`);
}

/**
 * Looks whether the authority of a new key chain is still the one of the key chain that was named: making a key takes a
 * while, and an authority that went meanwhile must not come back. Its key may be at another provider by now.
 * @returns the key chain with the authority as it is now. @throws Failure `invalid_input`.
 */
export function withPresentRoot(chains: readonly KeyChain[], rootKeyChainId: string, chain: KeyChain): KeyChain {
  const root = rootOf(chains, rootKeyChainId);
  if (root.certificate !== chain.root?.certificate) throw noRoot(rootKeyChainId);
  return { ...chain, root };
}

function rootOf(chains: readonly KeyChain[], id: string): KeyRoot {
  const root = chains.find((chain) => chain.id === id)?.root;
  if (root === undefined) throw noRoot(id);
  return root;
}

function noRoot(id: string): Failure {
  return invalidInput('rootKeyChainId', `There is no key chain "${id}" with an internal authority.`);
}
