import type { KeyChain, KeyRoot } from '../../domain/keys/key-chain.ts';
import type { KeyChainCreation, KeyChainImport } from '../../domain/keys/key-chain-input.ts';
import { assertSelfSignedUsage } from '../../domain/keys/self-signed.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { organizationName } from '../../domain/tenants/organization.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { PortsOf } from '../needs.ts';
import type { Kms } from '../ports/kms.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { createKeyChain, KEY_CREATION_PORTS, type NewKeyChain } from './create-key-chain.ts';
import { parseCertificates } from './parse-certificates.ts';
import { parsePrivateKey } from './private-key.ts';

export type KeyChainRequest = KeyChainCreation | KeyChainImport;

export type KeyOwner = { readonly tenant: Tenant; readonly chains: readonly KeyChain[] };

export const KEY_CHAIN_CREATION_PORTS = { ...KEY_CREATION_PORTS, settings: ServiceSettings };
type Ports = PortsOf<typeof KEY_CHAIN_CREATION_PORTS>;

/**
 * Creates a key chain, or imports an existing key. The request is validated before any key is generated: an external KMS would keep the
 * keys of a rejected one.
 * @throws Failure `conflict` when the id is taken; `invalid_input` for conflicting properties, an unsupported key,
 *   certificates of another key, an unknown root, and a KMS provider that is unknown or does not import keys.
 */
export async function createRequestedKeyChain(ports: Ports, owner: KeyOwner, request: KeyChainRequest): Promise<KeyChain> {
  if ('key' in request) return importKey(ports, owner, request);
  return createKeyChain(ports, withCertification(ports.kms, commonOf(ports, owner, request), request));
}

function commonOf({ kms, settings }: Ports, owner: KeyOwner, request: KeyChainRequest): NewKeyChain {
  const { id, rootKeyChainId, usageType, usages = [] } = request;
  const { tenant } = owner;
  const provider = request.kmsProvider ?? tenant.kms ?? undefined;
  const { rotationEnabled, rotationIntervalDays, certValidityDays } = request;
  if (owner.chains.some((chain) => chain.id === id)) throw new Failure('conflict', 'a key chain with this id already exists');
  assertProvider(kms, tenant.id, provider);
  const root = rootKeyChainId === undefined ? undefined : rootOf(owner.chains, rootKeyChainId);
  return {
    tenantId: tenant.id,
    usages: [...new Set([...usages, ...(usageType === undefined ? [] : [usageType])])],
    subjectName: request.subjectName ?? tenant.name,
    // TS 119 602 section 6.8: readers compare the name with that of the list's operator.
    organization: request.organization ?? organizationName(tenant),
    publicUrl: settings.publicUrl,
    certificateSubject: tenant,
    ...defined({
      id,
      provider,
      rotationEnabled,
      rotationIntervalDays,
      certValidityDays,
      country: request.country ?? tenant.country ?? undefined,
      description: request.description ?? undefined,
      certification: root && ({ by: 'root', root } as const),
    }),
  };
}

function withCertification(kms: Kms, common: NewKeyChain, { algorithm, selfSigned = false }: KeyChainCreation): NewKeyChain {
  assertAlgorithm(kms, common, algorithm);
  const parameters = { ...common, ...defined({ algorithm }) };
  if (!selfSigned) return parameters;
  assertSelfSignedUsage(common.usages, 'selfSigned');
  if (common.certification !== undefined) throw invalidInput('selfSigned', 'set either selfSigned or rootKeyChainId');
  return { ...parameters, certification: { by: 'self' } };
}

async function importKey(ports: Ports, owner: KeyOwner, request: KeyChainImport): Promise<KeyChain> {
  const { pkcs8, publicJwk, algorithm } = parsePrivateKey(request.key as string | JsonObject);
  try {
    const common = commonOf(ports, owner, request);
    assertAlgorithm(ports.kms, common, algorithm, 'key');
    const parameters = { ...common, algorithm, leafKey: pkcs8 };
    if (request.certificates === undefined) return await createKeyChain(ports, parameters);
    if (common.certification !== undefined) throw invalidInput('rootKeyChainId', 'set either certificates or rootKeyChainId');
    const subject = { key: publicJwk, usages: common.usages };
    const parsed = parseCertificates(request.certificates, subject, ports.clock.now(), 'certificates');
    return await createKeyChain(ports, { ...parameters, certification: { by: 'external-ca', ...parsed } });
  } catch (error) {
    const isOfKms = error instanceof Failure && error.code === 'invalid_input' && !error.details.errors;
    // The KMS does not know the path of the key in the request.
    throw isOfKms ? invalidInput('key', error.message) : error;
  } finally {
    pkcs8.fill(0);
  }
}

/** @throws Failure `invalid_input` at `path` for a provider that is not available to this tenant. */
export function assertProvider(kms: Kms, tenantId: string, name: string | undefined, path = 'kmsProvider'): void {
  const names = kms.providers(tenantId).map((provider) => provider.name);
  if (name === undefined || names.includes(name)) return;
  // Only an account that manages tenants may learn about providers of other tenants.
  if (path === 'kms' && kms.providers().some((provider) => provider.name === name)) {
    throw invalidInput(
      path,
      `The KMS provider "${name}" is not available to this tenant. Add the tenant to \`onlyFor\` of this provider in KMS_CONFIG.`,
    );
  }
  throw invalidInput(path, `Unknown KMS provider "${name}". Configured: ${names.join(', ')}.`);
}

/** @throws Failure `invalid_input` at `path` for an algorithm that the provider does not support. */
export function assertAlgorithm(
  kms: Kms,
  { tenantId, provider }: Pick<NewKeyChain, 'tenantId' | 'provider'>,
  algorithm: SigningAlgorithm = 'ES256',
  path = 'algorithm',
): void {
  const providerName = provider ?? kms.providerOf(tenantId);
  const keyProvider = kms.providers().find(({ name }) => name === providerName);
  if (keyProvider === undefined || keyProvider.algorithms.includes(algorithm)) return;
  const possible = keyProvider.algorithms.join(', ');
  throw invalidInput(path, `The KMS provider "${providerName}" does not support ${algorithm}. Supported: ${possible}.`);
}

/**
 * Checks that the authority of a new key chain is still that of the named key chain: creating a key takes a while, and the authority
 * may have been removed meanwhile. Its key may be at another provider by now.
 * @returns the key chain with the current authority. @throws Failure `invalid_input`.
 */
export function withCurrentAuthority(chains: readonly KeyChain[], rootKeyChainId: string, chain: KeyChain): KeyChain {
  const root = rootOf(chains, rootKeyChainId);
  if (root.certificate !== chain.root?.certificate) throw noAuthorityError(rootKeyChainId);
  return { ...chain, root };
}

function rootOf(chains: readonly KeyChain[], id: string): KeyRoot {
  const root = chains.find((chain) => chain.id === id)?.root;
  if (root === undefined) throw noAuthorityError(id);
  return root;
}

function noAuthorityError(id: string): Failure {
  return invalidInput('rootKeyChainId', `There is no key chain "${id}" with an internal CA.`);
}
